"""`block_size`: each block of a matrix is a matrix of its own."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steepest

SIZE = 4
# Pieces of 4 and 2, and of 4, 4 and 2. The convolution is a matrix of 4 x 6.
SHAPES = {"w": (6, 10), "conv": (2, 2, 6), "square": (4, 4)}
ROUTES = {"conv": "in in out"}
RECIPES = {
    "soap": (steepest.soap, {"frequency": 1}),
    "shampoo": (steepest.shampoo, {"frequency": 2, "rolled": False, "root": "eigh"}),
    "soap_muon": (steepest.soap_muon, {"frequency": 2, "rolled": False}),
    "splus": (steepest.splus, {"frequency": 1}),
    "psgd": (steepest.psgd, {"frequency": 1}),
}


def _split(tree):
    """The blocks as separate leaves."""
    matrices = {k: x.reshape(-1, x.shape[-1]) for k, x in tree.items()}
    return {
        f"{name}-{i}-{j}": x[i : i + SIZE, j : j + SIZE]
        for name, x in matrices.items()
        for i in range(0, x.shape[0], SIZE)
        for j in range(0, x.shape[1], SIZE)
    }


def _last_update(tx, start, gs):
    state, update, u = tx.init(start), jax.jit(tx.update), None
    for g in gs:
        u, state = update(g, state, start)
    return u


@pytest.mark.parametrize("name", RECIPES)
def test_blocks_are_separate_leaves(name):
    recipe, options = RECIPES[name]
    random = np.random.default_rng(0)
    with jax.enable_x64(True):
        draw = lambda: {
            k: jnp.asarray(random.normal(size=s)) for k, s in SHAPES.items()
        }
        start, *gs = (draw() for _ in range(5))
        tx = recipe(0.1, block_size=SIZE, routes=ROUTES, **options)
        u = _split(_last_update(tx, start, gs))
        alone = _last_update(recipe(0.1, **options), _split(start), map(_split, gs))
    u, alone = jax.tree.map(np.asarray, (u, alone))
    assert u.keys() == alone.keys()
    whole = {k: (x.size // x.shape[-1], x.shape[-1]) for k, x in start.items()}
    for key, block in alone.items():
        if name == "splus":  # its factor is that of the whole matrix
            block = block * (sum(block.shape) / sum(whole[key.split("-")[0]]))
        np.testing.assert_allclose(u[key], block, rtol=1e-7, atol=1e-9)


def test_blocks_in_few_bits():
    """The rules in the wrapper decide what is stored in few bits."""
    w = {"w": jax.ShapeDtypeStruct((160, 96), jnp.float32)}
    tx = steepest.soap(0.1, block_size=64, memory_dtype="int8")
    state = jax.eval_shape(tx.init, w).inner_states["soap"].inner_state[0]
    assert [x.codes.shape for x in state.mu["w"][:2]] == [
        (2, 1, 64, 64),
        (2, 1, 64, 32),
    ]
    for x in jax.tree.leaves(state.bases):
        assert x.dtype == (jnp.float16 if x.size >= 4096 else jnp.float32)
    assert all(x.dtype == jnp.float32 for x in jax.tree.leaves(state.factors))
    (line,) = steepest.describe(tx, w).lines
    assert line.memory == ("float16", "float32", "signed8", "unsigned8")


def test_describe_shows_the_blocks():
    p = {"w": jnp.ones((8, 10)), "v": jnp.ones((3, 4))}
    seen = steepest.describe(steepest.soap(0.1, block_size=4), p)
    assert [line.handled_by[0] for line in seen.lines] == [
        "blocked(scale_by_soap)",
        "blocked(scale_by_soap, 4x4)",
    ]
    assert "block_size=4" in seen.optimizer
    # mu and nu; factors and bases of 2 x 2 blocks, and of 2 x 1 narrow ones.
    assert seen.lines[1].bytes == 4 * (2 * 80 + 2 * (4 * 2 * 16 + 2 * (16 + 4)))
