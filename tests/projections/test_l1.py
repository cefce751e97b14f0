"""Projections onto the simplex, and onto the l1 sphere and ball."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from steepest import projections
from steepest.projections import (
    projection_l1_ball,
    projection_l1_sphere,
    projection_simplex,
)
from tests.oracles._calls import assert_same, called

from ._points import (
    assert_nearest,
    assert_optimal,
    flat,
    jacobian,
    trees,
    with_jacobian,
)

NAMES = ["projection_simplex", "projection_l1_sphere", "projection_l1_ball"]
ALL = [projection_simplex, projection_l1_sphere, projection_l1_ball]
each = pytest.mark.parametrize("f", ALL, ids=NAMES)


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


def on_simplex(y):
    return (y >= 0).all() and abs(y.sum() - 2) < 1e-5


def in_ball(y):
    return abs(y).sum() <= 2 + 1e-5


def on_sphere(y):
    return abs(abs(y).sum() - 2) < 1e-5


def signed(rng):
    return rng.dirichlet(np.full(5, 0.3)) * rng.choice([-2, 2], 5)


def test_nothing_in_the_set_is_nearer():
    simplex, sphere, ball = (jax.jit(lambda x, f=f: f(x, 2.0)) for f in ALL)
    for x in trees():
        draw = lambda rng: 2 * rng.dirichlet(np.full(5, 0.3))
        assert_optimal(x, *assert_nearest(simplex, x, on_simplex, draw))
        draw = lambda rng: rng.uniform() * signed(rng)
        assert_optimal(x, *assert_nearest(ball, x, in_ball, draw))
        assert_nearest(sphere, x, on_sphere, signed)


@pytest.mark.parametrize("x", [[0.0, 0.0, 0.0], [0.1, 0.0, -0.1]], ids=["zero", "some"])
def test_the_sphere_is_reached_from_zeros_too(x):
    """Optax stays inside, since the sign of zero is zero."""
    y = jax.jit(projection_l1_sphere)(jnp.array(x), 2.0)
    np.testing.assert_allclose(abs(y).sum(), 2, rtol=1e-6)
    assert jnp.isfinite(jacobian(projection_l1_sphere, jnp.array(x))).all()


def test_what_is_inside_the_ball_stays():
    x = {"w": jnp.array([0.25, -0.25]), "b": jnp.array(0.5)}
    assert_same(projection_l1_ball(x), x)
    np.testing.assert_array_equal(jacobian(projection_l1_ball, x), jnp.eye(3))


@each
def test_scales(f):
    x = jnp.array([0.5, -0.2, 2.0])
    assert not jnp.any(f(x, 0.0)), "a set of one point, where Optax has NaN"
    for bad in (-1, -0.5, np.float64(-1)):
        with pytest.raises(ValueError, match=f"{f.__name__}: scale is"):
            f(x, bad)
    with pytest.raises((TypeError, ValueError)):
        f(x, jnp.ones(3))
    np.testing.assert_allclose(jax.jit(f)(x, jnp.array(0.5)), f(x, 0.5), rtol=1e-6)


@each
def test_dtypes(f):
    """Optax returns float32 for half precision.

    Its ball supports neither half precision nor integers.
    """
    half = jnp.array([300.0, -400.0], jnp.float16)
    dtype_of = lambda x: jax.tree.map(lambda x: x.dtype, jax.eval_shape(f, x))
    assert dtype_of(half) == (jnp.float16 if f is projection_l1_ball else jnp.float32)
    assert dtype_of(jnp.array([1, -3])) == jnp.float32
    mixed = [jnp.ones(2, jnp.float16), jnp.ones(1)]
    assert dtype_of(mixed) == [jnp.float16, jnp.float32]
    assert jnp.isfinite(jax.jit(f)(half)).all()


@each
def test_of_nothing_is_an_index_error(f):
    for x in ({}, None, jnp.zeros(0)):
        with pytest.raises(IndexError):
            f(x)


@each
def test_numbers_none_and_huge_entries(f):
    assert f(3.0) == 1
    assert f({"a": jnp.ones(1), "n": None})["n"] is None
    np.testing.assert_allclose(abs(f(jnp.array([1e30, 0.0]))), [1, 0])


def test_complex_numbers_keep_their_directions():
    np.testing.assert_allclose(
        projection_l1_ball(jnp.array([3 + 4j])), [0.6 + 0.8j], rtol=1e-6
    )


@each
def test_batches(f):
    x = jnp.array([[0.5, 2.0, -1.0], [0.1, 0.1, 0.1]])
    rows = [jax.jit(f)(row) for row in x]
    np.testing.assert_allclose(jax.jit(jax.vmap(f))(x), rows, atol=1e-6)


def test_infinitely_low_entries_are_left_out():
    y = projection_simplex(jnp.array([0.0, 0.0, -jnp.inf]))
    np.testing.assert_array_equal(y, [0.5, 0.5, 0])
    assert flat(y).sum() == 1
