"""Connectionist temporal classification: labels in order, at unknown times.

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

_NEVER = -1e30  # times any number of steps it is still finite in float32


def ctc_loss(
    logits: Numbers,
    logit_paddings: Numbers,
    labels: Numbers,
    label_paddings: Numbers,
    *,
    blank_id: int = 0,
    log_epsilon: Real = -1e5,
) -> Float[Array, " batch"]:
    """Minus the log-probability of the labels, over all times at which they may stand.

    At each time one class is said, which may be a blank. A label may last; between two
    equal labels there must be a blank; blanks and repetitions are then left out.

    Args:
        logits: `[batch, times, classes]`.
        logit_paddings: `[batch, times]`; 1 where there is no time, 0 where there is.
        labels: `[batch, labels]`, the numbers of classes.
        label_paddings: `[batch, labels]`; 1 where there is no label, 0 where there is.
            Labels stand first, and padding after them.
        blank_id: the class of blanks.
        log_epsilon: the logarithm taken for that of zero, below 0. Labels that cannot
            be said in the time given have a loss of about minus this.
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
    """`ctc_loss`, and the log-probabilities of having come so far.

    With `b` the log-probability of a blank and `e_n` that of label `n` at time `t`:

        rest_n <- log(exp rest_n + exp said_n)        where label n + 1 is another one
        said_n <- e_n + log(exp rest_{n-1} + exp said_n)
        rest_n <- b   + log(exp rest_n + exp said_n)

    The first line is a step without time, and the two others see the values before
    them. Where label `n + 1` is the same as `n`, `said_n` enters `rest_n` in the third
    line only, with a blank.

    Args:
        logits, logit_paddings, labels, label_paddings, blank_id, log_epsilon: as for
            `ctc_loss`.

    Returns the loss `[batch]`; `rest` `[times, batch, labels + 1]`, of having said the
    first `n` labels with none of them going on; and `said` `[times, batch, labels]`,
    of saying label `n` now. At the last time, `rest` also holds what was said there.
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
    # The logarithm of zero. Of infinity there would be no slopes.
    zero = jnp.maximum(jnp.asarray(log_epsilon, x.dtype), _NEVER)
    batch, _, classes = x.shape
    count = l.shape[1]

    # Padding may hold anything, also NaN: it must reach neither values nor slopes.
    x = jax.nn.log_softmax(jnp.where(no_time[..., None], 0, x))
    x = jnp.where(jnp.isneginf(x), zero, x)
    index = l.astype(jnp.int32)
    index = jnp.where(index < 0, classes, index)  # from the end is not meant
    said_now = jnp.take_along_axis(x, index[:, None, :], 2, mode="fill", fill_value=0)
    blank_now = x[:, :, blank_id, None]
    same = jnp.pad(l[:, 1:] == l[:, :-1], ((0, 0), (0, min(1, count))))
    if_same, if_other = jnp.where(same, 0, zero), jnp.where(same, zero, 0)

    def step(carry: tuple[Array, Array], now: tuple[Array, ...]) -> tuple:
        rest, said = carry
        blank, label, padded = now
        ready = _add_after(rest, said + if_other)
        new_said = label + jnp.logaddexp(ready[:, :-1], said)
        new_rest = _add_after(ready + blank, said + blank + if_same)
        rest = jnp.where(padded, rest, new_rest)
        said = jnp.where(padded, said, new_said)
        return (rest, said), (rest, said)

    # Before the first time nothing has been said, for certain.
    begin = jnp.full((batch, count + 1), zero).at[:, 0].set(0)
    times_first = (blank_now, said_now, no_time[..., None])
    (rest, said), (rests, saids) = jax.lax.scan(
        step,
        (begin, jnp.full((batch, count), zero)),
        tuple(jnp.moveaxis(a, 1, 0) for a in times_first),
    )
    final = _add_after(rest, said)
    lengths = count - jnp.sum(no_label, 1, dtype=jnp.int32)
    loss = -jnp.take_along_axis(final, lengths[:, None], 1)[:, 0]
    return loss, rests.at[-1:].set(final[None]), saids


def _padded(who: str, name: str, paddings: Numbers) -> Array:
    """Which are padding: ones, of any dtype."""
    return array(who, name, paddings).astype(jnp.float32) > 0.5


def _add_after(rest: Array, said: Array) -> Array:
    """`rest_n`, with what was said of label `n` added to it."""
    return jnp.concatenate([rest[:, :1], jnp.logaddexp(rest[:, 1:], said)], 1)


def _check_shapes(
    name: str, x: Array, no_time: Array, l: Array, no_label: Array, blank_id: int
) -> None:
    found = (
        f"{name}: found logits {x.shape}, logit_paddings {no_time.shape}, labels "
        f"{l.shape}, label_paddings {no_label.shape}, expected "
    )
    if x.ndim != 3 or l.ndim != 2 or l.shape[0] != x.shape[0]:
        raise ValueError(found + "[batch, times, classes] and [batch, labels].")
    if no_time.shape != x.shape[:2] or no_label.shape != l.shape:
        raise ValueError(found + "[batch, times] and [batch, labels].")
    number = isinstance(blank_id, int | np.integer)
    if not (number and 0 <= blank_id < x.shape[2]):
        raise check.WrongArgument(
            f"{name}: blank_id is {blank_id!r}, and there are {x.shape[2]} "
            f"classes, expected a number from 0 to {x.shape[2] - 1}."
        )
