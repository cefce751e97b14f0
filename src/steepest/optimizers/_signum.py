"""Sign descent with momentum.

Bernstein et al., signSGD: compressed optimisation for non-convex problems, 2018,
arXiv:1802.04434
"""

from jax.typing import DTypeLike

from ..combine import chain
from ..core import GradientTransformationExtraArgs, Real, ScalarOrSchedule
from ..engine import optimizer
from ..transforms import ema
from ._descend import descend
from ._sign_sgd import scale_by_sign


@optimizer
def signum(
    learning_rate: ScalarOrSchedule,
    beta: Real = 0.9,
    accumulator_dtype: DTypeLike | None = None,
    *,
    memory_dtype: DTypeLike | None = None,
    keep_count: bool = False,
) -> GradientTransformationExtraArgs:
    """Signum: `p <- p - learning_rate sign(m)`, where `m` is the mean of the gradients.

    Args:
        learning_rate: a number, or a schedule (a function of the step count).
        beta: decay rate of `m`, in [0, 1): the `decay` of `ema`.
        accumulator_dtype: dtype of `m`; by default that of the params.
        memory_dtype: dtype of the arrays in the state that have no option of their own,
            such as `mu_dtype`, or where it is `None`; by default that of the params, or
            wider. With "int8", "int4" or "float8", averages for large matrices are
            stored in 8 or 4 bits: see `keeping`.
        keep_count: whether to count the steps even if the learning rate is a number, so
            that a schedule can replace it later.

    >>> import jax.numpy as jnp, steepest
    >>> tx = steepest.signum(learning_rate=0.1)
    >>> g = jnp.array([3.0, -0.01])
    >>> u, state = tx.update(g, tx.init(g))
    >>> u, state = tx.update(-0.1 * g, state)
    >>> [round(float(x), 3) for x in u]
    [-0.1, 0.1]
    """
    return chain(
        # A bias correction would not change the sign.
        ema(beta, debias=False, accumulator_dtype=accumulator_dtype),
        scale_by_sign(),
        descend("signum", learning_rate),
    )
