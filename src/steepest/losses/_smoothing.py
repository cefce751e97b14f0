"""Label smoothing.

Szegedy, Vanhoucke, Ioffe, Shlens and Wojna, Rethinking the Inception architecture
for computer vision, 2015, arXiv:1512.00567
Muller, Kornblith and Hinton, When does label smoothing help?, 2019, arXiv:1906.02629
"""

import math

import jax.numpy as jnp
from jaxtyping import Array, Float

from .. import check
from ..numerics import promoted
from ._arrays import array, Axis, floating, Numbers, spread, weight, wide


def smooth_labels(
    labels: Numbers,
    alpha: Numbers,
    *,
    axis: Axis = -1,
    where: Numbers | None = None,
) -> Float[Array, "..."]:
    """`(1 - alpha) labels + alpha / k`, with `k` classes.

    Args:
        labels: probabilities as floats, for example one-hot.
        alpha: the share distributed evenly over the classes, from 0 to 1; a number or
            an array that broadcasts to the labels.
        axis: the axis or axes of the classes; `None` is all.
        where: mask of the classes that count towards `k`. If none do, `alpha / k` is 0.
    """
    name = "smooth_labels"
    advice = "Convert class indices to probabilities with `jax.nn.one_hot`."
    l = floating(name, "labels", labels, advice)
    a = weight(name, check.fraction, alpha=alpha)
    dtype = promoted(l, a)
    l, a = l.astype(wide(dtype)), spread(name, l.shape, alpha=a.astype(wide(dtype)))
    along = check.axes(name, axis, l.ndim)
    if where is None:
        part = a / max(1, math.prod(l.shape[i] for i in along))
    else:
        keep = spread(name, l.shape, where=array(name, "where", where))
        k = jnp.sum(keep.astype(l.dtype), along, keepdims=True)
        part = jnp.where(k > 0, a / jnp.where(k > 0, k, 1), 0)
    return ((1 - a) * l + part).astype(dtype)
