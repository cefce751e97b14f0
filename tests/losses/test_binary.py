"""Binary losses, against Optax and scikit-learn."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import sklearn.metrics

from steepest import losses

from ..unusual import ODD
from .agree import agree, finite, half, same

X = np.array([[-200.0, -3.0, -1.0, 0.0], [0.7, 1.0, 20.0, 200.0]])
YES = np.array([[0.0, 1.0, 0.0, 1.0], [1.0, 1.0, 0.0, 1.0]])
SIGN = 2 * YES - 1
CROSS = ["sigmoid_binary_cross_entropy", "sigmoid_focal_loss"]
MARGIN = ["hinge_loss", "perceptron_loss"]


@pytest.mark.parametrize("name", CROSS)
def test_cross_entropies(name):
    agree(name, X, YES)
    agree(name, X, 0.8 * YES[0] + 0.1, wrt=(0, 1))
    plain = getattr(losses, name)(jnp.asarray(X), jnp.asarray(YES))
    for dtype in (int, bool):
        same(getattr(losses, name)(jnp.asarray(X), jnp.asarray(YES, dtype)), plain, 0)


FOCAL = {
    "alpha": {"alpha": 0.25},
    "alpha 0": {"alpha": 0.0},
    "gamma 0": {"gamma": 0.0},
    "gamma 1": {"gamma": 1},
    "gamma 3": {"gamma": 3.0, "alpha": 0.9},
    "arrays": {
        "gamma": np.array([0.0, 1.0, 2.0, 3.0]),
        "alpha": np.array([[0.2], [0.3]]),
    },
}


@pytest.mark.parametrize("options", FOCAL.values(), ids=FOCAL)
def test_focal_options(options):
    agree("sigmoid_focal_loss", X, YES, **options)


def test_focal_slopes_where_nothing_is_missed():
    x = jnp.array([-200.0, 200.0, 0.0])
    yes = jnp.array([0.0, 1.0, 1.0])
    f = losses.sigmoid_focal_loss
    finite(lambda x: f(x, yes, gamma=0.5), x)
    finite(lambda x, gamma: f(x, yes, gamma=gamma), x, jnp.asarray(0.3))


def test_certainty_that_is_right_costs_nothing():
    x = jnp.array([jnp.inf, -jnp.inf])
    right = jnp.array([1.0, 0.0])
    for f in (losses.sigmoid_binary_cross_entropy, losses.sigmoid_focal_loss):
        assert (f(x, right) == 0).all()
        assert (f(x, 1 - right) == jnp.inf).all()
        finite(partial(f, labels=right), x)


@pytest.mark.parametrize("name", MARGIN)
def test_margins(name):
    agree(name, X, SIGN, wrt=(0, 1))
    agree(name, np.array([1.0, -1.0, 0.0]), np.array([1.0, -1.0, 1.0]))
    whole = jnp.array([1, -2]), jnp.array([1, 1])
    assert getattr(losses, name)(*whole).dtype == jnp.int32


def test_hinge_broadcasts_and_perceptron_does_not():
    agree("hinge_loss", X, SIGN[0], wrt=(0, 1))
    with pytest.raises(ValueError, match=r"perceptron_loss: .* equal shapes"):
        losses.perceptron_loss(jnp.ones(3), jnp.ones(()))
    with pytest.raises(TypeError, match=r"hinge_loss: .* broadcast"):
        losses.hinge_loss(jnp.ones(3), jnp.ones(2))


def test_sparsemax():
    x = np.array([-3.0, -1.0, -0.5, 0.0, 0.5, 1.0, 3.0])
    agree("sparsemax_loss", x, np.array([[0], [1]]))
    agree("sparsemax_loss", x, np.array([[0.5], [2.0]]))
    assert losses.sparsemax_loss(jnp.array([1, 2]), 0).dtype == jnp.float32
    infinite = jnp.array([-jnp.inf, jnp.inf])
    np.testing.assert_array_equal(losses.sparsemax_loss(infinite, 0), [0, jnp.inf])
    slope = jax.grad(lambda x: losses.sparsemax_loss(x, 0).sum())(infinite)
    np.testing.assert_array_equal(slope, [0, 1])


@pytest.mark.parametrize("name", [*CROSS, *MARGIN, "sparsemax_loss"])
def test_half_precision(name):
    for pair in ("bfloat16 bfloat16", "float16 float32", "bfloat16 int32"):
        x, y = (jnp.asarray(a, d) for a, d in zip((X, YES), pair.split(), strict=True))
        half(name, x, y)


def test_focal_dtype_is_that_of_its_numbers_too():
    x, yes = jnp.asarray(X, jnp.bfloat16), jnp.asarray(YES)
    assert losses.sigmoid_focal_loss(x, yes, alpha=0.3).dtype == jnp.bfloat16
    wider = losses.sigmoid_focal_loss(x, yes, gamma=jnp.float32(2))
    assert wider.dtype == jnp.float32


@pytest.mark.parametrize("name", CROSS)
def test_integer_logits_are_refused(name):
    with pytest.raises(TypeError, match=f"{name}: logits has dtype int32"):
        getattr(losses, name)(jnp.arange(3), jnp.ones(3))


def test_negative_gamma_is_refused():
    with pytest.raises(ODD, match="gamma is -1"):
        losses.sigmoid_focal_loss(jnp.ones(3), jnp.ones(3), gamma=-1.0)


def test_against_scikit_learn():
    x = np.array([-2.0, -0.4, 0.3, 1.2])
    yes = np.array([0, 1, 1, 0])
    p = 1 / (1 + np.exp(-x))
    ours = losses.sigmoid_binary_cross_entropy(jnp.asarray(x), jnp.asarray(yes))
    assert np.isclose(ours.mean(), sklearn.metrics.log_loss(yes, p), rtol=1e-6)
    ours = losses.hinge_loss(jnp.asarray(x), jnp.asarray(2 * yes - 1))
    assert np.isclose(ours.mean(), sklearn.metrics.hinge_loss(yes, x), rtol=1e-6)
