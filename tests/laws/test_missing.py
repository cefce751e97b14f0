"""A matrix that has a gradient only in every second step is trained like any other.

Alternating tasks do so. Work that is done every few steps must not fall on the other
steps alone: for the whole run a matrix would have no basis, or not move at all.
"""

from collections.abc import Sequence
from functools import partial
from inspect import signature
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steepest

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


# Wrappers whose state has the same period for all leaves.
ROUNDS = {
    "MultiSteps": lambda: steepest.MultiSteps(steepest.sgd(0.1, 0.9), 2),
    "MultiSteps, sum": lambda: steepest.MultiSteps(
        steepest.sgd(0.1), 2, use_grad_mean=False
    ),
    "MultiSteps, in a branch": lambda: steepest.MultiSteps(steepest.muon(0.1), 2),
    "lookahead": lambda: steepest.lookahead(steepest.sgd(0.1), 2, 0.5),
    "sam": lambda: steepest.contrib.sam(steepest.sgd(0.1), steepest.sgd(0.05)),
}


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "jit"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("missing", [0, 1], ids=["first", "last"])
@pytest.mark.parametrize("name", ROUNDS)
def test_a_gradient_is_missing_in_each_round(name, missing, dtype, compiled):
    """It counts as zero; `MultiSteps` does not move a leaf without the last one."""
    tx = ROUNDS[name]()
    update = jax.jit(tx.update) if compiled else tx.update

    def trained(instead) -> Any:
        p: Any = {"v": jnp.ones((2, 3), dtype), "w": jnp.ones((2, 3), dtype)}
        if name == "lookahead":
            p = steepest.LookaheadParams.init_synced(p)
        state = tx.init(p)
        for t in range(6):
            g = {"v": jnp.full((2, 3), 1 + t, dtype), "w": jnp.full((2, 3), t, dtype)}
            if t % 2 == missing:
                g["w"] = instead(g["w"])
            u, state = update(g, state, p)
            p = steepest.apply_updates(p, u)
        return p

    got, want = trained(lambda g: None), trained(jnp.zeros_like)
    if missing and name.startswith("MultiSteps"):
        want = {**want, "w": jnp.ones((2, 3), dtype)}
    jax.tree.map(lambda x, y: np.testing.assert_array_equal(x, y), got, want)


def test_nag_when_the_first_gradient_is_missing():
    """The first step with a gradient is of the usual size."""
    tx, p = steepest.nag(0.1, 0.9), {"v": jnp.full(2, 5.0), "w": jnp.full(2, 5.0)}
    g = {"v": jnp.ones(2), "w": jnp.ones(2)}
    _, state = tx.update({**g, "w": None}, tx.init(p), p)
    u, _ = tx.update(g, state, p)
    np.testing.assert_allclose(u["w"], -0.19, rtol=1e-5)


def test_acprop_when_the_first_gradients_are_missing():
    """The first step with a gradient is like the first step of all."""
    tx, p = steepest.contrib.scale_by_acprop(), {"v": jnp.ones(2), "w": jnp.ones(2)}
    g = {"v": jnp.array([0.5, 1e-3]), "w": jnp.array([0.5, 1e-3])}
    _, state = tx.update({**g, "w": None}, tx.init(p), p)
    _, state = tx.update({**g, "w": None}, state, p)
    u, state = tx.update(g, state, p)
    np.testing.assert_array_equal(u["w"], g["w"])
    u, _ = tx.update(g, state, p)
    assert np.all(np.abs(u["w"]) < 10)
