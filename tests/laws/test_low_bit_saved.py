"""Memory in 8 or 4 bits is saved and loaded as any other state."""

import pickle

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import serialization

import steepest
from steepest.engine.leaves import KINDS

from ..zoo import typeof

P = {"w": jnp.cos(jnp.arange(4096.0)).reshape(64, 64), "b": jnp.ones(3)}


def _pickle(state, like, path):
    return pickle.loads(pickle.dumps(state))


def _numpy(state, like, path):
    """Only arrays, by their paths. The structure is that of a new state."""
    rows = jax.tree_util.tree_leaves_with_path(state)
    named = {jax.tree_util.keystr(k): np.asarray(x) for k, x in rows}
    np.savez(path / "state.npz", allow_pickle=False, **named)
    rows, treedef = jax.tree_util.tree_flatten_with_path(like)
    with np.load(path / "state.npz") as saved:
        arrays = [jnp.asarray(saved[jax.tree_util.keystr(k)]) for k, _ in rows]
    return jax.tree.unflatten(treedef, arrays)


def _flax(state, like, path):
    return serialization.from_bytes(like, serialization.to_bytes(state))


def _orbax(state, like, path):
    ocp = pytest.importorskip("orbax.checkpoint")
    with ocp.StandardCheckpointer() as checkpointer:
        checkpointer.save(path / "state", state)
        checkpointer.wait_until_finished()
        return checkpointer.restore(path / "state", jax.eval_shape(lambda: like))


@pytest.mark.parametrize("few", KINDS)
@pytest.mark.parametrize("again", [_pickle, _numpy, _flax, _orbax])
def test_training_goes_on(few, again, tmp_path):
    """The next step is the same, bit for bit, also where an element is NaN."""
    tx = steepest.adamw(0.1, memory_dtype=few)
    g = {**P, "w": P["w"].at[1, 2].set(jnp.nan)}
    _, state = tx.update(P, tx.init(P), P)
    _, state = tx.update(g, state, P)
    loaded = jax.tree.map(jnp.asarray, again(state, tx.init(P), tmp_path))
    assert typeof(loaded) == typeof(state)
    wanted, found = tx.update(P, state, P), tx.update(P, loaded, P)
    jax.tree.map(np.testing.assert_array_equal, found, wanted)
    assert jnp.isnan(wanted[0]["w"]).sum() == 1
