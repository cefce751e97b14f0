"""The proof that the optimizers are right: all of them, tuned alike, on one problem.

The command is `steepest race bytes --suite`.
"""

import typing as _typing

from steepest.core import lazy as _lazy

if _typing.TYPE_CHECKING or not _lazy(globals()):
    from ._arms import Arm as Arm, ARMS as ARMS, arms_named as arms_named
    from ._bars import Judged as Judged, judged as judged
    from ._page import page as page, pictures as pictures, summary as summary
    from ._record import Record as Record
    from ._run import calibrate as calibrate, run_suite as run_suite
    from ._size import Size as Size, SIZES as SIZES
    from ._statistics import (
        Line as Line,
        Paired as Paired,
        Table as Table,
        table_of as table_of,
    )
