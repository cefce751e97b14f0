"""Connectionist temporal classification: ordered labels at unknown times.

Graves, Fernandez, Gomez and Schmidhuber, Connectionist temporal classification, 2006
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .. import check
from ..core import Real
from ..numerics import promoted
from ._arrays import array, Numbers

_NEVER = -1e30  # finite in float32, even after many steps


def ctc_loss(
    logits: Numbers,
    logit_paddings: Numbers,
    labels: Numbers,
    label_paddings: Numbers,
    *,
    blank_id: int = 0,
    log_epsilon: Real = -1e5,
) -> Float[Array, " batch"]:
    """The negative log-probability of the labels, summed over all alignments.

    At each time one class is emitted, which may be a blank. A label may last several
    times; two equal labels in a row need a blank between them. Repetitions, and then
    blanks, are removed.

    Args:
        logits: `[batch, times, classes]`.
        logit_paddings: `[batch, times]`; 1 for padding, 0 elsewhere.
        labels: `[batch, labels]`, class indices.
        label_paddings: `[batch, labels]`; 1 for padding, 0 elsewhere. Padding comes
            after the labels.
        blank_id: the class of blanks.
        log_epsilon: used as the logarithm of zero, below 0. Labels that do not fit into
            the available times have a loss of about `-log_epsilon`.
    """
    return _ctc(
        "ctc_loss",
        logits,
        logit_paddings,
        labels,
        label_paddings,
        blank_id,
        log_epsilon,
    )[0]


def ctc_loss_with_forward_probs(
    logits: Numbers,
    logit_paddings: Numbers,
    labels: Numbers,
    label_paddings: Numbers,
    *,
    blank_id: int = 0,
    log_epsilon: Real = -1e5,
) -> tuple[
    Float[Array, " batch"],
    Float[Array, "times batch labels_and_one"],
    Float[Array, "times batch labels"],
]:
    """`ctc_loss`, and the log-probabilities of each prefix of the labels.

    With `b` the log-probability of a blank and `e_n` that of label `n` at time `t`:

        rest_n <- log(exp rest_n + exp emit_n)        if label n + 1 is different
        emit_n <- e_n + log(exp rest_{n-1} + exp emit_n)
        rest_n <- b   + log(exp rest_n + exp emit_n)

    The first line takes no time; the two others use the values before them. If labels
    `n` and `n + 1` are equal, `emit_n` enters `rest_n` in the third line only, with a
    blank.

    Args:
        logits: `[batch, times, classes]`.
        logit_paddings: `[batch, times]`; 1 for padding, 0 elsewhere.
        labels: `[batch, labels]`, class indices.
        label_paddings: `[batch, labels]`; 1 for padding, 0 elsewhere. Padding comes
            after the labels.
        blank_id: the class of blanks.
        log_epsilon: used as the logarithm of zero, below 0. Labels that do not fit into
            the available times have a loss of about `-log_epsilon`.

    Returns the loss `[batch]`; `rest` `[times, batch, labels + 1]`, of having emitted
    the first `n` labels, now at a blank; and `emit` `[times, batch, labels]`, of
    emitting label `n` now. At the last time `rest` also includes `emit`.
    """
    return _ctc(
        "ctc_loss_with_forward_probs",
        logits,
        logit_paddings,
        labels,
        label_paddings,
        blank_id,
        log_epsilon,
    )


def _ctc(
    name: str,
    logits: Numbers,
    logit_paddings: Numbers,
    labels: Numbers,
    label_paddings: Numbers,
    blank_id: int,
    log_epsilon: Real,
) -> tuple[Array, Array, Array]:
    x = array(name, "logits", logits)
    l = array(name, "labels", labels)
    no_time = _padded(name, "logit_paddings", logit_paddings)
    no_label = _padded(name, "label_paddings", label_paddings)
    (log_epsilon,) = check.negative(name, log_epsilon=log_epsilon)
    _check_shapes(name, x, no_time, l, no_label, blank_id)
    x = x.astype(promoted(x.dtype, jnp.zeros((), float).dtype))
    # The logarithm of zero. Infinity would have no finite gradient.
    zero = jnp.maximum(jnp.asarray(log_epsilon, x.dtype), _NEVER)
    batch, count = l.shape
    label_now, blank_now = _emissions(x, l, no_time, blank_id, zero)
    same = jnp.pad(l[:, 1:] == l[:, :-1], ((0, 0), (0, min(1, count))))
    if_same, if_other = jnp.where(same, 0, zero), jnp.where(same, zero, 0)

    def step(carry: tuple[Array, Array], now: tuple[Array, ...]) -> tuple:
        rest, emit = carry
        blank, label, padded = now
        ready = _add_after(rest, emit + if_other)
        new_emit = label + jnp.logaddexp(ready[:, :-1], emit)
        new_rest = _add_after(ready + blank, emit + blank + if_same)
        rest = jnp.where(padded, rest, new_rest)
        emit = jnp.where(padded, emit, new_emit)
        return (rest, emit), (rest, emit)

    # Before the first time nothing has been emitted, with probability 1.
    begin = jnp.full((batch, count + 1), zero).at[:, 0].set(0)
    times_first = (blank_now, label_now, no_time[..., None])
    (rest, emit), (rests, emits) = jax.lax.scan(
        step,
        (begin, jnp.full((batch, count), zero)),
        tuple(jnp.moveaxis(a, 1, 0) for a in times_first),
    )
    final = _add_after(rest, emit)
    lengths = count - jnp.sum(no_label, 1, dtype=jnp.int32)
    loss = -jnp.take_along_axis(final, lengths[:, None], 1)[:, 0]
    return loss, rests.at[-1:].set(final[None]), emits


def _emissions(
    x: Array, l: Array, no_time: Array, blank_id: int, zero: Array
) -> tuple[Array, Array]:
    """The log-probabilities of each label and of a blank, at each time."""
    # Padding may hold anything, even NaN: it must reach neither values nor gradients.
    x = jax.nn.log_softmax(jnp.where(no_time[..., None], 0, x))
    x = jnp.where(jnp.isneginf(x), zero, x)
    index = l.astype(jnp.int32)
    index = jnp.where(index < 0, x.shape[2], index)  # out of range, not from the end
    label = jnp.take_along_axis(x, index[:, None, :], 2, mode="fill", fill_value=0)
    return label, x[:, :, blank_id, None]


def _padded(name: str, argument: str, paddings: Numbers) -> Array:
    """Whether each entry is padding: ones, of any dtype."""
    return array(name, argument, paddings).astype(jnp.float32) > 0.5


def _add_after(rest: Array, emit: Array) -> Array:
    """`rest_n`, with the probability of `emit_n` added to it."""
    return jnp.concatenate([rest[:, :1], jnp.logaddexp(rest[:, 1:], emit)], 1)


def _check_shapes(
    name: str, x: Array, no_time: Array, l: Array, no_label: Array, blank_id: int
) -> None:
    shapes = (
        f"{name}: the shapes are logits {x.shape}, logit_paddings {no_time.shape}, "
        f"labels {l.shape}, label_paddings {no_label.shape}, expected "
    )
    if x.ndim != 3 or l.ndim != 2 or l.shape[0] != x.shape[0]:
        raise ValueError(
            shapes + "logits [batch, times, classes] and labels [batch, labels]."
        )
    if no_time.shape != x.shape[:2] or no_label.shape != l.shape:
        raise ValueError(shapes + "paddings [batch, times] and [batch, labels].")
    number = isinstance(blank_id, int | np.integer)
    if not (number and 0 <= blank_id < x.shape[2]):
        raise check.WrongArgument(
            f"{name}: blank_id is {blank_id!r}, expected a whole number from 0 to "
            f"{x.shape[2] - 1}: there are {x.shape[2]} classes."
        )
