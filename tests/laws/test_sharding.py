"""State and updates have the sharding of the params."""

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import AxisType, NamedSharding, PartitionSpec

from ..zoo import DISTINCT, Row

AUTO, EXPLICIT = AxisType.Auto, AxisType.Explicit
# Explicit axes, the stricter kind, where possible.
CASES = [(row, EXPLICIT if row.explicit else AUTO) for row in DISTINCT]


def _sharded(kind):
    mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(kind, kind))
    specs = {
        "w": PartitionSpec("x", "y"),
        "b": PartitionSpec("y"),
        "s": PartitionSpec(),
    }
    p = {"w": jnp.ones((8, 6)), "b": jnp.ones((4,)), "s": jnp.ones(())}
    shardings = {k: NamedSharding(mesh, spec) for k, spec in specs.items()}
    return jax.device_put(p, shardings), mesh


def _assert_alike(tree, p):
    """Every array is sharded like the param of its shape."""
    by_shape = {x.shape: x.sharding for x in p.values()}
    for x in jax.tree.leaves(tree):
        if x.ndim and x.shape in by_shape:
            assert x.sharding.is_equivalent_to(by_shape[x.shape], x.ndim)


@pytest.mark.parametrize(
    "row, kind",
    [
        pytest.param(row, kind, id=f"{row.name}-{kind}")
        for row, kind in CASES
        if row.sharded
    ],
)
def test_sharding_is_kept(row: Row, kind):
    p, mesh = _sharded(kind)
    with jax.set_mesh(mesh):
        tx = row.make()
        state = tx.init(p)
        _assert_alike(state, p)
        u, new = jax.jit(tx.update)(p, state, p)
        _assert_alike(new if row.constant else (u, new), p)
        if kind is AxisType.Explicit:
            before, after = (jax.tree.map(jax.typeof, s) for s in (state, new))
            assert before == after
