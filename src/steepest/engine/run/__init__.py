"""Run rules over leaves: plans, segments, passes, stacks."""

import typing as _typing

from ...core import lazy as _lazy

if _typing.TYPE_CHECKING or not _lazy(globals()):
    from ._first_memory import (
        layout_of as layout_of,
    )
    from ._formula import Landed as Landed
    from ._grouping import (
        stack_sizes as stack_sizes,
        stacks as stacks,
    )
    from ._plan import (
        counting as counting,
        frozen as frozen,
        lift as lift,
        masked_plan as masked_plan,
        nothing as nothing,
        Plan as Plan,
        plan_of as plan_of,
        sequence as sequence,
    )
    from ._segments import (
        Link as Link,
    )
