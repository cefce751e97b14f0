"""Sign descent.

Bernstein et al., signSGD: compressed optimisation for non-convex problems, 2018,
arXiv:1802.04434
"""

import jax.numpy as jnp
from jax.typing import DTypeLike
from jaxtyping import Array

from ..combine import chain
from ..core import (
    GradientTransformationExtraArgs,
    Rule,
    ScalarOrSchedule,
    transformation,
)
from ..engine import lift, optimizer
from ._descend import descend


def sign_formula(g: Array) -> Array:
    """`u = sign(g)`."""
    return jnp.sign(g)


@transformation
def scale_by_sign() -> GradientTransformationExtraArgs:
    """Take the elementwise sign: `u = sign(g)`, or `g / |g|` if `g` is complex."""
    return lift(Rule("scale_by_sign", sign_formula))


@optimizer
def sign_sgd(
    learning_rate: ScalarOrSchedule,
    *,
    memory_dtype: DTypeLike | None = None,
    keep_count: bool = False,
) -> GradientTransformationExtraArgs:
    """SignSGD: `p <- p - learning_rate sign(g)`.

    Args:
        learning_rate: a number, or a schedule (a function of the step count).
        memory_dtype: dtype of the arrays in the state that have no option of their own,
            such as `mu_dtype`, or where it is `None`; by default that of the params, or
            wider. With "int8", "int4" or "float8", averages for large matrices are
            stored in 8 or 4 bits: see `keeping`.
        keep_count: whether to count the steps even if the learning rate is a number, so
            that a schedule can replace it later.

    >>> import jax.numpy as jnp, steepest
    >>> tx = steepest.sign_sgd(learning_rate=0.1)
    >>> g = jnp.array([3.0, -0.01])
    >>> updates, state = tx.update(g, tx.init(g))
    >>> [round(float(u), 3) for u in updates]
    [-0.1, 0.1]
    """
    return chain(scale_by_sign(), descend("sign_sgd", learning_rate))
