"""`shardings` is where `init`, eager or compiled, and steps put every array.

The whole product, every optimizer in every layout on both kinds of axes:

    python -m pytest tests/laws/test_placement.py --all-layouts
"""

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

import steepest

from ..zoo import Row, ZOO

AUTO, EXPLICIT = AxisType.Auto, AxisType.Explicit
# Small: with larger ones, eight devices on two cores may wait for each other forever
# in programs with an SVD or `eigh` (JAX 0.10.2).
SHAPES = {"w": (8, 16), "b": (8,), "s": ()}
CODED = {**SHAPES, "w": (64, 128)}  # large enough to be stored in 8 bits
# name -> the sizes and names of the mesh axes, and the specs of the params
LAYOUTS = {
    "FSDP": ((8,), ("data",), {"w": P("data"), "b": P("data"), "s": P()}),
    "2D": ((4, 2), ("data", "model"), {"w": P("data", "model"), "b": P("model")}),
    "tensor parallel": ((4, 2), ("data", "model"), {"w": P(None, "model")}),
    "replicated": ((8,), ("data",), {}),
}
INT8 = Row(steepest.adamw, {"learning_rate": 0.1}, {"memory_dtype": "int8"}, "int8")
# One for each kind of memory: like a param, codes and scales, a mean of each row, a
# maximum of each row, a stack, a projector, factors and bases, random keys.
FEW = ("adamw", "adamw_int8", "adafactor_factored", "sm3", "lbfgs", "galore", "soap")
FEW += ("noisy_sgd",)


def pytest_generate_tests(metafunc):
    """The few in every layout and all in one; with `--all-layouts`, all in every."""
    every = metafunc.config.getoption("--all-layouts", default=False)
    cases = [
        pytest.param(row, layout, kind, id=f"{row.name}-{layout}-{kind.name}")
        for k, row in enumerate([*ZOO, INT8])
        for layout in LAYOUTS
        for kind in (AUTO, EXPLICIT)
        # `flatten` concatenates leaves, which JAX cannot do with explicit shardings.
        if (row.name, kind) != ("_flatten", EXPLICIT)
        if every
        or row.name in (*FEW, "_flatten")
        or (layout == "2D" and kind == (AUTO, EXPLICIT)[k % 2])
    ]
    metafunc.parametrize("row, layout, kind", cases)


def made(layout, kind, shapes=SHAPES):
    """Params in one of the layouts."""
    sizes, names, specs = LAYOUTS[layout]
    mesh = jax.make_mesh(sizes, names, axis_types=(kind,) * len(names))
    return {
        k: jax.device_put(jnp.ones(shape), NamedSharding(mesh, specs.get(k, P())))
        for k, shape in shapes.items()
    }


def assert_there(tree, where):
    rows = jax.tree_util.tree_leaves_with_path(tree)
    for (path, x), its in zip(rows, jax.tree.leaves(where), strict=True):
        alike = x.sharding.is_equivalent_to(its, x.ndim)
        assert alike, (jax.tree_util.keystr(path), x.sharding, its)


def test_state_stays_where_shardings_says(row: Row, layout, kind, compiles):
    shapes = CODED if row is INT8 else SHAPES
    p, g = (made(layout, kind, shapes) for _ in range(2))
    tx = row.make()
    where = steepest.shardings(tx, p)
    state = steepest.init(tx, p)
    assert jax.tree.structure(state) == jax.tree.structure(where)
    assert_there(state, where)
    # Without the params in the result, JAX wants `set_mesh` for explicit axes.
    both = jax.jit(lambda p: (steepest.init(tx, p), p))(p)
    assert_there(both[0], where)
    step = steepest.make_step(tx)
    with compiles(1):
        for _ in range(3):
            p, state = step(p, state, g)
    assert_there(state, where)
    assert_there(p, {k: x.sharding for k, x in g.items()})
