"""Whole steps: applied, skipped, wrapped, compiled."""

import typing as _typing

from ...core import lazy as _lazy

if _typing.TYPE_CHECKING or not _lazy(globals()):
    from ._apply import (
        apply_updates as apply_updates,
        incremental_update as incremental_update,
        periodic_update as periodic_update,
    )
    from ._donated import (
        Donated as Donated,
    )
    from ._info import (
        WrapperInfo as WrapperInfo,
    )
    from ._kept import (
        committed as committed,
    )
    from ._loops import (
        branch as branch,
        loop as loop,
    )
    from ._placed import (
        on_mesh as on_mesh,
        Placed as Placed,
        placed_in as placed_in,
    )
    from ._select import (
        selected as selected,
        when as when,
        zeros as zeros,
    )
    from ._step import (
        make_step as make_step,
        stepping as stepping,
    )
    from ._wrap import (
        Decide as Decide,
        wrapping as wrapping,
    )
