"""The nearest point of the simplex, against Optax and the optimality conditions."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from steepest.numerics import simplex


def test_as_optax():
    with jax.enable_x64(True):
        x = jnp.asarray(np.random.default_rng(0).normal(size=(4, 7)))
        x = x * jnp.array([[0.1], [0.5], [3.0], [3.0]])
        scale = jnp.array([1.0, 0.3, 5.0, 1.0])
        both = lambda f: jax.vmap(lambda *a: (f(*a), jax.jacrev(f, (0, 1))(*a)))
        ours = jax.jit(both(simplex))(x, scale)
        with jax.numpy_dtype_promotion("standard"):
            theirs = jax.jit(both(optax.projections.projection_simplex))(x, scale)
        for a, b in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
            np.testing.assert_allclose(a, b, atol=1e-14)


@pytest.mark.parametrize("scale", [1.0, 2.5])
def test_it_is_the_nearest(scale):
    """`y` is on the simplex; `x - y` is constant where `y > 0`, else smaller."""
    xs = np.random.default_rng(0).normal(size=(5, 9))
    ys = jax.jit(jax.vmap(lambda x: simplex(x, scale)))(jnp.asarray(xs))
    for x, y in zip(xs, np.asarray(ys), strict=True):
        assert (y >= 0).all()
        assert np.isclose(y.sum(), scale, rtol=1e-5)
        tau = (x - y)[y > 0]
        np.testing.assert_allclose(tau, tau[0], atol=1e-5)
        assert (x[y == 0] <= tau[0] + 1e-5).all()


def test_extremes():
    assert (simplex(jnp.array([1e30, -1e30, 1e30])) == jnp.array([0.5, 0, 0.5])).all()
    assert (simplex(jnp.array([-jnp.inf, 1.0])) == jnp.array([0.0, 1.0])).all()
    assert np.isfinite(jax.jacrev(simplex)(jnp.array([-jnp.inf, 1.0]))).all()
    half = simplex(jnp.array([6e4, 6e4, 3.0], jnp.float16))
    np.testing.assert_array_equal(half, [0.5, 0.5, 0])
    assert half.dtype == jnp.float32
    assert simplex(jnp.array([3, 1])).dtype == jnp.float32
    assert (simplex(jnp.array([1.0, 2.0]), 0.0) == 0).all()


def test_nothing_is_refused():
    with pytest.raises(IndexError, match="at least one entry"):
        simplex(jnp.zeros(0))


def test_in_vmap_and_at_ties():
    x = jnp.array([[1.0, 0.0, 0.0], [1.0, 1.0, 1.0]])
    y = jax.vmap(simplex)(x)
    np.testing.assert_allclose(y, [[1, 0, 0], [1 / 3] * 3], atol=1e-6)
    slope = jax.jacrev(simplex)(x[1])
    np.testing.assert_allclose(slope, np.eye(3) - 1 / 3, atol=1e-6)
