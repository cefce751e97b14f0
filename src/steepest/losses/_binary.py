"""Losses for two classes."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Num

from .. import check
from ..numerics import promoted
from ._arrays import (
    array,
    floating,
    meet,
    not_swapped,
    Numbers,
    same_shape,
    spread,
    times,
    weight,
)


def sigmoid_binary_cross_entropy(
    logits: Numbers, labels: Numbers
) -> Float[Array, "..."]:
    """The binary cross-entropy, with `p = sigmoid(logits)` for the positive class.

        loss = -labels log p - (1 - labels) log(1 - p)

    For each entry: classes that are not mutually exclusive have one entry each.

    Goodfellow, Bengio and Courville, Deep learning, 2016, section 6.2.2.2

    Args:
        logits: real numbers; positive ones predict the positive class.
        labels: 1 for the positive class, 0 for the negative one, or a probability; of a
            shape that broadcasts.
    """
    name = "sigmoid_binary_cross_entropy"
    not_swapped(name, logits=logits, labels=labels)
    x, l = floating(name, "logits", logits), array(name, "labels", labels)
    dtype, (x, l) = x.dtype, meet(name, logits=x, labels=l)[1]
    return _cross_entropy(x, l).astype(dtype)


def sigmoid_focal_loss(
    logits: Numbers,
    labels: Numbers,
    *,
    alpha: Numbers | None = None,
    gamma: Numbers = 2.0,
) -> Float[Array, "..."]:
    """Binary cross-entropy that gives little weight to entries already right.

        p    = sigmoid(logits)
        miss = labels (1 - p) + (1 - labels) p
        loss = weight miss^gamma cross_entropy
        weight = alpha labels + (1 - alpha) (1 - labels)

    Lin, Goyal, Girshick, He and Dollar, Focal loss for dense object detection, 2017,
    arXiv:1708.02002

    Args:
        logits: real numbers; positive ones predict the positive class.
        labels: 1 for the positive class, 0 for the negative one; of a shape that
            broadcasts.
        alpha: the weight of the positive class, in [0, 1]; `1 - alpha` is that of the
            negative one. By default both have weight 1.
        gamma: how strongly right entries are discounted, at least 0; 0 is no discount.
    """
    name = "sigmoid_focal_loss"
    not_swapped(name, logits=logits, labels=labels)
    x, l = floating(name, "logits", logits), array(name, "labels", labels)
    balance = weight(name, check.fraction, alpha=1.0 if alpha is None else alpha)
    exponent = weight(name, check.nonnegative, gamma=gamma)
    power = gamma if isinstance(gamma, int | float) else exponent
    dtype = promoted(x, balance, power)
    x, l = meet(name, logits=x, labels=l)[1]
    if not isinstance(power, int | float):
        power = spread(name, x.shape, gamma=power.astype(x.dtype))
    miss = l * jax.nn.sigmoid(-x) + (1 - l) * jax.nn.sigmoid(x)
    # A root has no finite derivative at zero. Entries that are exactly right have no
    # loss.
    right = miss == 0
    discount = jnp.where(right, 0, jnp.where(right, 1, miss) ** power)
    loss = discount * jnp.where(right, 0, _cross_entropy(x, l))
    if alpha is not None:
        balance = spread(name, x.shape, alpha=balance.astype(x.dtype))
        loss = loss * (balance * l + (1 - balance) * (1 - l))
    return loss.astype(dtype)


def hinge_loss(predictor_outputs: Numbers, targets: Numbers) -> Num[Array, "..."]:
    """`max(0, 1 - targets predictor_outputs)`: no loss beyond a margin of 1.

    Cortes and Vapnik, Support-vector networks, 1995

    Args:
        predictor_outputs: numbers; positive ones predict the positive class.
        targets: 1 for the positive class, -1 for the negative one; of a shape that
            broadcasts.
    """
    name = "hinge_loss"
    p = array(name, "predictor_outputs", predictor_outputs)
    t = array(name, "targets", targets)
    dtype, (p, t) = meet(name, predictor_outputs=p, targets=t)
    return jnp.maximum(0, 1 - p * t).astype(dtype)


def perceptron_loss(predictor_outputs: Numbers, targets: Numbers) -> Num[Array, "..."]:
    """`max(0, -targets predictor_outputs)`: no loss on the right side.

    Rosenblatt, The perceptron: a probabilistic model for information storage and
    organization in the brain, 1958

    Args:
        predictor_outputs: numbers; positive ones predict the positive class.
        targets: 1 for the positive class, -1 for the negative one; of the same shape.
    """
    name = "perceptron_loss"
    p = array(name, "predictor_outputs", predictor_outputs)
    t = array(name, "targets", targets)
    same_shape(name, predictor_outputs=p, targets=t)
    dtype, (p, t) = meet(name, predictor_outputs=p, targets=t)
    return jnp.maximum(0, -p * t).astype(dtype)


def sparsemax_loss(logits: Numbers, labels: Numbers) -> Float[Array, "..."]:
    """The sparsemax loss for two classes: a hinge with a rounded corner.

        s    = logits for labels 0, -logits for labels 1
        loss = 0                where s <= -1
               (s + 1)^2 / 4    between
               s                where s >= 1

    Martins and Astudillo, From softmax to sparsemax, 2016, arXiv:1602.02068

    Args:
        logits: numbers; positive ones predict the positive class.
        labels: 1 for the positive class, 0 for the negative one; of a shape that
            broadcasts.
    """
    name = "sparsemax_loss"
    x, l = array(name, "logits", logits), array(name, "labels", labels)
    dtype = x.dtype if jnp.issubdtype(x.dtype, jnp.floating) else promoted(x, 1.0)
    x, l = meet(name, logits=x.astype(dtype), labels=l)[1]
    s = jnp.where(l == 0, x, -x)
    between = jnp.abs(s) < 1
    # Squaring infinity would make the gradient NaN, even in the branch not taken.
    corner = (jnp.where(between, s, 0) + 1) ** 2 / 4
    return jnp.where(between, corner, jnp.maximum(s, 0)).astype(dtype)


def _cross_entropy(x: Float[Array, "..."], l: Array) -> Float[Array, "..."]:
    return times(l, jax.nn.softplus(-x)) + times(1 - l, jax.nn.softplus(x))
