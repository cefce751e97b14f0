"""`shardings` is where `init`, eager or compiled, and steps put every array."""

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

import steepest

from ..zoo import Row, ZOO

AUTO, EXPLICIT = AxisType.Auto, AxisType.Explicit
SHAPES = {"w": (8, 16), "b": (8,), "s": ()}
# name -> the sizes and names of the mesh axes, and the specs of the params
LAYOUTS = {
    "FSDP": ((8,), ("data",), {"w": P("data"), "b": P("data"), "s": P()}),
    "2D": ((4, 2), ("data", "model"), {"w": P("data", "model"), "b": P("model")}),
    "tensor parallel": ((4, 2), ("data", "model"), {"w": P(None, "model")}),
    "replicated": ((8,), ("data",), {}),
}
FEW = ("adamw", "adafactor_factored", "muon", "sm3", "soap")
# `flatten` concatenates leaves, which JAX cannot do with explicit shardings.
CASES = [
    pytest.param(row, layout, kind, id=f"{row.name}-{layout}-{kind}")
    for row in ZOO
    for layout in LAYOUTS
    for kind in (AUTO, EXPLICIT)
    if row.name in FEW or (layout == "2D" and not row.light)
    if (row.name, kind) != ("_flatten", EXPLICIT)
]


def made(layout, kind):
    """Params in one of the layouts."""
    sizes, names, specs = LAYOUTS[layout]
    mesh = jax.make_mesh(sizes, names, axis_types=(kind,) * len(names))
    return {
        k: jax.device_put(jnp.ones(shape), NamedSharding(mesh, specs.get(k, P())))
        for k, shape in SHAPES.items()
    }


def assert_there(tree, where):
    rows = jax.tree_util.tree_leaves_with_path(tree)
    for (path, x), its in zip(rows, jax.tree.leaves(where), strict=True):
        alike = x.sharding.is_equivalent_to(its, x.ndim)
        assert alike, (jax.tree_util.keystr(path), x.sharding, its)


@pytest.mark.parametrize("row, layout, kind", CASES)
def test_state_stays_where_shardings_says(row: Row, layout, kind, compiles):
    p, g, tx = made(layout, kind), made(layout, kind), row.make()
    where = steepest.shardings(tx, p)
    state = steepest.init(tx, p)
    assert jax.tree.structure(state) == jax.tree.structure(where)
    assert_there(state, where)
    if kind is AUTO or row.name in FEW:
        # Without the params in the result, JAX wants `set_mesh` for explicit axes.
        both = jax.jit(lambda p: (steepest.init(tx, p), p))(p)
        assert_there(both[0], where)
    step = steepest.make_step(tx)
    with compiles(1):
        for _ in range(3):
            p, state = step(p, state, g)
    assert_there(state, where)
    assert_there(p, {k: x.sharding for k, x in g.items()})
