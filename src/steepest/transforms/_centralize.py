"""Gradient centralization.

Yong et al., Gradient centralization: a new optimization technique for deep neural
networks, 2020, arXiv:2004.01461
"""

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array

from ..core import EmptyState, GradientTransformationExtraArgs, Rule
from ..engine import lift


def centralize() -> GradientTransformationExtraArgs:
    """`u = g - mean(g)`, the mean over all axes but the first; vectors stay.

    >>> import steepest
    >>> tx = steepest.centralize()
    >>> g = jnp.array([[1.0, 3.0], [10.0, 20.0]])
    >>> u, _ = tx.update(g, tx.init(g))
    >>> u.tolist()
    [[-1.0, 1.0], [-5.0, 5.0]]
    """

    def leaf(n: Any, g: Array, p: Array | None) -> Array:
        if g.ndim < 2 or g.size == 0:
            return g
        return g - jnp.mean(g, axis=tuple(range(1, g.ndim)), keepdims=True)

    return lift(Rule("centralize", EmptyState, leaf, kind="whole"))
