"""`zero`: a device keeps its part of the state, and the results are the same.

On both kinds of axes for every optimizer:

    python -m pytest tests/laws/test_zero.py --all-layouts
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

import steepest

from ..zoo import over, Row, ZOO

AUTO, EXPLICIT = AxisType.Auto, AxisType.Explicit
DEVICES = 8
# One square matrix: in a stack of several, bases may be renewed in another order, and
# eigenvectors for eigenvalue 0 depend on the last digit.
SMALL = {"w": (8, 8), "b": (8,)}
LARGE = {"w": (1024, 2048), "v": (1024, 1024), "b": (2048,)}
# Sums over the elements of a leaf, or products of matrices. In another order, the last
# digits differ.
SUMS = {"novograd", "dadapt_adamw", "dog", "dowg", "momo", "galore", "mechanize"}
SUMS |= {"adafactor", "adafactor_factored", "fromage", "lamb", "lars", "lbfgs"}
SUMS |= {"adam_mini", "adam_mini_heads", "apollo", "apollo_mini", "fira"}
SUMS |= {"muon", "muon_numbers", "muon_float16", "adamuon", "dion2", "normuon"}
SUMS |= {"normuon_rows", "scion", "scion_unconstrained", "psgd", "kron", "adam_h"}
SUMS |= {"muon_h", "_hyperball_of_matrices", "mars", "_clipped_late", "shampoo"}
SUMS |= {"shampoo_newton", "shampoo_kl", "soap", "soap_paper", "soap_fresh"}
SUMS |= {"soap_muon", "splus", "splus_paper", "_clipped_adamw", "_guard", "momo_adam"}
SUMS |= {"prodigy", "sam", "_mars_adamw"}
# Elementwise, but XLA joins a product and a sum in one of the two programs.
ROUNDED = {"sgd_nesterov", "optimistic_adam", "cocob", "adan"}
INT8 = Row(steepest.adamw, {"learning_rate": 0.1}, {"memory_dtype": "int8"}, "int8")
KEYS = Row(steepest.noisy_sgd, {"learning_rate": 0.1}, {"key": 0}, "typed")


def pytest_generate_tests(metafunc):
    """Each row on one kind of axes; with `--all-layouts`, on both."""
    if "kind" not in metafunc.fixturenames:
        return
    every = metafunc.config.getoption("--all-layouts", default=False)
    cases = [
        pytest.param(row, kind, id=f"{row.name}-{kind.name}")
        for k, row in enumerate([*ZOO, INT8, KEYS])
        for kind in (AUTO, EXPLICIT)
        if (row.name, kind) != ("_flatten", EXPLICIT)  # as in `test_placement`
        if every or row.name == "_flatten" or kind == (EXPLICIT, AUTO)[k % 2]
    ]
    metafunc.parametrize("row, kind", cases)


def on(kind):
    mesh = jax.make_mesh((DEVICES,), ("data",), axis_types=(kind,))
    return NamedSharding(mesh, P())


def filled(shapes, seed, where=None):
    keys = jax.random.split(jax.random.key(seed), len(shapes))
    rows = zip(shapes.items(), keys, strict=True)
    p = {k: jax.random.normal(key, shape) for (k, shape), key in rows}
    return p if where is None else jax.device_put(p, where)


def numbers(x):
    is_key = jnp.issubdtype(x.dtype, jax.dtypes.prng_key)
    return np.asarray(jax.random.key_data(x) if is_key else x)


def test_three_steps_are_the_same(row: Row, kind):
    """The params are replicated after them, and the state stays in its place."""
    shapes = {"w": (64, 64)} if row is INT8 else SMALL
    tx, where = row.make(), on(kind)
    p, q = filled(shapes, 0, where), filled(shapes, 0)
    sharded = steepest.zero(tx)
    there = steepest.shardings(sharded, p)
    state, plain = steepest.init(sharded, p), tx.init(q)
    step, whole = jax.jit(sharded.update), jax.jit(tx.update)
    for k in (1, 2, 3):
        # In one program with the update, XLA would round `p + u` once instead of twice.
        u, state = step(filled(shapes, k, where), state, p)
        v, plain = whole(filled(shapes, k), plain, q)
        p, q = steepest.apply_updates(p, u), steepest.apply_updates(q, v)
    assert all(x.sharding.is_fully_replicated for x in p.values())
    for x, its in zip(jax.tree.leaves(state), jax.tree.leaves(there), strict=True):
        assert x.sharding.is_equivalent_to(its, x.ndim)
    if row.name not in SUMS | ROUNDED:
        pairs = (p, state.inner_state), (q, plain)
        for x, y in zip(*map(jax.tree.leaves, pairs), strict=True):
            np.testing.assert_array_equal(numbers(x), numbers(y))
    for k, x in p.items():
        far = np.abs(np.asarray(x) - np.asarray(q[k])).max() / np.abs(q[k]).max()
        assert far <= (2e-3 if row.name == "muon_float16" else 1e-6), (k, far)


@over([*ZOO, INT8])
def test_a_device_keeps_an_eighth_of_the_state(row: Row):
    """No array is made. Axes may be of either kind: `shardings` is the same."""
    struct = lambda shape: jax.ShapeDtypeStruct(shape, jnp.float32, sharding=on(AUTO))
    p, tx = {k: struct(shape) for k, shape in LARGE.items()}, steepest.zero(row.make())
    state = jax.tree.leaves(jax.eval_shape(tx.init, p))
    where = jax.tree.leaves(steepest.shardings(tx, p))
    size = lambda x, shape: np.prod(shape, dtype=int) * jnp.dtype(x.dtype).itemsize
    total = sum(size(x, x.shape) for x in state)
    pairs = zip(state, where, strict=True)
    mine = sum(size(x, its.shard_shape(x.shape)) for x, its in pairs)
    # Some have only a few numbers for the tree.
    assert mine <= total / DEVICES * 1.01 or total <= 256, (mine, total)
