"""Save with Orbax on one mesh, restore to another."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steepest

from ...zoo import ZOO
from ._layouts import AUTO, mesh, on

KINDS = {row.name: row.maker(**row.hyper, **row.options) for row in ZOO}
KINDS |= {
    "packed": steepest.packed(steepest.adam(0.1), below=10),
    "int8": steepest.adam(0.1, memory_dtype="int8"),
    "offload": steepest.offload(steepest.adam(0.1)),
    "zero": steepest.zero(steepest.adam(0.1), axis="x"),
}
SHAPES = {"w": (8, 16), "big": (64, 128), "c": (8,), "d": (8,), "s": ()}


def _params(mesh, *spec):
    where = {k: on(mesh, *spec) if len(x) == 2 else on(mesh) for k, x in SHAPES.items()}
    return {k: jax.device_put(jnp.ones(x), where[k]) for k, x in SHAPES.items()}


def _numbered(state):
    """A state with other numbers in each array."""
    count = iter(range(10_000))

    def leaf(x):
        if jnp.issubdtype(x.dtype, jax.dtypes.prng_key) or x.dtype == bool:
            return x
        y = np.asarray(x) + np.asarray(next(count) % 100, x.dtype)
        return jax.device_put(y, x.sharding)

    return jax.tree.map(leaf, state)


@pytest.mark.filterwarnings("ignore")
def test_orbax_saves_every_kind_of_state(tmp_path):
    """Also arrays that `tx` keeps for leaves that it does nothing with."""
    ocp = pytest.importorskip("orbax.checkpoint")
    few = jax.devices()[:2]
    two = jax.make_mesh((2,), ("x",), axis_types=(AUTO,), devices=few)
    first, second = _params(mesh(), "x"), _params(two, None, "x")
    states, target = {}, {}
    for name, tx in KINDS.items():
        states[name] = _numbered(tx.init(first))
        there, treedef = jax.tree.flatten(steepest.shardings(tx, second))
        rows = zip(jax.tree.leaves(states[name]), there, strict=True)
        target[name] = treedef.unflatten(
            jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=its) for x, its in rows
        )
    with ocp.StandardCheckpointer() as checkpointer:
        checkpointer.save(tmp_path / "states", states)
        checkpointer.wait_until_finished()
        restored = checkpointer.restore(tmp_path / "states", target)
    assert jax.tree.structure(restored) == jax.tree.structure(target)
    rows = zip(*map(jax.tree.leaves, (states, restored, target)), strict=True)
    for x, y, its in rows:
        assert y.sharding.is_equivalent_to(its.sharding, y.ndim)
        assert y.sharding.memory_kind == its.sharding.memory_kind
        if jnp.issubdtype(x.dtype, jax.dtypes.prng_key):
            x, y = jax.random.key_data(x), jax.random.key_data(y)
        np.testing.assert_array_equal(x, y)
