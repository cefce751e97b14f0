"""Projections onto the l2 ball and sphere."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from steepest import projections
from steepest.projections import projection_l2_ball, projection_l2_sphere
from tests.oracles._calls import assert_alike, assert_same, called

from ._points import (
    assert_nearest,
    assert_optimal,
    flat,
    jacobian,
    trees,
    with_jacobian,
)

NAMES = ["projection_l2_ball", "projection_l2_sphere"]
BOTH = [projection_l2_ball, projection_l2_sphere]
each = pytest.mark.parametrize("f", BOTH, ids=NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_as_in_optax(name):
    ours, theirs = jax.jit(getattr(projections, name)), getattr(optax.projections, name)
    theirs = jax.jit(theirs)
    for x in trees():
        for scale in (0.5, 7.0):
            assert_same(ours(x, scale), called(theirs, x, scale), atol=1e-5)


@pytest.mark.parametrize("name", NAMES)
def test_as_in_optax_in_64_bits_with_slopes(name):
    ours, theirs = getattr(projections, name), getattr(optax.projections, name)
    ours, theirs = with_jacobian(ours), with_jacobian(theirs)
    with jax.enable_x64(True):
        for x in trees(jnp.float64):
            assert_same(ours(x), called(theirs, x))


def draw(rng, radius=2.0):
    z = rng.normal(size=5)
    return radius * z / np.linalg.norm(z)


def test_nothing_in_the_set_is_nearer():
    ball, sphere = (jax.jit(lambda x, f=f: f(x, 2.0)) for f in BOTH)
    for x in trees():
        inside = lambda y: np.linalg.norm(y) <= 2 + 1e-5
        draw_inside = lambda rng: draw(rng, 2 * rng.uniform())
        assert_optimal(x, *assert_nearest(ball, x, inside, draw_inside))
        assert_nearest(sphere, x, lambda y: abs(np.linalg.norm(y) - 2) < 1e-5, draw)


def test_what_is_inside_the_ball_stays_to_the_last_digit():
    f = lambda x: projection_l2_ball(x, 1e4)
    compiled = jax.jit(f)
    for x in trees():
        np.testing.assert_array_equal(flat(compiled(x)), flat(x))
    np.testing.assert_allclose(jacobian(f, x), jnp.eye(5), atol=1e-6)


def test_zero():
    """All points of the sphere are equally near; Optax returns NaN."""
    zero = {"w": jnp.zeros(3), "b": jnp.zeros(1)}
    np.testing.assert_array_equal(flat(projection_l2_ball(zero)), np.zeros(4))
    np.testing.assert_allclose(flat(projection_l2_sphere(zero, 3.0)), np.full(4, 1.5))
    assert jnp.isfinite(jacobian(projection_l2_sphere, zero)).all()
    np.testing.assert_array_equal(
        jacobian(lambda x: projection_l2_ball(x, 0.1), zero), jnp.eye(4)
    )


@each
@pytest.mark.parametrize("size", [1e30, 3e38, 1e-30])
def test_squares_that_do_not_fit(f, size):
    """In Optax the square is infinite, and the result zero."""
    y = jax.jit(f)(jnp.array([3.0, -4.0]) * (size / 5), 1e-35)
    np.testing.assert_allclose(y / 1e-35, [0.6, -0.8], rtol=1e-5)


@each
def test_dtypes(f):
    half = jnp.array([300.0, -400.0], jnp.float16)
    np.testing.assert_allclose(f(half), jnp.array([0.6, -0.8], jnp.float16), rtol=1e-3)
    assert f(half).dtype == jnp.float16
    scale = jnp.ones((), jnp.float32)
    theirs = getattr(optax.projections, f.__name__)
    for x, s in [
        (jnp.array([1, -3]), 1),
        ([jnp.ones(2, jnp.float16), jnp.ones(1)], 1),
        (jnp.ones(2, jnp.float16), scale),
        (jnp.array([3 + 4j]), 1),
        ([3.0, -4], 1),
    ]:
        assert_alike(f, theirs, x, s)


@each
def test_scales(f):
    x = jnp.array([0.5, -0.2, 2.0])
    assert not jnp.any(f(x, 0.0))
    with pytest.raises(ValueError, match=f"{f.__name__}: scale is -1"):
        f(x, -1)
    with pytest.raises(ValueError, match="shape"):
        f(x, jnp.ones(3))
    with pytest.raises((TypeError, ValueError)):
        f(x, None)
    np.testing.assert_allclose(jax.jit(f)(x, jnp.array(0.5)), f(x, 0.5), rtol=1e-6)
    slope = jax.jit(jax.jacfwd(lambda s: f(x, s)))(1.0)
    np.testing.assert_allclose(slope, x / jnp.linalg.norm(x), rtol=1e-6)


@each
def test_of_nothing_and_batches(f):
    assert f({}) == {} and f(None) is None
    assert f({"a": jnp.ones(1), "n": None})["n"] is None
    assert f(jnp.zeros(0)).shape == (0,)
    x = jnp.array([[0.5, 2.0, -1.0], [0.1, 0.1, 0.1]])
    rows = [jax.jit(f)(row) for row in x]
    np.testing.assert_allclose(jax.jit(jax.vmap(f))(x), rows, rtol=1e-6)
