"""Blocks, and axes that `routes` merges, on a mesh: the results are those of a device.

Params are sharded along each axis. Every optimizer in every way on both kinds of axes:

    python -m pytest tests/matrix/test_meshes.py --all-layouts
"""

import inspect
from functools import cache, partial
from math import prod

import jax
import numpy as np
import pytest
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

import steepest

AUTO, EXPLICIT = AxisType.Auto, AxisType.Explicit
# name -> shape and sharding. Blocks are 4 x 4. All matrices are square: a factor that
# is singular has no certain eigenvectors.
LEAVES = {
    "few": ((8, 8), P("x")),  # 2 blocks along the rows, with 4 rows each
    "rows": ((16, 16), P("x", "y")),  # 4 blocks along the rows
    "columns": ((16, 16), P(None, ("x", "y"))),  # 4 blocks, with 4 columns each
    "heads": ((8, 2, 4), P(None, None, "y")),  # the second of two merged axes
    "conv": ((1, 2, 4, 8), P(None, None, "x")),  # the third of three
}
ROUTES = {"heads": "in out out", "conv": "in in in out"}
OFTEN = "frequency", "update_proj_gap"


def _accepts(name, *options):
    """Whether an optimizer of matrices takes all these arguments."""
    f = getattr(steepest, name)
    if not (inspect.isfunction(f) and f.__module__.startswith("steepest.matrix")):
        return False
    taken = inspect.signature(f).parameters
    return all(option in taken for option in options)


BLOCKED = [name for name in steepest.__all__ if _accepts(name, "block_size")]
ROUTED = [
    name for name in steepest.__all__ if _accepts(name, "learning_rate", "routes")
]


def pytest_generate_tests(metafunc):
    """All on explicit axes, blocks and SOAP in more ways; `--all-layouts`: in all."""
    if "size" not in metafunc.fixturenames or "name" not in metafunc.fixturenames:
        return
    every = metafunc.config.getoption("--all-layouts", default=False)
    few = {("plain", AUTO), ("zero", AUTO), ("reshard", EXPLICIT)}
    cases = [
        pytest.param(name, size, way, kind, id=f"{name}-{size}-{way}-{kind.name}")
        for name, size in [*((x, 4) for x in BLOCKED), *((x, None) for x in ROUTED)]
        for way in ("plain", "zero", "reshard")
        for kind in (AUTO, EXPLICIT)
        if way != "reshard" or _accepts(name, "reshard")
        if every
        or (way, kind) == ("plain", EXPLICIT)
        or ((size or name == "soap") and (way, kind) in few)
    ]
    metafunc.parametrize("name, size, way, kind", cases)


@cache
def _made(name, size, **options):
    recipe = getattr(steepest, name)
    given = {"block_size": size, "adam_learning_rate": 0.1} | dict.fromkeys(OFTEN, 1)
    taken = inspect.signature(recipe).parameters
    return recipe(
        0.1, routes=ROUTES, **{k: x for k, x in given.items() if k in taken}, **options
    )


def _drawn(seed):
    random = np.random.default_rng(seed)
    return {k: random.normal(size=shape) for k, (shape, _) in LEAVES.items()}


def _last_update(tx, put):
    p, u = put(_drawn(0)), None
    state, update = steepest.init(tx, p), jax.jit(tx.update)
    for seed in (1, 2):
        u, state = update(put(_drawn(seed)), state, p)
    return u


@cache
def _on_one_device(name, size):
    return jax.device_get(_last_update(_made(name, size), jax.device_put))


def _on_mesh(kind, without=None):
    """The shardings of the params, without a mesh axis."""
    mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(kind, kind))

    def placed(spec):
        rows = [x if isinstance(x, tuple) else (x,) for x in spec]
        rest = [tuple(x for x in row if x not in (None, without)) for row in rows]
        return NamedSharding(mesh, P(*rest))

    return {k: placed(spec) for k, (_, spec) in LEAVES.items()}


def test_results_are_those_of_one_device(name, size, way, kind):
    where = _on_mesh(kind, "x" if way == "zero" else None)
    tx = _made(name, size, **({"reshard": "x"} if way == "reshard" else {}))
    tx = steepest.zero(tx, axis="x") if way == "zero" else tx
    with jax.enable_x64(True):
        expected = _on_one_device(name, size)
        with jax.set_mesh(where["few"].mesh):
            u = _last_update(tx, lambda tree: jax.device_put(tree, where))
    for k, x in u.items():
        np.testing.assert_allclose(x, expected[k], rtol=1e-6, atol=1e-8, err_msg=k)
        if kind is EXPLICIT:
            assert x.sharding.is_equivalent_to(where[k], x.ndim)


@pytest.mark.parametrize("name", BLOCKED)
@pytest.mark.parametrize("way", ["plain", "zero"])
def test_blocks_of_sharded_params_are_sharded(name, way):
    """No array is made. Axes may be of either kind: `shardings` is the same."""
    where = _on_mesh(AUTO, "x" if way == "zero" else None)
    struct = lambda k: jax.ShapeDtypeStruct(LEAVES[k][0], "float32", sharding=where[k])
    tx, p = _made(name, 4), {k: struct(k) for k in LEAVES}
    tx = steepest.zero(tx, axis="x") if way == "zero" else tx
    state = jax.tree_util.tree_leaves_with_path(jax.eval_shape(tx.init, p))
    parts = {"few": 4, "rows": 8, "columns": 8, "heads": 2, "conv": 4}
    parts |= {"heads": 8} if way == "zero" else {}
    found = {}
    for (path, x), its in zip(
        state, jax.tree.leaves(steepest.shardings(tx, p)), strict=True
    ):
        if ".mu" in (text := jax.tree_util.keystr(path)):
            found[text.split("'")[-2]] = x.size // prod(its.shard_shape(x.shape))
    assert found == parts


def test_a_step_of_zero_with_blocks():
    """`make_step` knows where the state is, and returns it there."""
    tx, where = steepest.zero(_made("soap", 4), axis="x"), _on_mesh(AUTO, "x")
    drawn = lambda seed: jax.device_put(_drawn(seed), where)
    with jax.enable_x64(True):
        p = drawn(0)
        there, state = steepest.shardings(tx, p), steepest.init(tx, p)
        p, state = steepest.make_step(tx)(p, state, drawn(1))
    for x, its in zip(jax.tree.leaves(state), jax.tree.leaves(there), strict=True):
        assert x.sharding.is_equivalent_to(its, x.ndim)


@pytest.mark.parametrize("kind", [AUTO, EXPLICIT])
@pytest.mark.parametrize("size", [4, 100, None])  # 100: only axes are merged
def test_init_inside_jit(size, kind):
    """On explicit axes, the state is where `shardings` says."""
    where, tx = _on_mesh(kind), _made("soap", size)
    struct = lambda k: jax.ShapeDtypeStruct(LEAVES[k][0], "float32", sharding=where[k])
    p = {k: struct(k) for k in LEAVES}
    state = jax.eval_shape(partial(steepest.init, tx), p)
    its = steepest.shardings(tx, p)
    for x, y in zip(jax.tree.leaves(state), jax.tree.leaves(its), strict=True):
        assert kind is AUTO or x.sharding.spec == y.spec


SHORTER = {
    "tall": ((12, 10), P("x", "y")),  # columns of 4, 4 and 2
    "wide": ((3, 10), P(None, "y")),
    "stack": ((4, 10, 12), P("x", None, "y")),
    "uneven": ((24, 7), P(("x", "y"))),  # no mesh axis divides 5 rows, 4 times, and 4
    "empty": ((0, 8), P(None, "x")),
    "bias": ((8,), P("x")),
}


@pytest.mark.parametrize("run", ["jit", "eager"])
@pytest.mark.parametrize("kind", [AUTO, EXPLICIT])
@pytest.mark.parametrize("size", [4, 5])
def test_shorter_last_blocks(size, kind, run):
    """Updates are those of one device, bit for bit, and sharded like the params."""
    random = np.random.default_rng(0)
    mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(kind, kind))
    g = {k: random.normal(size=shape).astype("f") for k, (shape, _) in SHORTER.items()}
    where = {k: NamedSharding(mesh, spec) for k, (_, spec) in SHORTER.items()}
    tx = steepest.blocked(steepest.scale_by_adam(), size)
    call = jax.jit if run == "jit" else lambda f: f
    expected, state = tx.update(g, tx.init(g))
    p = jax.device_put(g, where)
    u, new = call(tx.update)(p, steepest.init(tx, p))
    jax.tree.map(np.testing.assert_array_equal, (u, new), (expected, state))
    if kind is EXPLICIT:
        assert all(x.sharding.is_equivalent_to(where[k], x.ndim) for k, x in u.items())
