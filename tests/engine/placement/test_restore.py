"""Save with Orbax on one mesh, restore to another."""

import jax
import jax.numpy as jnp
import pytest

import steepest

from ._layouts import mesh, on, params

KINDS = {
    "galore": steepest.contrib.galore(0.1, rank=2),
    "random keys": steepest.noisy_sgd(0.1, key=0),
    "packed": steepest.packed(steepest.adam(0.1), below=10),
    "int8": steepest.adam(0.1, memory_dtype="int8"),
    "named_chain": steepest.named_chain(("a", steepest.adam(0.1))),
}


@pytest.mark.filterwarnings("ignore")
def test_orbax_saves_every_kind_of_state(tmp_path):
    """Also arrays that `tx` keeps for leaves that it does nothing with."""
    ocp = pytest.importorskip("orbax.checkpoint")
    big = lambda mesh, *spec: jax.device_put(jnp.ones((64, 128)), on(mesh, *spec))
    vectors = {"c": jnp.ones(8), "d": jnp.ones(8)}
    of = lambda mesh, *spec: {
        **params(mesh, spec, ()),
        "big": big(mesh, *spec),
        **jax.device_put(vectors, on(mesh)),
    }
    two = jax.make_mesh((2,), ("z",), devices=jax.devices()[:2])
    first, second = of(mesh(), "x"), of(two, None, "z")
    states = {k: steepest.init(tx, first) for k, tx in KINDS.items()}
    where = {k: steepest.shardings(tx, second) for k, tx in KINDS.items()}
    shapes = {k: jax.eval_shape(tx.init, second) for k, tx in KINDS.items()}
    struct = lambda x, its: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=its)
    with ocp.StandardCheckpointer() as checkpointer:
        checkpointer.save(tmp_path / "states", states)
        checkpointer.wait_until_finished()
        target = jax.tree.map(struct, shapes, where)
        restored = checkpointer.restore(tmp_path / "states", target)
    want = steepest.place(states, where)
    assert jax.tree.structure(restored) == jax.tree.structure(want)
    for x, y in zip(jax.tree.leaves(restored), jax.tree.leaves(want), strict=True):
        assert x.sharding.is_equivalent_to(y.sharding, x.ndim)
        assert bool(jnp.all(x == y))
