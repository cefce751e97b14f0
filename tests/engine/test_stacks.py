"""Matrices of one shape share a stack; nobody can tell from the numbers."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from steepest.core import EmptyState, Rule
from steepest.engine import _stacks, lift

SHAPES = {"a": (3, 5), "b": (5, 3), "c": (3, 5), "stack": (2, 3, 5), "d": (4, 4)}


def _grads(dtype=jnp.float32):
    keys = jax.random.split(jax.random.key(0), len(SHAPES))
    draws = zip(SHAPES.items(), keys, strict=True)
    return {
        name: jax.random.normal(key, shape).astype(dtype)
        for (name, shape), key in draws
    }


def _rule(seen):
    """A formula that a turned matrix gets turned: `x x^T x`."""

    def heavy(n, x):
        seen.append(x.shape)
        return n.c * x @ x.T @ x

    prepare = lambda step: {"c": jnp.float32(2)}
    leaf = lambda n, g, p: g + 1
    return Rule(
        "cube", EmptyState, leaf, prepare=prepare, kind="stackable", heavy=heavy
    )


def _cubes(grads):
    wide = jax.tree.map(lambda g: np.asarray(g, np.float64) + 1, grads)
    return jax.tree.map(lambda x: 2 * x @ np.swapaxes(x, -1, -2) @ x, wide)


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "jit"])
def test_stacks_change_no_number(compiled):
    seen, grads = [], _grads()
    tx = lift(_rule(seen))
    update = jax.jit(tx.update) if compiled else tx.update
    u, _ = update(grads, tx.init(grads))
    for name, cube in _cubes(grads).items():
        np.testing.assert_allclose(u[name], cube, rtol=1e-5, atol=1e-5)


def test_the_formula_is_traced_once_for_a_shape():
    seen, grads = [], _grads()
    tx = lift(_rule(seen))
    jax.jit(tx.update)(grads, tx.init(grads))
    assert sorted(set(seen)) == [(3, 5), (4, 4)]
    assert len(seen) == 2


def test_a_half_leaf_is_computed_wide_and_comes_back():
    grads = _grads(jnp.bfloat16)
    tx = lift(_rule([]))
    u, _ = tx.update(grads, tx.init(grads))
    assert {x.dtype for x in u.values()} == {jnp.dtype(jnp.bfloat16)}
    for name, cube in _cubes(grads).items():
        np.testing.assert_allclose(np.float32(u[name]), cube, rtol=2**-8, atol=0.1)


def test_large_matrices_come_in_several_stacks(monkeypatch):
    xs = [jnp.ones((4, 8))] * 7 + [None, jnp.ones((8, 4))]
    assert _stacks.stacks(xs, [None] * 9) == [[0, 1, 2, 3, 4, 5, 6, 8]]
    monkeypatch.setattr(_stacks, "MOST", 3 * 4 * 4 * 8)
    assert _stacks.stacks(xs, [None] * 9) == [[0, 1, 2], [3, 4], [5, 6], [8]]
    monkeypatch.setattr(_stacks, "MOST", 1)
    assert len(_stacks.stacks(xs, [None] * 9)) == 8


def test_what_differs_is_not_stacked():
    xs = [jnp.ones((2, 2)), jnp.ones((2, 3)), jnp.ones((2, 2), jnp.float16)]
    assert _stacks.stacks(xs, [None] * 3) == [[0], [1], [2]]
    assert _stacks.stacks(xs[:1] * 2, [jnp.float32, None]) == [[0], [1]]


def test_a_rule_says_whether_it_is_heavy():
    with pytest.raises(TypeError, match="cube: kind is 'whole'"):
        lift(_rule([])._replace(kind="whole"))
