"""Overlap losses for image segmentation.

Milletari, Navab and Ahmadi, V-Net, 2016, arXiv:1606.04797
Salehi, Erdogmus and Gholipour, Tversky loss function for image segmentation, 2017,
arXiv:1706.05721
Sudre, Li, Vercauteren, Ourselin and Cardoso, Generalised Dice overlap, 2017,
arXiv:1707.03237
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float

from .. import check
from ..numerics import promoted
from ._arrays import array, Axis, meet, Numbers, same_shape, spread, weight

Loss = Float[Array, "..."]
_NO_VOLUME = (
    1e-7  # added to a squared volume, so that a missing class has a finite weight
)


def dice_loss(
    predictions: Numbers,
    targets: Numbers,
    *,
    class_weights: Numbers | None = None,
    smooth: Numbers = 1.0,
    alpha: Numbers = 0.5,
    beta: Numbers = 0.5,
    apply_softmax: bool = True,
    reduction: str = "mean",
    ignore_background: bool = False,
    axis: Axis = None,
) -> Loss:
    """One minus the overlap of predictions and targets, for each class.

        p    = softmax(predictions), or sigmoid if there is one class
        both = sum p targets
        more = sum p (1 - targets)
        less = sum (1 - p) targets
        loss = 1 - (both + smooth) / (both + alpha more + beta less + smooth)

    The fraction is the Dice coefficient if `alpha` and `beta` are 1/2, the Jaccard
    index if they are 1, and the Tversky index in general. A class that is neither
    present nor predicted has no loss.

    Args:
        predictions: `[examples, ..., classes]`; one class needs no axis of its own.
        targets: of the same shape: one-hot, or probabilities.
        class_weights: `[classes]`, the weight of the loss of each class.
        smooth: added to numerator and denominator, at least 0.
        alpha: weight of false positives, at least 0.
        beta: weight of false negatives, at least 0.
        apply_softmax: whether predictions are logits. If not, they are probabilities,
            and must sum to 1 over the classes; that is checked unless they are traced.
        reduction: how to reduce over the classes: `"mean"`, `"sum"` or `"none"`.
        ignore_background: whether to leave out class 0, if there are others.
        axis: the axes to sum over; by default all but the first and the last.
    """
    name = "dice_loss"
    check.choice(name, ("mean", "sum", "none"), reduction=reduction)
    p, t = array(name, "predictions", predictions), array(name, "targets", targets)
    # One class may come without an axis of its own.
    if t.ndim < p.ndim:
        t = t[..., None]
    elif p.ndim < t.ndim:
        p = p[..., None]
    dtype, loss = _overlap(
        name,
        p,
        t,
        apply_softmax,
        ignore_background,
        tuple(range(1, p.ndim - 1)) if axis is None else check.axes(name, axis, p.ndim),
        {"smooth": smooth, "alpha": alpha, "beta": beta},
        class_weights,
    )
    if reduction == "none" or loss.ndim == 0:
        return loss.astype(dtype)
    total = jnp.mean if reduction == "mean" else jnp.sum
    return total(loss, -1).astype(dtype)


def multiclass_generalized_dice_loss(
    predictions: Numbers,
    targets: Numbers,
    *,
    smooth: Numbers = 1.0,
    apply_softmax: bool = True,
    ignore_background: bool = False,
) -> Loss:
    """Dice losses averaged over classes, with the most weight on small ones.

        weight = 1 / (sum targets)^2, over all examples, scaled to a mean of 1
        loss   = mean over examples and classes of weight dice_loss

    Args:
        predictions: `[examples, ..., classes]`.
        targets: of the same shape: one-hot, or probabilities.
        smooth: added to numerator and denominator, at least 0.
        apply_softmax: whether predictions are logits. If not, they are probabilities,
            and must sum to 1 over the classes; that is checked unless they are traced.
        ignore_background: whether to leave out class 0, if there are others. It still
            counts when weights are scaled.
    """
    name = "multiclass_generalized_dice_loss"
    p, t = array(name, "predictions", predictions), array(name, "targets", targets)
    spatial = tuple(range(1, p.ndim - 1))
    numbers: dict[str, Numbers] = {"smooth": smooth, "alpha": 0.5, "beta": 0.5}
    dtype, dice = _overlap(
        name, p, t, apply_softmax, ignore_background, spatial, numbers, None
    )
    if not jnp.issubdtype(t.dtype, jnp.floating):
        # The volume of integer targets, and so the weights, have the default dtype.
        dtype = promoted(jnp.zeros((), dtype), jnp.zeros((), float))
    volume = jnp.sum(t.astype(dice.dtype), tuple(range(t.ndim - 1)))
    weight = 1 / (volume * volume + _NO_VOLUME)
    weight = _foreground(weight / jnp.mean(weight), ignore_background)
    return jnp.mean(jnp.broadcast_to(weight, dice.shape) * dice).astype(dtype)


def binary_dice_loss(
    predictions: Numbers,
    targets: Numbers,
    *,
    smooth: Numbers = 1.0,
    apply_sigmoid: bool = True,
) -> Loss:
    """The Dice loss of one class against the background, for each example.

    Args:
        predictions: `[examples, ...]`, with or without a last axis of size one.
        targets: of the same shape: 1 for the class, 0 for the background.
        smooth: added to numerator and denominator.
        apply_sigmoid: whether predictions are logits. If not, they are probabilities.
    """
    name = "binary_dice_loss"
    p, t = array(name, "predictions", predictions), array(name, "targets", targets)
    p, t = (x if x.shape[-1:] == (1,) else x[..., None] for x in (p, t))
    spatial = tuple(range(1, p.ndim - 1))
    numbers: dict[str, Numbers] = {"smooth": smooth, "alpha": 0.5, "beta": 0.5}
    dtype, loss = _overlap(name, p, t, apply_sigmoid, False, spatial, numbers, None)
    return loss[..., 0].astype(dtype)


def _overlap(
    name: str,
    p: Array,
    t: Array,
    from_logits: bool,
    ignore_background: bool,
    along: tuple[int, ...],
    numbers: dict[str, Numbers],
    class_weights: Numbers | None,
) -> tuple[np.dtype, Loss]:
    """The result dtype, and the losses of the classes that are not ignored."""
    if p.ndim == 0:
        raise ValueError(
            f"{name}: predictions have shape (), expected [examples, ..., classes]."
        )
    same_shape(name, predictions=p, targets=t)
    if not jnp.issubdtype(p.dtype, jnp.floating):
        p = p.astype(float)
    factors = {k: weight(name, check.nonnegative, **{k: x}) for k, x in numbers.items()}
    w = array(name, "class_weights", 1.0 if class_weights is None else class_weights)
    dtype = promoted(p, t, w, *factors.values())
    _check_probabilities(name, p, from_logits)
    _, (p, t) = meet(name, predictions=p, targets=t)
    if from_logits:
        p = jax.nn.softmax(p) if p.shape[-1] > 1 else jax.nn.sigmoid(p)
    smooth, alpha, beta = (x.astype(p.dtype) for x in factors.values())
    classes = p.shape[-1]
    p, t = _foreground(p, ignore_background), _foreground(t, ignore_background)
    both = jnp.sum(p * t, along)
    more = jnp.sum(p * (1 - t), along)
    less = jnp.sum((1 - p) * t, along)
    whole = both + alpha * more + beta * less + smooth
    nothing = whole == 0
    loss = jnp.where(nothing, 0, 1 - (both + smooth) / jnp.where(nothing, 1, whole))
    if class_weights is None:
        return dtype, loss
    if w.ndim != 1 or p.ndim - 1 in along:
        raise ValueError(
            f"{name}: class_weights have shape {w.shape} and sums are over the axes "
            f"{along}, expected one weight for each class, and no sum over classes."
        )
    w = spread(name, (classes,), class_weights=w.astype(loss.dtype))
    return dtype, loss * jnp.broadcast_to(_foreground(w, ignore_background), loss.shape)


def _foreground(x: Array, ignore_background: bool) -> Array:
    return x[..., 1:] if ignore_background and x.shape[-1] > 1 else x


def _check_probabilities(name: str, p: Array, from_logits: bool) -> None:
    if from_logits or isinstance(p, Tracer) or p.size == 0:
        return
    slack = max(1e-5, 2 * float(jnp.finfo(p.dtype).eps))
    p = p.astype(jnp.float32)
    if p.shape[-1] > 1:
        total = jnp.sum(p, -1)
        low, high, wanted = jnp.min(total), jnp.max(total), "sums over classes of 1"
        fine = (low >= 1 - slack) & (high <= 1 + slack)
    else:
        low, high, wanted = jnp.min(p), jnp.max(p), "numbers from 0 to 1"
        fine = (low >= -slack) & (high <= 1 + slack)
    if not fine:
        raise ValueError(
            f"{name}: predictions have {wanted.split(' of ')[0]} from {low:.6f} to "
            f"{high:.6f}, expected valid probability distributions, with {wanted}. "
            "Leave apply_softmax or apply_sigmoid on for logits."
        )
