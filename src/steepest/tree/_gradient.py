"""Scale the gradient of a tree in the backward pass."""

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, PyTree

from .. import check
from ..core import Real
from ..numerics import is_inexact


def scale_gradient(inputs: PyTree, scale: Real) -> PyTree:
    """The tree itself; its derivative is multiplied by `scale`.

    A scale of 0 stops the gradient, and -1 reverses it. It works in reverse and forward
    mode, and `scale` may be traced.

    Args:
        inputs: a tree of arrays.
        scale: the factor of the derivative.

    >>> import jax
    >>> jax.grad(lambda x: scale_gradient(x, 3.0) ** 2)(1.0).item()
    6.0
    """
    factor = jnp.asarray(*check.real("scale_gradient", scale=scale))
    return jax.tree.map(lambda x: _scaled(x, factor) if _moves(x) else x, inputs)


@jax.custom_jvp
def _scaled(x: ArrayLike, scale: Array) -> ArrayLike:
    del scale
    return x


@_scaled.defjvp
def _(
    primals: tuple[ArrayLike, Array], tangents: tuple[Array, ArrayLike]
) -> tuple[ArrayLike, Array]:
    x, scale = primals
    slope = jnp.asarray(tangents[0])
    scaled = slope * jnp.asarray(scale).astype(slope.dtype)
    # Zero stops the gradient, even one that is not finite.
    return _scaled(x, scale), jnp.where(scale == 0, 0, scaled)


def _moves(x: object) -> bool:
    return is_inexact(x) or isinstance(x, float | complex)
