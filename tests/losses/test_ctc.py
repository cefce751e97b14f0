"""CTC, against Optax and against enumerating all sequences."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special

from steepest import losses

from .agree import agree, finite, half, run, same

rng = np.random.default_rng(0)
LOGITS = rng.normal(size=(3, 5, 4))
NO_TIME = np.zeros((3, 5))
LABELS = np.array([[1, 2, 2], [3, 1, 0], [2, 2, 2]])
NO_LABEL = np.array([[0.0, 0, 0], [0, 0, 1], [0, 1, 1]])
LATE = np.array([[0.0, 0, 0, 0, 0], [0, 0, 0, 1, 1], [0, 0, 1, 1, 1]])
CASES = {
    "padded times": (LOGITS, LATE, LABELS, NO_LABEL, {}),
    "padding in the middle": (LOGITS, np.roll(LATE, 2, 1), LABELS, NO_LABEL, {}),
    "blank": (LOGITS, NO_TIME, LABELS, NO_LABEL, {"blank_id": 3}),
    "labels from nowhere": (
        LOGITS,
        NO_TIME,
        LABELS - 2,
        NO_LABEL,
        {"log_epsilon": -50.0},
    ),
    "no room for labels": (LOGITS, NO_TIME, LABELS[:, :0], NO_LABEL[:, :0], {}),
    "neither times nor labels": (LOGITS, LATE**0, LABELS * 0, NO_LABEL**0, {}),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_as_optax(case):
    *args, options = case
    agree("ctc_loss_with_forward_probs", *args, **options)


def test_the_loss_alone():
    agree("ctc_loss", LOGITS, LATE, LABELS, NO_LABEL, blank_id=1, log_epsilon=-1e4)


def _by_hand(log_p, label, blank):
    """Minus the log of the sum over all sequences that collapse to the label."""
    total = []
    for path in itertools.product(range(log_p.shape[1]), repeat=len(log_p)):
        short = [k for k, _ in itertools.groupby(path) if k != blank]
        if short == list(label):
            total.append(sum(log_p[t, k] for t, k in enumerate(path)))
    return -scipy.special.logsumexp(total)


@pytest.mark.parametrize("blank", [0, 2])
def test_against_all_sequences(blank):
    sequences = [(), (1,), (1, 1), (1, 3), (3, 1, 3), (1, 1, 3)]
    logits = LOGITS[0]
    ours = losses.ctc_loss(
        jnp.asarray(np.stack([logits] * 6)),
        jnp.zeros((6, 5)),
        jnp.asarray([[*label, 0, 0, 0][:3] for label in sequences]),
        jnp.asarray([np.arange(3) >= len(label) for label in sequences]),
        blank_id=blank,
    )
    log_p = scipy.special.log_softmax(logits, -1)
    expected = [_by_hand(log_p, label, blank) for label in sequences]
    np.testing.assert_allclose(ours, expected, rtol=1e-5)


def test_impossible_labels():
    args = [jnp.asarray(x) for x in (NO_TIME[:, :2], LABELS, NO_LABEL)]
    logits = jnp.asarray(LOGITS[:, :2], jnp.float32)
    total = lambda x: losses.ctc_loss(x, *args).sum()
    value, slope = run(jax.value_and_grad(total), logits)
    assert 1e5 < value < 1.01e5
    assert np.isfinite(slope).all()
    agree("ctc_loss", LOGITS[:, :2], NO_TIME[:, :2], LABELS, NO_LABEL, wrt=())


@pytest.mark.parametrize("log_epsilon", [-1e5, -np.inf])
def test_classes_without_probability(log_epsilon):
    args = [jnp.asarray(x) for x in (NO_TIME, LABELS[:1].repeat(3, 0), NO_LABEL * 0)]
    logits = jnp.asarray(LOGITS, jnp.float32).at[0, :, 3].set(-jnp.inf)
    f = lambda x: losses.ctc_loss(x, *args, log_epsilon=log_epsilon)
    without = losses.ctc_loss(
        logits[:1, :, :3], *(a[:1] for a in args), log_epsilon=log_epsilon
    )
    same(f(logits)[:1], without, 1e-5)
    finite(f, logits)
    never = logits.at[0, :, 2].set(-jnp.inf)
    assert run(f, never)[0] >= 1e5
    finite(f, never)


def test_padding_may_hold_anything():
    args = [jnp.asarray(x) for x in (LATE, LABELS, NO_LABEL)]
    f = lambda x: losses.ctc_loss(x, *args)
    clean = jnp.asarray(LOGITS, jnp.float32)
    dirty = jnp.where(jnp.asarray(LATE)[..., None] > 0, jnp.nan, clean)
    same(f(dirty), f(clean), 1e-6)
    finite(f, dirty)


@pytest.mark.parametrize("wide", [False, True], ids=["x32", "x64"])
def test_dtypes(wide):
    with jax.enable_x64(wide):
        half(
            "ctc_loss",
            jnp.asarray(LOGITS, "bfloat16" if wide else "float16"),
            jnp.asarray(NO_TIME, bool),
            jnp.asarray(LABELS),
            jnp.asarray(NO_LABEL, int),
        )


def test_shapes_of_nothing():
    f = losses.ctc_loss
    none = f(jnp.ones((0, 5, 4)), jnp.ones((0, 5)), LABELS[:0], jnp.ones((0, 3)))
    assert none.shape == (0,)
    loss, rest, emit = losses.ctc_loss_with_forward_probs(
        jnp.ones((3, 0, 4)), jnp.ones((3, 0)), LABELS, jnp.ones((3, 3))
    )
    assert (loss == 0).all()
    assert rest.shape == (0, 3, 4) and emit.shape == (0, 3, 3)


def test_refusals():
    x, t, l, p = (jnp.asarray(a) for a in (LOGITS, NO_TIME, LABELS, NO_LABEL))
    for args in (
        (x[0], t[0], l[0], p[0]),
        (x, t[:, :3], l, p),
        (x, t, l, p[:, :2]),
        (x, t, l[:1], p[:1]),
        (x, t[:1], l, p),
    ):
        with pytest.raises(ValueError, match="ctc_loss: the shapes are logits"):
            losses.ctc_loss(*args)
    for blank in (-1, 4):
        with pytest.raises(TypeError, match=f"blank_id is {blank}"):
            losses.ctc_loss(x, t, l, p, blank_id=blank)
