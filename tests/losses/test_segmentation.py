"""Segmentation losses, against Optax and counts of pixels."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special

from steepest import losses

from .agree import agree, finite, half, run, same, theirs

rng = np.random.default_rng(0)
X = rng.normal(size=(2, 2, 2, 3))
HOT = np.eye(3)[rng.integers(0, 3, (2, 2, 2))]
MISSING = HOT * np.array([1.0, 0.0, 1.0])
P = scipy.special.softmax(X, -1)
DICE = {
    "plain": {},
    "none": {"reduction": "none"},
    "sum": {"reduction": "sum"},
    "smooth": {"smooth": 0.0, "reduction": "none"},
    "Tversky": {"alpha": 0.3, "beta": 0.7, "smooth": 0.2},
    "background": {"ignore_background": True},
    "background none": {"ignore_background": True, "reduction": "none"},
    "weights": {"class_weights": np.array([1.0, 2.0, 3.0])},
    "weights, background": {
        "class_weights": np.array([1.0, 2.0, 3.0]),
        "ignore_background": True,
        "reduction": "sum",
    },
    "axis": {"axis": 1, "reduction": "none"},
    "batch and space": {"axis": (0, 1, 2)},
    "classes": {"axis": -1, "reduction": "none"},
}


@pytest.mark.parametrize("options", DICE.values(), ids=DICE)
def test_dice(options):
    agree("dice_loss", X, HOT, wrt=(0, 1), **options)


@pytest.mark.parametrize("name", ["dice_loss", "multiclass_generalized_dice_loss"])
def test_probabilities(name):
    # Not compiled: Optax branches on the values.
    f, p, t = getattr(losses, name), jnp.asarray(P), jnp.asarray(MISSING)
    ours = f(p, t, apply_softmax=False)
    same(ours, theirs(name)(p, t, apply_softmax=False), 1e-5)
    same(run(partial(f, apply_softmax=False), p, t), ours, 1e-6)
    same(f(jnp.asarray(X), t), ours, 1e-5)


def test_dice_shapes():
    agree("dice_loss", X[0, 0], HOT[0, 0])
    agree("dice_loss", X[0, 0, 0], HOT[0, 0, 0])
    agree("dice_loss", X[..., :1], HOT[..., :1])
    agree("dice_loss", X[..., :1], HOT[..., 0], ignore_background=True)
    agree("dice_loss", X[..., 0], HOT[..., :1])
    x = jnp.asarray(X)
    plain = losses.dice_loss(x, jnp.asarray(HOT))
    for dtype in (int, bool):
        same(losses.dice_loss(x, jnp.asarray(HOT, dtype)), plain, 0)


@pytest.mark.parametrize(
    "options", [{}, {"smooth": 0.0}, {"ignore_background": True}], ids=str
)
@pytest.mark.parametrize("targets", ["hot", "missing", "soft"])
def test_generalized_dice(options, targets):
    t = {"hot": HOT, "missing": MISSING, "soft": 0.001 * HOT}[targets]
    agree("multiclass_generalized_dice_loss", X, t, **options)


def test_generalized_dice_slopes_in_targets():
    agree("multiclass_generalized_dice_loss", X, HOT, wrt=(0, 1))
    agree("multiclass_generalized_dice_loss", X[..., :1], HOT[..., :1])


@pytest.mark.parametrize(
    "shape", [(2, 2, 2), (4, 2), (8,), (2, 4, 1), (8, 1), (1, 8)], ids=str
)
def test_binary_dice(shape):
    x, t = X[..., 0].reshape(shape), HOT[..., 0].reshape(shape)
    agree("binary_dice_loss", x, t, wrt=(0, 1), smooth=0.3)


def test_binary_dice_axes_of_classes():
    agree("binary_dice_loss", X[..., :1], HOT[..., 0])
    agree("binary_dice_loss", X[..., 0], HOT[..., :1])


def test_binary_dice_of_probabilities():
    # Optax raises an error for these: it expects one class to sum to 1.
    x, t = jnp.asarray(X[..., 0]), jnp.asarray(HOT[..., 0])
    ours = losses.binary_dice_loss(jax.nn.sigmoid(x), t, apply_sigmoid=False)
    same(ours, losses.binary_dice_loss(x, t), 1e-6)
    with pytest.raises(ValueError, match="numbers from 0 to 1"):
        losses.binary_dice_loss(x, t, apply_sigmoid=False)


def test_by_counting():
    """Three pixels predicted, two true, both of them predicted: Dice is 4 / 5."""
    p = jnp.array([[1.0, 1.0, 1.0, 0.0]])
    t = jnp.array([[1.0, 1.0, 0.0, 0.0]])
    ours = losses.binary_dice_loss(p, t, smooth=0.0, apply_sigmoid=False)
    assert np.isclose(ours[0], 1 - 4 / 5, rtol=1e-6)
    both = [jnp.stack([1 - x, x], -1) for x in (p, t)]
    jaccard = losses.dice_loss(
        *both, smooth=0.0, alpha=1, beta=1, apply_softmax=False, reduction="none"
    )
    np.testing.assert_allclose(jaccard[0], [1 - 1 / 2, 1 - 2 / 3], rtol=1e-6)


def test_nothing_there_and_nothing_predicted():
    zero = jnp.zeros((2, 3))
    f = lambda p: losses.binary_dice_loss(p, zero, smooth=0.0, apply_sigmoid=False)
    assert (f(zero) == 0).all()
    finite(f, zero)


@pytest.mark.parametrize(
    "name", ["dice_loss", "binary_dice_loss", "multiclass_generalized_dice_loss"]
)
def test_half_precision(name):
    x, t = jnp.asarray(X, jnp.bfloat16), jnp.asarray(HOT, jnp.bfloat16)
    for targets in (t, t.astype(jnp.float32), t.astype(bool)):
        half(name, x, targets)


def test_probabilities_of_half_precision_are_accepted():
    p = jnp.asarray(P, jnp.bfloat16)
    losses.dice_loss(p, jnp.asarray(HOT), apply_softmax=False)


def test_refusals():
    x, t = jnp.asarray(X, jnp.float32), jnp.asarray(HOT, jnp.float32)
    with pytest.raises(ValueError, match="reduction is 'x'"):
        losses.dice_loss(x, t, reduction="x")
    with pytest.raises(ValueError, match="equal shapes"):
        losses.dice_loss(x, t[0])
    with pytest.raises(ValueError, match="equal shapes"):
        losses.multiclass_generalized_dice_loss(x[..., :1], t[..., 0])
    with pytest.raises(ValueError, match="sums over classes"):
        losses.dice_loss(x, t, apply_softmax=False)
    for weights in (jnp.ones(2), jnp.ones((2, 3)), jnp.ones(())):
        with pytest.raises(ValueError, match="class_weights ha"):
            losses.dice_loss(x, t, class_weights=weights)
    with pytest.raises(ValueError, match="class_weights have shape"):
        losses.dice_loss(x, t, class_weights=jnp.ones(3), axis=-1)
    with pytest.raises(ValueError, match="axis is 7"):
        losses.dice_loss(x, t, axis=7)
