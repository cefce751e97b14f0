"""Matrices cut into blocks: each is a matrix of its own."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steepest

INNER = {
    "soap": lambda: steepest.scale_by_soap(frequency=1),
    "splus": lambda: steepest.scale_by_splus(frequency=1),
    "polar": steepest.scale_by_polar,
}


def _gradients(shape, count=4):
    keys = jax.random.split(jax.random.key(0), count)
    return [jax.random.normal(key, shape) for key in keys]


def _run(tx, gs):
    state, update, u = tx.init(gs[0]), jax.jit(tx.update), None
    for g in gs:
        u, state = update(g, state, gs[0])
    return np.asarray(u)


@pytest.mark.parametrize("name", INNER)
def test_each_block_is_a_matrix(name):
    """Sides of 6 and 9 are cut into pieces of 3."""
    gs = _gradients((6, 9))
    found = _run(steepest.blocked(INNER[name](), 3), gs)
    for i in range(0, 6, 3):
        for j in range(0, 9, 3):
            alone = _run(INNER[name](), [g[i : i + 3, j : j + 3] for g in gs])
            mine = found[i : i + 3, j : j + 3]
            np.testing.assert_allclose(mine, alone, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("name", ["soap", "polar"])
def test_the_last_piece_is_shorter(name):
    gs = _gradients((4, 7))
    found = _run(steepest.blocked(INNER[name](), 4), gs)
    alone = _run(INNER[name](), [g[:, 4:] for g in gs])
    np.testing.assert_allclose(found[:, 4:], alone, rtol=1e-3, atol=1e-4)


def test_several_axes_are_one_side():
    gs = _gradients((2, 3, 9))
    tx = steepest.blocked(INNER["polar"](), 4, axes=(2, 1))
    assert [x.shape[-2:] for x in tx.init(gs[0]).mu] == [(4, 4), (4, 1), (2, 4), (2, 1)]
    plain = steepest.blocked(INNER["polar"](), 4)
    found = _run(plain, [g.reshape(6, 9) for g in gs])
    np.testing.assert_allclose(_run(tx, gs).reshape(6, 9), found, rtol=1e-6)


def test_what_is_small_enough_is_not_cut():
    tx = steepest.blocked(steepest.trace(0.9), 4)
    p = {"a": jnp.ones((3, 4)), "b": jnp.ones(9), "c": jnp.ones((2, 3, 9)), "n": None}
    kept = tx.init(p).trace
    assert kept["a"].shape == (3, 4) and kept["b"].shape == (9,)
    assert [x.shape for x in kept["c"]] == [(2, 1, 2, 3, 4), (2, 1, 1, 3, 1)]
    u, _ = tx.update(p, tx.init(p), p)
    np.testing.assert_array_equal(u["c"], p["c"])
    assert jax.tree.structure(u) == jax.tree.structure(p)


def test_elementwise_formulas_do_not_change():
    gs = _gradients((5, 7))
    plain = steepest.adamw(0.1)
    found = _run(steepest.blocked(plain, 3), gs)
    np.testing.assert_allclose(found, _run(plain, gs), rtol=1e-6)


def test_blocks_are_less_work_and_memory():
    p = {"w": jax.ShapeDtypeStruct((512, 512), jnp.float32)}
    whole = steepest.describe(steepest.scale_by_soap(), p)
    blocks = steepest.describe(steepest.blocked(steepest.scale_by_soap(), 128), p)
    assert blocks.lines[0].bytes == whole.lines[0].bytes
    assert blocks.flops < whole.flops / 3.5
