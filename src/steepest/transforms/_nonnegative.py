"""Keep the params nonnegative."""

import jax.numpy as jnp
from jaxtyping import Array

from ..core import GradientTransformationExtraArgs, Rule, transformation
from ..engine import lift


def nonnegative_formula(g: Array, p: Array) -> Array:
    """`u = max(g, -p)`."""
    return jnp.where(p + g < 0, -p, g)


@transformation
def keep_params_nonnegative() -> GradientTransformationExtraArgs:
    """`u = g`, or `-p` where `p + g` would be negative, so that the param becomes zero.

    It must come last in a chain, where the updates have their final size and sign.

    >>> import jax.numpy as jnp, steepest
    >>> tx = steepest.keep_params_nonnegative()
    >>> g, p = jnp.array([-3.0, -3.0]), jnp.array([1.0, 5.0])
    >>> u, _ = tx.update(g, tx.init(p), p)
    >>> (p + u).tolist()
    [0.0, 2.0]
    """
    return lift(Rule("keep_params_nonnegative", nonnegative_formula))
