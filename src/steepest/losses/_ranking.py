"""Ranking losses of lists, which ask for the relevant items at the top.

Cao, Qin, Liu, Tsai and Li, Learning to rank: from pairwise approach to listwise
approach, 2007. Xia, Liu, Wang, Zhang and Li, Listwise approach to learning to rank:
theory and algorithm, 2008
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .. import check
from ..numerics import promoted
from ._arrays import array, floating, mask, meet, not_swapped, Numbers, spread, times


def ranking_softmax_loss(
    logits: Numbers,
    labels: Numbers,
    *,
    where: Numbers | None = None,
    weights: Numbers | None = None,
    reduce_fn: Callable[..., Array] | None = jnp.mean,
) -> Array:
    """The softmax cross-entropy of lists: `-sum weights labels log softmax(logits)`.

    Args:
        logits: real numbers: a score for each item, items along the last axis.
        labels: the relevance of each item; of a shape that broadcasts.
        where: mask of the items. A list without items does not count.
        weights: weights of the items; by default 1.
        reduce_fn: reduces the losses of the lists to one number. It is called with them
            and with `where`: a mask of the lists that have items, or `None`. If
            `reduce_fn` is `None`, the loss of each list is returned. The mean over no
            lists is 0.
    """
    name = "ranking_softmax_loss"
    not_swapped(name, logits=logits, labels=labels)
    x, l = floating(name, "logits", logits), array(name, "labels", labels)
    if reduce_fn is not None:
        check.function(name, reduce_fn=reduce_fn)
    w = array(name, "weights", 1 if weights is None else weights)
    dtype = promoted(x, w)
    x, l = meet(name, logits=x, labels=l)[1]
    if x.ndim == 0:
        raise ValueError(
            f"{name}: logits have shape (), expected at least one axis, the items."
        )
    keep = mask(name, where, x.shape)
    l = l * spread(name, x.shape, weights=w.astype(x.dtype))
    log_p = jax.nn.log_softmax(jnp.where(keep, x, 0), where=keep)
    gain = times(jnp.where(keep, l, 0), jnp.where(keep, log_p, 0))
    loss = -jnp.sum(gain, -1)
    lists = None if where is None else jnp.any(keep, -1)
    if reduce_fn is None:
        return loss.astype(dtype)
    if reduce_fn is jnp.mean:
        return _mean(loss, lists).astype(dtype)
    return reduce_fn(loss.astype(dtype), where=lists)


def _mean(loss: Float[Array, "..."], lists: Array | None) -> Float[Array, ""]:
    keep = jnp.ones(loss.shape, bool) if lists is None else lists
    count = jnp.sum(keep, dtype=loss.dtype)
    return jnp.sum(jnp.where(keep, loss, 0)) / jnp.maximum(count, 1)
