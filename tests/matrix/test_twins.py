"""Matrices of 4 x 12 and of 12 x 4 share a stack."""

from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steepest
from steepest.engine.run import _stacks

# For each transformation, the number of stacks for two matrices of transposed shapes,
# in a step. Shampoo and PSGD have two formulas. What NorMuon remembers of a row comes
# after its matrix formula. A basis of the long side is not unique after a few steps.
STACKS = {
    "scale_by_polar": ({}, 1),
    "scale_by_normuon": ({}, 1),
    "scale_by_lmo": ({}, 1),
    "scale_by_soap": ({"frequency": 1, "longest": 8}, 1),
    "scale_by_soap_muon": ({"one_sided": True}, 1),
    "scale_by_splus": ({"frequency": 1, "longest": 8}, 1),
    "scale_by_shampoo": ({"frequency": 1, "root": "eigh"}, 2),
    "scale_by_psgd": ({"frequency": 1}, 2),
    "scale_by_dion2": ({}, 2),  # it may select rows by the words for the axes
}


def _run(tx, gs):
    state, u = tx.init(gs[0]), gs[0]
    for g in gs:
        u, state = tx.update(g, state, g)
    return u, state


def _gradients(steps):
    keys = jax.random.split(jax.random.key(0), (steps, 2))
    draw = jax.random.normal
    return [{"up": draw(a, (4, 12)), "down": draw(b, (12, 4))} for a, b in keys]


@pytest.mark.parametrize("name", STACKS)
def test_the_number_of_stacks(name):
    options, wanted = STACKS[name]
    (g,) = _gradients(1)
    tx = getattr(steepest, name)(**options)
    with mock.patch.object(_stacks, "stacking", wraps=_stacks.stacking) as stacking:
        jax.eval_shape(tx.update, g, jax.eval_shape(tx.init, g), g)
    assert stacking.call_count == wanted


@pytest.mark.parametrize("name", ["soap", "soap_muon", "splus", "shampoo", "psgd"])
def test_a_shared_stack_changes_no_number(name):
    """Also in memory: each matrix alone has the same."""
    options, _ = STACKS[f"scale_by_{name}"]
    tx = getattr(steepest, f"scale_by_{name}")(**options)
    with jax.enable_x64(True):
        gs = jax.tree.map(lambda x: x.astype("float64"), _gradients(3))
        u, state = _run(tx, gs)
        for key in ("up", "down"):
            alone_u, alone = _run(tx, [{key: g[key]} for g in gs])
            mine = [u[key], *(x[key] for x in state[1:])]
            want = [alone_u[key], *(x[key] for x in alone[1:])]
            for x, y in zip(*map(jax.tree.leaves, (mine, want)), strict=True):
                np.testing.assert_allclose(x, y, rtol=1e-5, atol=1e-7)


def test_a_vector_is_no_matrix_of_one_row():
    p = {"a": jnp.ones(5), "b": jnp.ones((1, 5)), "c": jnp.ones((5, 1))}
    tx = steepest.scale_by_psgd()
    u, _ = tx.update(p, tx.init(p), p)
    for x in u.values():
        np.testing.assert_allclose(jnp.ravel(x), jnp.ravel(u["a"]), rtol=1e-6)
