"""Rules over leaves: plans, segments, passes, stacks."""

from ._plan import (
    counting as counting,
    lift as lift,
    nothing as nothing,
    Plan as Plan,
    plan_of as plan_of,
    sequence as sequence,
    still as still,
    under as under,
)
from ._segments import (
    Link as Link,
)
from ._stacks import (
    stacks as stacks,
)
