"""Multiclass losses, against Optax and SciPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special

from steepest import losses

from .agree import agree, finite, half, run, same

rng = np.random.default_rng(0)
X = rng.normal(size=(4, 2, 3)) * 2
P = scipy.special.softmax(rng.normal(size=(4, 2, 3)), -1)
HOT = np.eye(3)[rng.integers(0, 3, (4, 2))]
SOFT = [
    "softmax_cross_entropy",
    "poly_loss_cross_entropy",
    "safe_softmax_cross_entropy",
]
INTEGER = "softmax_cross_entropy_with_integer_labels"
MARGIN = ["multiclass_hinge_loss", "multiclass_perceptron_loss"]
BY_NUMBER = [INTEGER, *MARGIN, "multiclass_sparsemax_loss"]
OPTIONS = {
    "first": {"axis": 0},
    "two axes": {"axis": (0, 2)},
    "all axes": {"axis": None},
    "no axis": {"axis": ()},
    "mask of all": {"where": rng.random((4, 2, 3)) > 0.4},
    "mask of one": {"where": np.array(False)},
    "axis and mask": {"axis": 0, "where": rng.random((4, 2, 3)) > 0.4},
}


@pytest.mark.parametrize("name", SOFT)
def test_soft_labels(name):
    agree(name, X, HOT, wrt=(0, 1))
    agree(name, X, 2 * P[0], wrt=(0, 1))


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_soft_options(options):
    """`poly_loss_cross_entropy` calls `softmax_cross_entropy` with the same options."""
    wrt = (0,) if "where" in options else (0, 1)  # for masked labels Optax's are NaN
    agree("poly_loss_cross_entropy", X, P, wrt=wrt, **options)


def test_a_mask_of_examples():
    rows = np.arange(8).reshape(4, 2) % 3 > 0
    agree("softmax_cross_entropy", X, P, where=rows)
    agree("softmax_cross_entropy", X, P, axis=1, where=rng.random((4, 3)) > 0.4)
    full = jnp.asarray(np.repeat(rows[..., None], 3, -1))
    x, p = jnp.asarray(X), jnp.asarray(P)
    ours = losses.poly_loss_cross_entropy(x, p, where=jnp.asarray(rows))
    same(ours, losses.poly_loss_cross_entropy(x, p, where=full), 1e-6)


@pytest.mark.parametrize("epsilon", [0.0, -1, np.array([[0.5, 2.0]])])
def test_poly_epsilons(epsilon):
    agree("poly_loss_cross_entropy", X, P, wrt=(0, 1), epsilon=epsilon)


@pytest.mark.parametrize("name", SOFT)
def test_a_class_without_label_and_probability_costs_nothing(name):
    f = getattr(losses, name)
    x, hot = jnp.array([1.0, -jnp.inf, 0.0]), jnp.array([1.0, 0.0, 0.0])
    finite(f, x, hot)
    same(f(x, hot), f(x[::2], hot[::2]), 1e-6)
    assert f(x, jnp.array([0.0, 1.0, 0.0])) == jnp.inf


@pytest.mark.parametrize("name", SOFT[:2])
def test_what_is_masked_is_not_seen(name):
    f = getattr(losses, name)
    x, hot = jnp.array([jnp.nan, 1.0, 2.0]), jnp.array([0.0, 1.0, 0.0])
    where = jnp.array([False, True, True])
    finite(lambda *a: f(*a, where=where), x, hot)
    same(f(x, hot, where=where), f(x[1:], hot[1:]), 1e-6)
    finite(lambda *a: f(*a, where=jnp.zeros(3, bool)), x, hot)


NUMBERED = {
    "last": (X, np.array([[0, 1], [2, 0], [1, 1], [-1, -3]]), {}),
    "broadcast": (X, np.array([[0, 1]]), {}),
    "logits broadcast": (X[:1], np.array([[0, 1], [2, 2]]), {}),
    "one": (X[0, 0], np.array(2), {}),
    "first": (X, np.array([[0, 1, 3], [2, 2, 0]]), {"axis": 0}),
    "two axes": (X, np.array([11, 5]), {"axis": (0, 2)}),
    "two axes, other order": (X, np.array([11, 5]), {"axis": (2, 0)}),
    "mask": (X, np.ones((4, 2), int), {"where": rng.random((4, 2, 3)) > 0.4}),
    "mask of examples": (
        X,
        np.ones((4, 2), int),
        {"where": np.arange(8).reshape(4, 2) % 3 > 0},
    ),
    "mask, two axes": (
        X,
        np.array([0, 1, 5, 3]),
        {"axis": (1, 2), "where": np.array([True, False, True, True])},
    ),
    "out of range but masked": (
        X[:, 0],
        np.array([7, -9, 0, 1]),
        {"where": np.array([False, False, True, True])},
    ),
}


@pytest.mark.parametrize("x, labels, options", NUMBERED.values(), ids=NUMBERED)
def test_integer_labels(x, labels, options):
    agree(INTEGER, x, labels, **options)


def test_integer_labels_out_of_range_and_infinite_logits():
    x = jnp.array([1.0, -jnp.inf, 0.0])
    f = losses.softmax_cross_entropy_with_integer_labels
    assert np.isnan(f(x, jnp.array(3))) and np.isnan(f(x, jnp.array(-4)))
    assert f(x, 1) == jnp.inf
    finite(lambda x: f(x, 0), x)
    hidden = jnp.array([[jnp.nan, 1.0], [1.0, 2.0]])
    where = jnp.array([False, True])
    finite(lambda x: f(x, jnp.array([0, 1]), where=where), hidden)


def test_large_logits_keep_their_digits():
    x = jnp.array([1e6, 1e6 + 0.5])
    ours = losses.softmax_cross_entropy_with_integer_labels(x, 1)
    assert np.isclose(ours, np.log1p(np.exp(-0.5)), rtol=1e-6)


@pytest.mark.parametrize("name", MARGIN)
def test_margins(name):
    labels = np.array([[0, 1], [2, 0], [1, 1], [5, -1]])
    agree(name, X, labels)
    agree(name, X[0], np.array([[0], [2]]))
    agree(name, np.array([[1.0, 0.0, -3.0], [0.0, 0.0, 0.0]]), np.array([0.0, 0.0]))
    agree(name, X[..., :1], np.zeros((4, 2), int))


def test_sparsemax():
    labels = np.array([0, 2, 1, 1])
    agree("multiclass_sparsemax_loss", X[:, 0], labels[:, None])
    agree("multiclass_sparsemax_loss", X[:, 0], np.array([-1, -9, 3, 99]))
    agree("multiclass_sparsemax_loss", np.zeros((4, 3)), labels)
    batch = losses.multiclass_sparsemax_loss(
        jnp.asarray(X), jnp.asarray(np.tile(labels[:, None], 2))
    )
    same(batch[:, 0], losses.multiclass_sparsemax_loss(X[:, 0], labels), 1e-6)
    same(batch[0, 0], losses.multiclass_sparsemax_loss(X[0, 0], labels[0]), 1e-6)


def test_sparsemax_of_two_classes_is_the_binary_one():
    x = jnp.linspace(-3, 3, 13)
    two = jnp.stack([jnp.zeros(13), x], -1)
    for label in (0, 1):
        ours = losses.multiclass_sparsemax_loss(two, jnp.full(13, label))
        np.testing.assert_allclose(ours, losses.sparsemax_loss(x, label), atol=1e-6)


@pytest.mark.parametrize("name", BY_NUMBER)
def test_infinite_scores(name):
    f = getattr(losses, name)
    x = jnp.array([[1.0, -jnp.inf, 0.0]])
    finite(lambda x: f(x, jnp.array([0])), x)
    assert (f(x, jnp.array([1])) == jnp.inf).all()


@pytest.mark.parametrize("name", [*SOFT, *BY_NUMBER])
@pytest.mark.parametrize("wide", [False, True], ids=["x32", "x64"])
def test_half_precision(name, wide):
    with jax.enable_x64(wide):
        dtype = "bfloat16" if wide else "float16"
        labels = jnp.asarray(HOT[:, 0], dtype)
        labels = labels if name in SOFT else jnp.argmax(labels, -1)
        half(name, jnp.asarray(X[:, 0], dtype), labels)


def test_dtypes_of_soft_labels():
    x = jnp.asarray(X, jnp.bfloat16)
    f = losses.softmax_cross_entropy
    assert f(x, jnp.asarray(HOT, jnp.int32)).dtype == jnp.bfloat16
    assert f(x, jnp.asarray(HOT, bool)).dtype == jnp.bfloat16
    assert f(x, jnp.asarray(HOT, jnp.float32)).dtype == jnp.float32
    more = losses.poly_loss_cross_entropy(x, x, epsilon=jnp.float32(1))
    assert more.dtype == jnp.float32


@pytest.mark.parametrize("name", [*SOFT, INTEGER])
def test_integer_logits_are_refused(name):
    with pytest.raises(TypeError, match="logits has dtype int32"):
        getattr(losses, name)(jnp.arange(3), jnp.ones(3) if name in SOFT else 1)


def test_refusals():
    x, f = jnp.ones((2, 3)), losses.softmax_cross_entropy_with_integer_labels
    with pytest.raises(TypeError, match="labels has dtype float32"):
        f(x, jnp.ones(2))
    with pytest.raises(TypeError, match="labels has dtype bool"):
        f(x, jnp.ones(2, bool))
    for labels in (jnp.array(0), jnp.zeros((1, 2), int), jnp.zeros((2, 3), int)):
        with pytest.raises(ValueError, match="labels have shape"):
            f(x, labels)
    with pytest.raises(ValueError, match="labels have shape"):
        f(x, jnp.zeros(3, int))
    for axis in (5, (1, 1)):
        with pytest.raises(ValueError, match="axis"):
            f(x, jnp.zeros(2, int), axis)
    with pytest.raises(ValueError, match="where has dtype"):
        f(x, jnp.zeros(2, int), where=jnp.ones(2))
    with pytest.raises(TypeError, match="labels has dtype int32"):
        losses.poly_loss_cross_entropy(x, x.astype(int))
    for error in (TypeError, ValueError):
        with pytest.raises(error, match=r"softmax_cross_entropy: .* broadcast"):
            losses.softmax_cross_entropy(x, x[:, :2])
    with pytest.raises(TypeError, match="booleans"):
        losses.multiclass_hinge_loss(x, jnp.ones(2, bool))
    with pytest.raises(ValueError, match="labels have shape"):
        losses.multiclass_perceptron_loss(x, jnp.zeros(3, int))
    with pytest.raises(ValueError, match="at least one axis"):
        losses.multiclass_hinge_loss(x[0, 0], 0)
    with pytest.raises(ValueError, match="labels"):
        losses.multiclass_sparsemax_loss(x, jnp.zeros(3, int))
    with pytest.raises(TypeError, match="integer dtype"):
        losses.multiclass_sparsemax_loss(x, jnp.zeros(2))


def test_the_axis_of_integer_labels_is_named(as_users_do):
    for axis in (None, [-1]):
        with pytest.raises(ValueError, match="an int or a tuple of ints"):
            losses.softmax_cross_entropy_with_integer_labels(jnp.ones(3), 0, axis)


def test_in_jit_and_vmap():
    x, labels = jnp.asarray(X[:, 0]), jnp.array([0, 2, 1, 1])
    for name in BY_NUMBER:
        f = getattr(losses, name)
        same(run(f, x, labels), f(x, labels), 1e-6)
        same(run(jax.vmap(f), x, labels), f(x, labels), 1e-6)


def test_no_examples():
    for name in BY_NUMBER:
        assert getattr(losses, name)(jnp.ones((0, 3)), jnp.zeros(0, int)).shape == (0,)
    assert losses.softmax_cross_entropy(jnp.ones((0, 3)), jnp.ones((0, 3))).shape == (
        0,
    )
