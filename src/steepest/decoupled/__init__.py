"""Update rules for adjustments from any source.

They follow ngc-learn's `utils.optim`: `init(theta)` and `step(opt_params, theta,
updates)` take lists of weights, or any pytree. The updates need not be gradients: a
Hebbian product or a local prediction error works too.
"""

import typing as _typing

from ..core import lazy as _lazy

if _typing.TYPE_CHECKING or not _lazy(globals()):
    from ._adam import adam_init as adam_init, adam_step as adam_step
    from ._nag import nag_init as nag_init, nag_step as nag_step
    from ._names import (
        get_opt_init_fn as get_opt_init_fn,
        get_opt_step_fn as get_opt_step_fn,
    )
    from ._of import Decoupled as Decoupled, of as of
    from ._sgd import sgd_init as sgd_init, sgd_step as sgd_step
