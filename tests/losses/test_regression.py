"""Regression losses, against Optax and closed forms."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import steepest
from steepest import losses

from ..unusual import ODD
from .agree import agree, finite, half, run, same

X = np.array([[-30.0, -1.0, -0.3], [0.2, 1.0, 40.0]])
Y = np.array([[-1.0, 0.0, 0.4], [0.2, -1.0, 2.0]])
ELEMENTWISE = ["squared_error", "l2_loss", "log_cosh", "huber_loss"]


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_as_optax(name):
    agree(name, X, Y, wrt=(0, 1))
    same(
        getattr(losses, name)(jnp.asarray(X)),
        getattr(losses, name)(jnp.asarray(X), jnp.zeros((2, 3), int)),
        0,
    )


@pytest.mark.parametrize("delta", [0.0, 0.5, 2, np.array([[0.1, 1.0, 3.0]])])
def test_huber_widths(delta):
    agree("huber_loss", X, Y, wrt=(0, 1), delta=delta)


@pytest.mark.parametrize("name", ["log_cosh", "huber_loss"])
def test_broadcasting(name):
    agree(name, X, Y[0], wrt=(0, 1))
    agree(name, X[0], Y, wrt=(0, 1))


@pytest.mark.parametrize("name", [*ELEMENTWISE, "cosine_similarity", "cosine_distance"])
def test_half_precision(name):
    for pair in ("bfloat16 bfloat16", "float16 float16", "bfloat16 float32"):
        x, y = (jnp.asarray(a, d) for a, d in zip((X, Y), pair.split(), strict=True))
        half(name, x, y)


def test_log_cosh_keeps_its_digits_near_zero():
    x = np.array([1e-3, 1e-4, 1e-6, 0.9999, 1.0001, 200.0])
    exact = np.logaddexp(x.astype(np.longdouble), -x) - np.log(np.longdouble(2))
    both = jax.vmap(jax.value_and_grad(losses.log_cosh))
    ours, slope = run(both, jnp.asarray(x, jnp.float32))
    np.testing.assert_allclose(ours[3:], exact[3:], rtol=1e-6)
    np.testing.assert_allclose(ours[:3], x[:3] ** 2 / 2, rtol=1e-5)
    np.testing.assert_allclose(slope, np.tanh(x), rtol=1e-5)


OPTIONS = {
    "last": {},
    "first": {"axis": 0},
    "two axes": {"axis": (0, 2)},
    "all axes": {"axis": None},
    "epsilon": {"epsilon": 5.0},
    "mask": {"where": np.array([True, False, True])},
    "mask, epsilon, axis": {
        "where": np.array([True, False, True]),
        "epsilon": 0.5,
        "axis": 1,
    },
}


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_cosine(options):
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 4, 2, 3))
    agree("cosine_similarity", a, b, wrt=(0, 1), **options)


def test_cosine_distance():
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=(2, 4, 2, 3))
    options = {"where": np.array([True, False, True]), "epsilon": 0.5, "axis": (0, 1)}
    agree("cosine_distance", a, b, wrt=(0, 1), **options)


def test_cosine_of_rows_without_entries():
    # Optax's gradients of these are NaN.
    a, b = (jnp.asarray(x) for x in (X, Y))
    keep = jnp.array([[True], [False]])
    ours = losses.cosine_similarity(a, b, where=keep)
    same(ours, losses.cosine_similarity(a, b) * keep[:, 0].astype(float), 1e-6)


def test_cosine_of_vectors_whose_squares_leave_the_range():
    a = jnp.array([1.0, 2.0, 3.0])
    for scale in (1e30, 1e-30):
        assert abs(losses.cosine_similarity(a * scale, a * scale) - 1) < 1e-6
    half = jnp.array([300.0, 300.0, 1.0], jnp.float16)
    assert losses.cosine_similarity(half, half) == 1


def test_cosine_of_zeros():
    zero, a = jnp.zeros(3), jnp.array([1.0, 2.0, 3.0])
    assert np.isnan(losses.cosine_similarity(zero, a))
    finite(lambda x, y: losses.cosine_similarity(x, y, epsilon=1e-3), zero, a)
    nowhere = jnp.zeros(3, bool)
    finite(lambda x, y: losses.cosine_similarity(x, y, where=nowhere), a, a)
    hidden = a.at[1].set(jnp.nan)
    seen = jnp.array([True, False, True])
    finite(lambda y: losses.cosine_similarity(hidden, y, where=seen), a)


@pytest.mark.parametrize("name", ["squared_error", "l2_loss"])
@pytest.mark.parametrize("other", [(2, 3), (), (3, 1), (2,)], ids=str)
def test_shapes_must_be_equal(name, other):
    with pytest.raises(ValueError, match=f"{name}: predictions has shape"):
        getattr(losses, name)(jnp.ones(3), jnp.ones(other))


def test_shapes_that_do_not_broadcast():
    for error in (ValueError, TypeError):
        with pytest.raises(error, match=r"huber_loss: .*broadcast"):
            losses.huber_loss(jnp.ones(3), jnp.ones(2))


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_integers_are_refused(name):
    with pytest.raises(TypeError, match=f"{name}: predictions has dtype int32"):
        getattr(losses, name)(jnp.arange(3))


def test_lists_are_refused(as_users_do):
    with pytest.raises(TypeError, match="squared_error: predictions is a list"):
        losses.squared_error([1.0, 2.0])


def test_other_refusals():
    a = jnp.ones(3)
    with pytest.raises(TypeError, match="targets has dtype int32"):
        losses.cosine_similarity(a, jnp.arange(3))
    with pytest.raises(ODD, match="axis is 3"):
        losses.cosine_similarity(a, a, axis=3)
    with pytest.raises(ODD, match="an array with axes"):
        losses.cosine_similarity(a[0], a[0])
    with pytest.raises(ODD, match="twice"):
        losses.cosine_distance(
            X[None].astype(np.float32), Y[None].astype(np.float32), axis=(1, 1)
        )
    with pytest.raises(ODD, match="booleans"):
        losses.cosine_similarity(a, a, where=a)
    with pytest.raises(ODD, match="delta is -1"):
        losses.huber_loss(a, delta=-1.0)


def test_python_numbers_and_numpy():
    assert losses.squared_error(1.5, 0.5) == 1
    assert losses.l2_loss(1.5, 1) == 0.125
    assert losses.huber_loss(3.0).dtype == jnp.float32
    assert losses.log_cosh(np.array([1.0, 2.0])).dtype == jnp.float32


def test_in_jit_and_vmap():
    x, y = jnp.asarray(X, jnp.float32), jnp.asarray(Y, jnp.float32)
    for name in [*ELEMENTWISE, "cosine_similarity"]:
        f = getattr(losses, name)
        plain = f(x, y)
        same(run(f, x, y), plain, 1e-6, 1e-7)
        same(run(jax.vmap(f), x, y), plain, 1e-6, 1e-7)


def test_the_front_door_shows_those_of_optax():
    for name in vars(optax.losses):
        if hasattr(optax, name) and not name.startswith("_"):
            assert getattr(steepest, name) is getattr(losses, name)
