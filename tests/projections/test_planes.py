"""Projections onto a line, a hyperplane and a halfspace."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from steepest import projections
from steepest.projections import (
    projection_halfspace,
    projection_hyperplane,
    projection_vector,
)
from tests.oracles._calls import assert_alike, assert_same, called

from ._points import assert_nearest, assert_optimal, flat, trees

NAMES = ["projection_hyperplane", "projection_halfspace"]
BOTH = [projection_hyperplane, projection_halfspace]
each = pytest.mark.parametrize("f", BOTH, ids=NAMES)


def normal(dtype=jnp.float32):
    return {
        "w": jnp.array([[1.0, -2.0], [0.5, 0.0]], dtype),
        "b": [jnp.array(0.25, dtype)],
    }


@pytest.mark.parametrize("name", NAMES)
def test_as_in_optax(name):
    ours, theirs = jax.jit(getattr(projections, name)), getattr(optax.projections, name)
    theirs = jax.jit(theirs)
    for x in trees():
        for b in (0.0, 1.5, -100.0):
            wanted = called(theirs, x, normal(), b)
            assert_same(ours(x, normal(), b), wanted, atol=1e-5)


@pytest.mark.parametrize("name", [*NAMES, "projection_vector"])
def test_as_in_optax_in_64_bits_with_slopes(name):
    b = [] if name == "projection_vector" else [0.5]
    which = tuple(range(2 + len(b)))
    with jax.enable_x64(True):

        def both(room):
            f = getattr(room, name)
            return jax.jit(lambda *args: (f(*args), jax.jacrev(f, which)(*args)))

        ours, theirs = both(projections), both(optax.projections)
        for x in trees(jnp.float64, 3):
            args = x, normal(jnp.float64), *b
            assert_same(ours(*args), called(theirs, *args))


def test_vectors_as_in_optax():
    for x in trees(count=1):
        wanted = called(optax.projections.projection_vector, x, normal())
        assert_same(projection_vector(x, normal()), wanted)


def test_nothing_in_the_set_is_nearer():
    a = flat(normal())

    def on_plane(rng):
        z = 5 * rng.normal(size=5)
        return z - (a @ z - 1.5) / (a @ a) * a

    below = lambda rng: on_plane(rng) - rng.exponential() * a
    in_plane = lambda y: abs(a @ y - 1.5) < 1e-4
    in_half = lambda y: a @ y < 1.5 + 1e-4
    in_line = lambda y: abs(abs(a @ y) - np.linalg.norm(a) * np.linalg.norm(y)) < 1e-3
    plane, half = (jax.jit(lambda x, f=f: f(x, normal(), 1.5)) for f in BOTH)
    line = jax.jit(lambda x: projection_vector(x, normal()))
    for x in trees():
        assert_optimal(x, *assert_nearest(plane, x, in_plane, on_plane, atol=1e-4))
        assert_optimal(x, *assert_nearest(half, x, in_half, below, atol=1e-4))
        assert_nearest(line, x, in_line, lambda rng: 5 * rng.normal() * a)


def test_what_is_in_the_halfspace_stays():
    for x in trees():
        y = jax.jit(projection_halfspace)(x, normal(), 1e4)
        np.testing.assert_array_equal(flat(y), flat(x))


def test_a_zero_normal():
    """The plane is then everything or empty; in Optax always NaN."""
    x, zero = jnp.array([1.0, 2.0]), jnp.zeros(2)
    for f in BOTH:
        np.testing.assert_array_equal(f(x, zero, 0.0), x)
        slope = jax.jit(jax.jacrev(f))(x, zero, 0.0)
        np.testing.assert_array_equal(slope, jnp.eye(2))
    np.testing.assert_array_equal(projection_halfspace(x, zero, 1.0), x)
    assert jnp.isnan(projection_hyperplane(x, zero, 1.0)).all()
    assert jnp.isnan(projection_halfspace(x, zero, -1.0)).all()
    np.testing.assert_array_equal(projection_vector(x, zero), zero)


@pytest.mark.parametrize("size", [1e30, 1e-30])
def test_normals_whose_squares_do_not_fit(size):
    x, a = jnp.array([1.0, 2.0]), jnp.array([3.0, 4.0])
    wanted = projection_vector(x, a)
    np.testing.assert_allclose(projection_vector(x, a * size), wanted, rtol=1e-5)
    wanted = projection_hyperplane(x, a, 2.0)
    result = projection_hyperplane(x, a * size, 2.0 * size)
    np.testing.assert_allclose(result, wanted, rtol=1e-5)


def test_half_precision():
    x = a = jnp.full(3, 300, jnp.float16)
    assert_same(projection_vector(x, a), x)
    for f in BOTH:
        assert f(x, a, 0.0).dtype == jnp.float16
        np.testing.assert_allclose(f(x, a, 0.0), jnp.zeros(3, x.dtype), atol=1e-3)


@pytest.mark.parametrize("name", NAMES)
def test_dtypes_meet_as_in_optax(name):
    ours, theirs = getattr(projections, name), getattr(optax.projections, name)
    half = jnp.ones(2, jnp.float16)
    for args in [
        (jnp.array([1, 2]), jnp.array([1, 1]), 1),
        (half, jnp.ones(2), 1.0),
        (half, half, jnp.ones((), jnp.float32)),
        ([half, jnp.ones(1)], [half, jnp.ones(1)], 1.0),
        (2.0, 3.0, 1.0),
    ]:
        assert_alike(ours, theirs, *args)


def test_complex_numbers():
    """The result is in the plane.

    In Optax it is not, because the wrong factor is conjugated.
    """
    x, a = jnp.array([1j, 2]), jnp.array([1, 1j])
    y = projection_hyperplane(x, a, 1.0)
    np.testing.assert_allclose(jnp.vdot(a, y), 1, atol=1e-6)
    y = projection_vector(x, a)
    np.testing.assert_allclose(jnp.vdot(a, x - y), 0, atol=1e-6)
    y = projection_halfspace(x, a, -1.0)
    np.testing.assert_allclose(jnp.vdot(a, y).real, -1, atol=1e-6)


@each
def test_what_does_not_fit(f):
    with pytest.raises(ValueError, match=f"{f.__name__}: leaf"):
        f({"a": jnp.ones(1)}, {"b": jnp.ones(1)}, 1.0)
    with pytest.raises(TypeError):
        f(jnp.ones(3), jnp.ones(2), 1.0)
    with pytest.raises(ValueError, match="shape"):
        f(jnp.ones(3), jnp.ones(3), jnp.ones(3))


@each
def test_empty_none_and_batches(f):
    assert f({}, {}, 1.0) == {}
    assert (
        f({"n": None, "a": jnp.ones(1)}, {"n": None, "a": jnp.ones(1)}, 0.0)["n"]
        is None
    )
    x, a = jnp.array([[1.0, 2.0], [-1.0, -1.0]]), jnp.array([1.0, 1.0])
    result = jax.jit(jax.vmap(lambda x, b: f(x, a, b)))(x, jnp.array([0.5, 1.0]))
    rows = [f(x[0], a, 0.5), f(x[1], a, 1.0)]
    np.testing.assert_allclose(result, rows, rtol=1e-5)
