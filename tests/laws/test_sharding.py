"""State and updates have the sharding of the params."""

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import AxisType, NamedSharding, PartitionSpec

import steepest

from ..zoo import DISTINCT, over, Row, ZOO

AUTO, EXPLICIT = AxisType.Auto, AxisType.Explicit
# Explicit axes, the stricter kind, where possible; `make_step` is tested with the
# other.
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


@over([row for row in ZOO if row.sharded])
def test_a_step_keeps_sharding(row: Row):
    p, _ = _sharded(AxisType.Auto)
    want, _ = _sharded(AxisType.Auto)
    tx = row.make()
    q, state = steepest.make_step(tx)(p, tx.init(p), want)
    _assert_alike((q, state), want)
