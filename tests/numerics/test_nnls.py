"""Non-negative least squares: Optax step by step, and SciPy's solution."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
import scipy.optimize

import steepest

RNG = np.random.default_rng(0)
A = RNG.normal(size=(6, 3))
B = RNG.normal(size=(6, 2))


def _same(a, b, rtol, *arguments, **options):
    make = lambda nnls: jax.jit(lambda a, b: nnls(a, b, *arguments, **options))
    ours = make(steepest.nnls)(a, b)
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        theirs = make(optax.nnls)(a, b)
    assert ours.dtype == theirs.dtype and ours.shape == theirs.shape
    np.testing.assert_allclose(
        ours.astype(float), jnp.asarray(theirs, float), rtol=rtol, atol=rtol
    )


@pytest.mark.parametrize(
    "options",
    [
        dict(iters=0),
        dict(iters=1),
        dict(iters=7, unroll=True),
        dict(iters=40, unroll=4),
        dict(iters=5, L=50.0),
        dict(iters=3.5),
    ],
    ids=str,
)
def test_same_as_optax(options):
    a, b = jnp.asarray(A, jnp.float32), jnp.asarray(B, jnp.float32)
    _same(a, b[:, 0], 1e-6, **options)


def test_same_as_optax_for_many_in_64_bits_and_in_half_precision():
    a, b = jnp.asarray(A, jnp.float32), jnp.asarray(B, jnp.float32)
    _same(a, b, 1e-6, 20)
    _same(a.astype(jnp.bfloat16), b.astype(jnp.bfloat16), 1e-2, 20)
    with jax.enable_x64(True):
        _same(jnp.asarray(A), jnp.asarray(B), 1e-12, 20)


def test_it_is_the_solution():
    with jax.enable_x64(True):
        x = np.asarray(steepest.nnls(A, B, 2000))
    for k in range(B.shape[1]):
        wanted, _ = scipy.optimize.nnls(A, B[:, k])
        np.testing.assert_allclose(x[:, k], wanted, atol=1e-8)
    assert (x >= 0).all()


def test_slopes_are_optax_s():
    a, b = jnp.asarray(A, jnp.float32), jnp.asarray(B[:, 0], jnp.float32)
    ours = jax.jit(jax.grad(lambda a: steepest.nnls(a, b, 10).sum()))(a)
    with jax.numpy_dtype_promotion("standard"):
        theirs = jax.jit(jax.grad(lambda a: optax.nnls(a, b, 10).sum()))(a)
    np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-6)


def test_of_zero_it_stays_and_its_slopes_are_finite():
    total = lambda a: steepest.nnls(a, jnp.ones(2), 3).sum()
    value, slope = jax.jit(jax.value_and_grad(total))(jnp.zeros((2, 2)))
    assert value == 0 and jnp.isfinite(slope).all()


def test_whole_numbers_lists_and_mixed_dtypes():
    x = steepest.nnls([[1, 0], [0, 2]], jnp.array([3, -1]), 100)
    assert x.dtype == jnp.float32
    np.testing.assert_allclose(x, [3, 0], atol=1e-5)
    mixed = steepest.nnls(jnp.eye(2), jnp.ones(2, jnp.bfloat16), 100)
    assert mixed.dtype == jnp.float32


@pytest.mark.parametrize(
    "shapes", [((6, 3), (5,)), ((2, 6, 3), (6,)), ((6,), (6,))], ids=str
)
def test_shapes_must_fit(shapes):
    with pytest.raises(ValueError, match=r"^nnls: A has shape"):
        steepest.nnls(jnp.ones(shapes[0]), jnp.ones(shapes[1]), 3)


@pytest.mark.parametrize(
    "options, said",
    [
        (
            dict(iters=-1),
            "iters is -1, expected a number of at least 0 and below infinity",
        ),
        (dict(iters="a"), "iters is a str, expected a number of at least 0 and below"),
        (dict(iters=3, unroll="a"), "unroll is a str, expected a number of at least 0"),
        (dict(iters=3, L=0.0), "L is 0.0, expected a number above 0."),
    ],
    ids=["steps", "text", "unroll", "bound"],
)
def test_numbers_that_cannot_be_are_refused(options, said, as_users_do):
    with pytest.raises((TypeError, ValueError)) as caught:
        steepest.nnls(jnp.eye(2), jnp.ones(2), **options)
    assert str(caught.value).startswith(f"nnls: {said}")


def test_complex_numbers_have_no_sign():
    with pytest.raises(ValueError, match=r"^nnls: A has dtype complex64 and b has"):
        steepest.nnls(jnp.array([[1j]]), jnp.ones(1), 3)
