"""Losses for many classes.

Labels are either probabilities, one for each class, or class indices.
"""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from .. import check
from ..numerics import promoted
from ._arrays import (
    array,
    Axis,
    class_mask,
    floating,
    integers,
    meet,
    not_swapped,
    Numbers,
    spread,
    times,
    weight,
    wide,
)

Loss = Float[Array, "..."]


def softmax_cross_entropy(
    logits: Numbers, labels: Numbers, axis: Axis = -1, where: Numbers | None = None
) -> Loss:
    """The cross-entropy of labels and `p = softmax(logits)`.

        loss = -sum labels log p

    A class with label 0 and probability 0 adds nothing: `0 log 0 = 0`.

    Goodfellow, Bengio and Courville, Deep learning, 2016, section 6.2.2.3

    Args:
        logits: real numbers.
        labels: probabilities, for example one-hot; of a shape that broadcasts.
        axis: the axis or axes of the classes; `None` is all.
        where: mask of the classes; or, without the class axes, of the examples.
    """
    return _cross_entropy("softmax_cross_entropy", logits, labels, axis, where)


def _cross_entropy(
    name: str, logits: Numbers, labels: Numbers, axis: Axis, where: Numbers | None
) -> Loss:
    dtype, l, log_p, keep, along = _softmax(name, logits, labels, axis, where)
    return -jnp.sum(jnp.where(keep, times(l, log_p), 0), along).astype(dtype)


def safe_softmax_cross_entropy(logits: Numbers, labels: Numbers) -> Loss:
    """`softmax_cross_entropy` over the last axis, under Optax's second name.

    In Optax only this one has `0 log 0 = 0`; here both do.

    Args:
        logits: real numbers.
        labels: probabilities, for example one-hot; of a shape that broadcasts.
    """
    return _cross_entropy("safe_softmax_cross_entropy", logits, labels, -1, None)


def softmax_cross_entropy_with_integer_labels(
    logits: Numbers,
    labels: Numbers,
    axis: int | tuple[int, ...] = -1,
    where: Numbers | None = None,
) -> Loss:
    """The cross-entropy of class indices: `-log softmax(logits)[labels]`.

    Cheaper than `softmax_cross_entropy`: the other classes are not multiplied by zero.

    Args:
        logits: real numbers.
        labels: the index of the right class; negative indices count from the end, and
            an index out of range gives NaN. The shape is that of `logits` without the
            class axes, or broadcasts with it.
        axis: the axis of the classes. Several axes are flattened into one, the last
            changing fastest.
        where: mask of the classes; or, without the class axes, of the examples. An
            example without classes has loss 0.
    """
    name = "softmax_cross_entropy_with_integer_labels"
    not_swapped(name, logits=logits, labels=labels)
    x = floating(name, "logits", logits)
    advice = "Use `softmax_cross_entropy` for probabilities."
    l = integers(name, "labels", labels, advice)
    if not isinstance(axis, int | tuple):
        raise ValueError(f"{name}: axis is {axis}, expected an int or a tuple of ints.")
    along = check.axes(name, axis, x.ndim)
    keep = class_mask(name, where, x.shape, axis)
    dtype = x.dtype
    x, keep = _classes_last(x.astype(wide(dtype)), along), _classes_last(keep, along)
    if l.ndim != x.ndim - 1:
        raise ValueError(
            f"{name}: labels have shape {l.shape} and logits have shape "
            f"{jnp.shape(logits)} with classes along {axis}, expected labels of shape "
            f"{x.shape[:-1]}: class indices. Use `softmax_cross_entropy` for one-hot "
            "labels."
        )
    x, l, keep = _batch(name, x, l, keep)
    some = jnp.any(keep, -1, keepdims=True)
    x = jnp.where(some, x, 0)
    top = jnp.max(x, -1, keepdims=True, where=keep, initial=-jnp.inf)
    top = jax.lax.stop_gradient(jnp.where(jnp.isfinite(top), top, 0))
    x = x - top
    total = jnp.sum(jnp.exp(jnp.where(keep, x, -jnp.inf)), -1, keepdims=True)
    right = jnp.take_along_axis(x, l[..., None], -1, mode="fill", fill_value=jnp.nan)
    loss = jnp.log(jnp.where(some, total, 1)) - jnp.where(some, right, 0)
    return loss[..., 0].astype(dtype)


def poly_loss_cross_entropy(
    logits: Numbers,
    labels: Numbers,
    *,
    epsilon: Numbers = 2.0,
    axis: Axis = -1,
    where: Numbers | None = None,
) -> Loss:
    """Cross-entropy with more weight on the first term of its series.

        p    = softmax(logits)
        loss = -sum labels log p + epsilon sum labels (1 - p)

    Leng, Tan, Liu, Cubuk, Shi, Cheng and Anguelov, PolyLoss, 2022, arXiv:2204.12511

    Args:
        logits: real numbers.
        labels: probabilities as floats, for example one-hot; of a shape that
            broadcasts.
        epsilon: weight added to the first term; 0 is cross-entropy.
        axis: the axis or axes of the classes; `None` is all.
        where: mask of the classes; or, without the class axes, of the examples.
    """
    name = "poly_loss_cross_entropy"
    l = floating(name, "labels", labels, _ONE_HOT)
    dtype, l, log_p, keep, along = _softmax(name, logits, l, axis, where)
    more = weight(name, check.finite, epsilon=epsilon)
    first = jnp.sum(jnp.where(keep, l * (1 - jnp.exp(log_p)), 0), along)
    entropy = -jnp.sum(jnp.where(keep, times(l, log_p), 0), along)
    dtype = promoted(jnp.zeros((), dtype), more)
    more = spread(name, first.shape, epsilon=more.astype(first.dtype))
    return (entropy + more * first).astype(dtype)


def multiclass_hinge_loss(scores: Numbers, labels: Numbers) -> Loss:
    """`max(scores + [not the right class]) - score of the right class`.

    Zero where the right class wins by a margin of 1.

    Crammer and Singer, On the algorithmic implementation of multiclass kernel-based
    vector machines, 2001

    Args:
        scores: numbers; classes along the last axis.
        labels: the index of the right class, for each example.
    """
    name = "multiclass_hinge_loss"
    scores, right = _one_hot(name, scores, labels)
    best = jnp.max(jnp.where(right, scores, scores + 1), -1)
    return best - jnp.sum(jnp.where(right, scores, 0), -1)


def multiclass_perceptron_loss(scores: Numbers, labels: Numbers) -> Loss:
    """`max(scores) - score of the right class`: zero where the right class wins.

    Michael Collins, Discriminative training methods for hidden Markov models, 2002

    Args:
        scores: numbers; classes along the last axis.
        labels: the index of the right class, for each example.
    """
    scores, right = _one_hot("multiclass_perceptron_loss", scores, labels)
    return jnp.max(scores, -1) - jnp.sum(jnp.where(right, scores, 0), -1)


def _softmax(
    name: str, logits: Numbers, labels: Numbers, axis: Axis, where: Numbers | None
) -> tuple[np.dtype, Array, Loss, Bool[Array, "..."], tuple[int, ...]]:
    """The result dtype, the labels, `log p`, the mask and the class axes."""
    not_swapped(name, logits=logits, labels=labels)
    x, l = floating(name, "logits", logits), array(name, "labels", labels)
    _check_not_indices(name, x, l, axis)
    dtype, (x, l) = meet(name, logits=x, labels=l)
    along = check.axes(name, axis, x.ndim)
    keep = class_mask(name, where, x.shape, axis)
    log_p = jax.nn.log_softmax(jnp.where(keep, x, 0), along, where=keep)
    return dtype, jnp.where(keep, l, 0), jnp.where(keep, log_p, 0), keep, along


_ONE_HOT = "Convert class indices to probabilities with `jax.nn.one_hot`."


def _check_not_indices(name: str, x: Array, l: Array, axis: Axis) -> None:
    """Reject class indices: as probabilities they might broadcast, and be wrong."""
    if not jnp.issubdtype(l.dtype, jnp.integer) or l.ndim >= x.ndim:
        return
    along = check.axes(name, axis, x.ndim)
    examples = tuple(n for a, n in enumerate(x.shape) if a not in along)
    if along and l.shape in (examples, ()):
        raise check.WrongArgument(
            f"{name}: labels have dtype {l.dtype} and shape {l.shape}, one class index "
            f"for each example, expected probabilities for logits of shape {x.shape}. "
            f"Use `softmax_cross_entropy_with_integer_labels` for indices. {_ONE_HOT}"
        )


def _not_for(name: str, x: Array, l: Array) -> check.WrongArgument:
    """The error for labels that are not one index for each row of scores."""
    return check.WrongArgument(
        f"{name}: labels have shape {l.shape} and scores have shape {x.shape}, "
        f"expected labels of shape {x.shape[:-1]}: class indices. Take the `argmax` of "
        "one-hot labels."
    )


def _classes_last(x: Array, along: tuple[int, ...]) -> Array:
    """Flatten the class axes, in this order, into one axis at the end."""
    rest = [a for a in range(x.ndim) if a not in along]
    x = jnp.transpose(x, (*rest, *along))
    shape = x.shape[: len(rest)]
    return x.reshape((*shape, math.prod(x.shape[len(rest) :])))


def _batch(name: str, x: Array, l: Array, *others: Array) -> tuple[Array, ...]:
    """Broadcast the example axes of scores, labels and arrays like the scores."""
    try:
        shape = jnp.broadcast_shapes(x.shape[:-1], l.shape)
    except ValueError:
        raise _not_for(name, x, l) from None
    full = (*shape, x.shape[-1])
    like_scores = (jnp.broadcast_to(o, full) for o in others)
    return jnp.broadcast_to(x, full), jnp.broadcast_to(l, shape), *like_scores


def _one_hot(name: str, scores: Numbers, labels: Numbers) -> tuple[Loss, Array]:
    """The scores, in the default dtype or wider, and the mask of the right class.

    A label out of range has no right class: its score counts as 0.
    """
    x, l = array(name, "scores", scores), array(name, "labels", labels)
    if l.ndim > x.ndim:
        not_swapped(name, scores=x, labels=l)
    if x.ndim == 0:
        raise ValueError(
            f"{name}: scores have shape (), expected at least one axis, the classes."
        )
    if l.dtype == bool:
        raise TypeError(
            f"{name}: labels are booleans, expected the index of the right class. "
            "Take the `argmax` of one-hot labels."
        )
    # One row of scores may serve many labels, but then they are not one-hot.
    one_hot = x.ndim > 1 or jnp.issubdtype(l.dtype, jnp.floating)
    if l.shape == x.shape and one_hot:
        raise _not_for(name, x, l)
    x = x.astype(promoted(x.dtype, jnp.zeros((), float).dtype))
    x, l = _batch(name, x, l)
    numbers = jnp.arange(x.shape[-1]).reshape((1,) * l.ndim + (-1,))
    both = promoted(l.dtype, numbers.dtype)
    return x, l[..., None].astype(both) == numbers.astype(both)
