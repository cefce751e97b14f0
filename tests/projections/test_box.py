"""Projection onto a box."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import steepest
from steepest.projections import (
    projection_box,
    projection_hypercube,
    projection_linf_ball,
    projection_non_negative,
)
from tests.oracles._calls import assert_alike, assert_same, called

from ._points import assert_nearest, assert_optimal, trees, with_jacobian

LOW = {"w": jnp.full((2, 2), -0.5), "b": [jnp.array(0.1)]}
HIGH = {"w": jnp.full((2, 2), 0.25), "b": [jnp.array(2.0)]}
CALLS = {
    "non_negative": lambda p, x: p.projection_non_negative(x),
    "linf_ball": lambda p, x: p.projection_linf_ball(x),
    "linf_ball_of_2.5": lambda p, x: p.projection_linf_ball(x, 2.5),
    "box": lambda p, x: p.projection_box(
        x, *(jax.tree.map(lambda b, x: b.astype(x.dtype), b, x) for b in (LOW, HIGH))
    ),
    "hypercube_of_a_leaf": lambda p, x: p.projection_hypercube(x["w"], 0.75),
}


@pytest.mark.parametrize("name", CALLS)
def test_as_in_optax(name):
    ours, theirs = (
        lambda x, p=p: CALLS[name](p, x)
        for p in (steepest.projections, optax.projections)
    )
    for x in trees(count=2):
        assert_same(ours(x), called(theirs, x))
    for x in trees("float16", 1):
        assert_alike(ours, theirs, x)


@pytest.mark.parametrize("name", CALLS)
def test_as_in_optax_in_64_bits_with_slopes(name):
    f = lambda p: lambda x: CALLS[name](p, x)
    with jax.enable_x64(True):
        ours, theirs = map(
            with_jacobian, (f(steepest.projections), f(optax.projections))
        )
        for x in trees(jnp.float64, 2):
            assert_same(ours(x), called(theirs, x))


@pytest.mark.parametrize(
    "f, low, high",
    [
        (projection_non_negative, 0.0, 30.0),
        (projection_linf_ball, -1.0, 1.0),
        (projection_hypercube, 0.0, 1.0),
        (lambda x: projection_box(x, -0.5, 2.0), -0.5, 2.0),
    ],
    ids=["non_negative", "linf_ball", "hypercube", "box"],
)
def test_nothing_in_the_set_is_nearer(f, low, high):
    contains = lambda y: (low <= y).all() and (y <= max(high, 100)).all()
    for x in trees():
        y, others = assert_nearest(
            f, x, contains, lambda rng: rng.uniform(low, high, 5)
        )
        assert_optimal(x, y, others)


def test_one_number_bounds_a_whole_tree():
    """Optax needs bounds like the tree, and its hypercube does not support trees."""
    x = {"w": jnp.array([-3.0, 0.5]), "b": [jnp.array(9.0), None]}
    y = projection_box(x, -1.0, {"w": 1.0, "b": 2.0})
    np.testing.assert_array_equal(y["w"], [-1, 0.5])
    assert y["b"][0] == 2 and y["b"][1] is None
    y = projection_hypercube(x, {"w": jnp.array([1.0, 0.25]), "b": 4.0})
    np.testing.assert_array_equal(y["w"], [0, 0.25])
    assert y["b"][0] == 4


def test_a_bound_may_be_missing():
    x = jnp.array([-3.0, 3.0])
    np.testing.assert_array_equal(projection_box(x, None, 1.0), [-3, 1])
    np.testing.assert_array_equal(projection_box(x, -1.0, None), [-1, 3])


def test_bounds_of_another_structure():
    with pytest.raises(ValueError, match=r"projection_box: leaf \['w'\] .* `lower`"):
        projection_box({"w": jnp.ones(1)}, {"v": 0.0}, 1.0)


def test_integers():
    x = jnp.array([5, -5])
    assert_same(projection_linf_ball(x, 1.5), jnp.array([1, -1]))
    assert_same(projection_hypercube(x), jnp.array([1, 0]))
    assert_same(projection_non_negative(x), jnp.array([5, 0]))
    assert projection_hypercube(x, 1.5).dtype == jnp.float32


@pytest.mark.parametrize("f", [projection_linf_ball, projection_hypercube])
def test_scales(f):
    np.testing.assert_array_equal(f(jnp.array([-1.0, 2.0]), 0), [0, 0])
    with pytest.raises(ValueError, match="scale is -1"):
        f(jnp.ones(2), -1)
    result = jax.jit(f)(jnp.array([0.25, 9.0]), jnp.array([0.5, 2.0]))
    np.testing.assert_array_equal(result, [0.25, 2.0])


def test_empty_trees_nan_and_infinity():
    for f in (projection_non_negative, projection_linf_ball, projection_hypercube):
        assert f({}) == {}
        assert f(None) is None
        assert jnp.isnan(f(jnp.array([jnp.nan])))[0]
    assert projection_linf_ball(jnp.array([jnp.inf]))[0] == 1
    with pytest.raises(ValueError):
        projection_linf_ball(jnp.array([1j]))


def test_batches():
    x = jnp.array([[-1.0, 2.0], [0.5, 0.25]])
    np.testing.assert_array_equal(jax.vmap(projection_hypercube)(x), x.clip(0, 1))
