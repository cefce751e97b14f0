"""Sign descent.

Bernstein et al., signSGD: compressed optimisation for non-convex problems, 2018,
arXiv:1802.04434
"""

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array

from ..combine import chain
from ..core import (
    EmptyState,
    GradientTransformationExtraArgs,
    Rule,
    ScalarOrSchedule,
)
from ..engine import lift
from ..transforms import scale_by_learning_rate


def scale_by_sign() -> GradientTransformationExtraArgs:
    """`u = sign(g)`, element by element; of a complex `g`, `g / |g|`."""

    def leaf(n: Any, g: Array, p: Array | None) -> Array:
        return jnp.sign(g)

    return lift(Rule("scale_by_sign", EmptyState, leaf))


def sign_sgd(learning_rate: ScalarOrSchedule) -> GradientTransformationExtraArgs:
    """SignSGD: `p <- p - learning_rate sign(g)`.

    Args:
        learning_rate: a number, or a function of the count.

    >>> import steepest
    >>> tx = steepest.sign_sgd(learning_rate=0.1)
    >>> g = jnp.array([3.0, -0.01])
    >>> updates, state = tx.update(g, tx.init(g))
    >>> [round(float(u), 3) for u in updates]
    [-0.1, 0.1]
    """
    return chain(scale_by_sign(), scale_by_learning_rate(learning_rate))
