"""Losses of embeddings: similar examples together, others apart."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .. import check
from ..numerics import promoted
from ._arrays import array, Axis, floating, meet, not_swapped, Numbers, spread, weight
from ._regression import unit


def ntxent(
    embeddings: Numbers, labels: Numbers, temperature: Numbers = 0.07
) -> Float[Array, ""]:
    """The normalized temperature-scaled cross-entropy of SimCLR.

        s_ij = cosine of embeddings i and j, / temperature
        loss = mean of -log(exp s_ij / (exp s_ij + sum_k exp s_ik))

    over the pairs `i, j` of different examples with the same label; `k` runs over the
    examples with a label different from that of `i`. Without such a pair the loss is 0.
    Norms count as at least the root of the dtype's epsilon.

    Chen, Kornblith, Norouzi and Hinton, A simple framework for contrastive learning of
    visual representations, 2020, arXiv:2002.05709

    Args:
        embeddings: real numbers, `[examples, features]`.
        labels: `[examples]`; equal for similar examples.
        temperature: above 0; small values weight the nearest examples most.
    """
    name = "ntxent"
    not_swapped(name, embeddings=embeddings, labels=labels)
    e, l = floating(name, "embeddings", embeddings), array(name, "labels", labels)
    if e.ndim != 2 or l.shape != e.shape[:1]:
        raise check.WrongArgument(
            f"{name}: embeddings have shape {e.shape} and labels have shape "
            f"{l.shape}, expected [examples, features] and [examples]."
        )
    tau = weight(name, check.positive.must, temperature=temperature)
    dtype = promoted(e, tau)
    _, (e,) = meet(name, embeddings=e)
    tau = spread(name, (len(e), len(e)), temperature=tau.astype(e.dtype))
    e = unit(e, jnp.asarray(jnp.finfo(e.dtype).eps, e.dtype), (1,), False)
    s = jnp.matmul(e, e.T, precision="highest") / tau
    kin = l[:, None] == l[None, :]
    pair = kin & ~jnp.eye(l.shape[0], dtype=bool)
    others = _log_sum_exp(s, ~kin)
    # -log(exp s / (exp s + exp others)) = softplus(others - s)
    loss = jax.nn.softplus(jnp.where(pair, others - s, 0))
    count = jnp.sum(pair, dtype=e.dtype)
    total = jnp.sum(jnp.where(pair, loss, 0)) / jnp.maximum(count, 1)
    return total.astype(dtype)


def triplet_margin_loss(
    anchors: Numbers,
    positives: Numbers,
    negatives: Numbers,
    axis: Axis = -1,
    norm_degree: Numbers = 2,
    margin: Numbers = 1.0,
    eps: Numbers = 1e-6,
) -> Float[Array, "..."]:
    """`max(0, d(anchors, positives) - d(anchors, negatives) + margin)`.

        d(a, b) = (sum |a - b|^norm_degree + eps)^(1 / norm_degree)

    Balntas, Riba, Ponsa and Mikolajczyk, Learning local feature descriptors with
    triplets and shallow convolutional neural networks, 2016

    Args:
        anchors: real numbers.
        positives: examples that should be near the anchors; of a shape that broadcasts.
        negatives: examples that should be far away; of a shape that broadcasts.
        axis: the axis or axes of the features; `None` is all.
        norm_degree: degree of the norm, above 0; 2 is Euclidean.
        margin: how much nearer the positives should be, at least 0.
        eps: keeps the gradient of the root finite; at least 0.
    """
    name = "triplet_margin_loss"
    a = floating(name, "anchors", anchors)
    b = floating(name, "positives", positives)
    c = floating(name, "negatives", negatives)
    check.measurable.must(name, norm_degree=norm_degree)
    python = isinstance(norm_degree, int | float)
    degree = norm_degree if python else array(name, "norm_degree", norm_degree)
    gap = weight(name, check.nonnegative, margin=margin)
    least = weight(name, check.nonnegative, eps=eps)
    dtype = promoted(a, b, c, degree, gap, least)
    _, (a, b, c) = meet(name, anchors=a, positives=b, negatives=c)
    if not isinstance(degree, int | float):
        degree = degree.astype(a.dtype)
    along = check.axes(name, axis, a.ndim)

    def distance(x: Array, y: Array) -> Array:
        total = jnp.sum(_power(jnp.abs(x - y), degree), along)
        room = spread(name, total.shape, eps=least.astype(total.dtype))
        return _power(total + room, 1 / degree)

    nearer = distance(a, b) - distance(a, c)
    gap = spread(name, nearer.shape, margin=gap.astype(nearer.dtype))
    return jnp.maximum(0, nearer + gap).astype(dtype)


def _power(x: Float[Array, "..."], degree: int | float | Array) -> Float[Array, "..."]:
    """`x^degree`, with derivative zero at zero, where that of a root is infinite."""
    zero = x == 0
    return jnp.where(zero, 0, jnp.where(zero, 1, x) ** degree)


def _log_sum_exp(s: Float[Array, "n n"], keep: Array) -> Float[Array, "n 1"]:
    """Of each row, over kept entries; `-inf` with no gradient if there are none."""
    some = jnp.any(keep, 1, keepdims=True)
    total = jax.nn.logsumexp(s, 1, keepdims=True, where=keep | ~some)
    return jnp.where(some, total, -jnp.inf)
