"""The sparsemax loss for many classes.

Martins and Astudillo, From softmax to sparsemax, 2016, arXiv:1602.02068
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .. import check
from ..numerics import promoted, simplex
from ._arrays import array, integers, not_swapped, Numbers


def multiclass_sparsemax_loss(scores: Numbers, labels: Numbers) -> Float[Array, "..."]:
    """Like cross-entropy, but probabilities, and the loss, may be exactly zero.

        p    = the point of the simplex nearest to the scores
        loss = <p, scores> - scores[labels] - |p|^2 / 2 + 1 / 2

    The gradient is `p` minus one for the right class.

    Args:
        scores: numbers; classes along the last axis.
        labels: the index of the right class, for each example. Negative indices count
            from the end; indices out of range are clipped.
    """
    name = "multiclass_sparsemax_loss"
    z = array(name, "scores", scores)
    not_swapped(name, scores=scores, labels=labels)
    l = integers(name, "labels", labels, "Take the `argmax` of one-hot labels.")
    if z.ndim > 0 and l.shape == (*z.shape[:-1], 1):
        l = l[..., 0]
    if z.ndim == 0 or l.shape != z.shape[:-1]:
        raise check.WrongArgument(
            f"{name}: scores have shape {z.shape} and labels have shape {l.shape}, "
            "expected labels of the shape of the scores without the last axis."
        )
    if z.shape[-1] == 0:
        raise IndexError(
            f"{name}: scores have shape {z.shape}, expected at least one class."
        )
    z = z.astype(promoted(z.dtype, jnp.zeros((), float).dtype))
    classes = z.shape[-1]
    l = jnp.clip(jnp.where(l < 0, l + classes, l), 0, classes - 1)
    return jnp.vectorize(_loss, signature="(n),()->()")(z, l)


def _loss(z: Float[Array, " n"], l: Array) -> Float[Array, ""]:
    p = simplex(z)
    # Subtracting the largest score keeps the loss, and the precision of the sums.
    z = z - jax.lax.stop_gradient(jnp.max(z))
    mean = jnp.sum(p * jnp.where(p > 0, z, 0))
    return mean - z[l] - jnp.sum(p * p) / 2 + 0.5
