"""Arrays of matrices, joined and split again."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from steepest.engine.run import _joined
from steepest.engine.run._joined import Stack
from steepest.numerics import rounded_to_half, rows_sum

SHAPES = [(2, 3), (4, 2, 3), (2, 3)]


def _arrays(shapes):
    rng = np.random.default_rng(0)
    return [jnp.asarray(rng.normal(size=s), jnp.float32) for s in shapes]


@pytest.mark.parametrize("by_rows", [False, True])
def test_a_stack_is_split_into_what_was_joined(by_rows, monkeypatch):
    monkeypatch.setattr(_joined, "joins_rows", lambda x: by_rows)
    xs, stack = _arrays(SHAPES), Stack(SHAPES)
    joined = stack.joined(xs)
    assert joined.shape == (6, 2, 3)
    np.testing.assert_array_equal(joined[1:5], xs[1])
    for x, part in zip(xs, stack.parts(joined), strict=True):
        np.testing.assert_array_equal(part, x)


def test_tall_matrices_are_turned():
    shapes = [(2, 3), (3, 2)]
    xs, stack = _arrays(shapes), Stack(shapes)
    joined = stack.joined(xs)
    np.testing.assert_array_equal(joined[1], xs[1].T)
    for x, part in zip(xs, stack.parts(joined), strict=True):
        np.testing.assert_array_equal(part, x)


def test_memory_that_does_not_change_is_the_same_array():
    xs, stack = _arrays(SHAPES), Stack(SHAPES)
    rows = [(x[..., 0], x[..., 1]) for x in xs]
    joined = stack.joined_memory(rows)
    assert [y.shape for y in joined] == [(6, 2), (6, 2)]
    results = stack.joined(xs), (joined[0], 2 * joined[1])
    found = stack.split(results, xs, rows, joined, one_device=True)
    for (u, (same, new)), x, row in zip(found, xs, rows, strict=True):
        np.testing.assert_array_equal(u, x)
        assert same is row[0]
        np.testing.assert_array_equal(new, 2 * row[1])


def test_sums_are_added_to_the_memory_of_each_array():
    """A formula returns what to add, and the engine adds it in place."""
    xs, stack = _arrays(SHAPES), Stack(SHAPES)
    rows = [(x @ x.mT,) for x in xs]
    joined = stack.joined_memory(rows)
    many = jax.vmap(lambda x: rows_sum(0.5, 0.25, rounded_to_half(x)))
    results = stack.joined(xs), (many(stack.joined(xs)),)
    found = stack.split(results, xs, rows, joined, one_device=True)
    for (_, (new,)), (old,) in zip(found, rows, strict=True):
        np.testing.assert_allclose(new, 0.75 * old, rtol=1e-6)
