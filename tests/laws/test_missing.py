"""A matrix that has a gradient only in every second step is trained like any other.

Alternating tasks do so. Work that is done every few steps must not fall on the other
steps alone: for the whole run a matrix would have no basis, or not move at all.
"""

from collections.abc import Sequence
from functools import partial
from inspect import signature

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ..zoo import over, Row, ZOO

STEPS = 60  # at least two turns, with periods of ten steps
WAYS = {
    "two matrices": [["v"], ["w"]],
    "one matrix": [["w"], []],
    "one of two": [["v", "w"], ["v"]],
}
PERIODIC = [
    row for row in ZOO if ".matrix." in row.maker.__module__ or row.name == "galore"
]


def _trained(row: Row, turns: Sequence[Sequence[str]]):
    """Which memory is as it was, and the sizes of the last updates.

    Args:
        row: the optimizer.
        turns: which leaves have a gradient in a step, in turn.
    """
    tx, names = row.make(), sorted({name for turn in turns for name in turn})
    draw = lambda seed: jax.random.normal(jax.random.key(seed), (4, 6))
    p = {name: draw(k) for k, name in enumerate(names)}

    @partial(jax.jit, static_argnums=0)
    def step(mine, t, state):
        g = {name: draw(9 * t + ord(name)) if name in mine else None for name in p}
        return tx.update(g, state, p)

    begun = state = tx.init(p)
    last = {}
    for t in range(STEPS * len(turns)):
        mine = turns[t % len(turns)]
        u, state = step(tuple(mine), t, state)
        last |= {name: float(jnp.max(jnp.abs(u[name]))) for name in mine}
    pairs = zip(
        jax.tree_util.tree_leaves_with_path(state), jax.tree.leaves(begun), strict=True
    )
    same = {
        jax.tree_util.keystr(path)
        for (path, x), y in pairs
        if x.ndim > 1 and x.size > 1 and np.array_equal(x, y)
    }
    return same, last


# If all matrices change in the steps of the papers, nothing tells that one of them is
# missing in these steps alone: docs/guides/matrices.md says so.
CASES = [
    pytest.param(row, way, id=f"{row.name}-{way}")
    for row in PERIODIC
    for way in WAYS
    if way != "one of two" or row.options.get("rolled", True)
]


@pytest.mark.parametrize("row, way", CASES)
def test_gradients_in_turns(row: Row, way: str):
    """All memory changes that changes if no gradient is missing."""
    turns = WAYS[way]
    same, last = _trained(row, turns)
    assert all(size > 0 for size in last.values()), last
    if same:
        usual, _ = _trained(row, [max(turns, key=len)])
        assert same <= usual


STACKED = [row for row in PERIODIC if "stacked" in signature(row.maker).parameters]


@over(STACKED)
def test_a_stack_without_matrices(row: Row):
    """Beside a matrix, and alone."""
    tx, v, w = row.make(stacked="v"), jnp.ones((0, 3, 4)), jnp.ones((3, 4))
    for p in ({"v": v, "w": w}, {"v": v}):
        u, state = jax.jit(tx.update)(p, tx.init(p), p)
        u, _ = jax.jit(tx.update)(p, state, p)
        assert jax.tree.map(jnp.shape, u) == jax.tree.map(jnp.shape, p)
