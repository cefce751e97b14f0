"""Inputs and outputs have the same shapes, dtypes and structures."""

import copy
import pickle

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ..zoo import (
    distinct,
    everyone,
    gradients,
    over,
    params,
    PARTS,
    Row,
    typeof,
    ZOO,
)

# Not float16, which is as narrow as bfloat16: `test_finite` runs it.
dtypes = pytest.mark.parametrize(
    "dtype", ["bfloat16", "float32", "float64", "complex64"]
)


@distinct
@dtypes
def test_updates_look_like_params_and_state_stays_what_it_was(row: Row, dtype):
    """So the state can be the carry of a `scan`, and a checkpoint can be loaded."""
    with jax.enable_x64(dtype == "float64"):
        if dtype == "complex64" and not row.complex:
            return
        tx, p = row.make(), params(dtype)
        state = tx.init(p)
        u, new = jax.eval_shape(tx.update, gradients(p), state, p)
        assert typeof(u) == typeof(p)
        assert typeof(new) == typeof(state)


@distinct
@pytest.mark.parametrize("pair", ["float32 bfloat16", "bfloat16 float32"])
def test_updates_are_as_wide_as_the_wider_of_gradient_and_param(row: Row, pair):
    """float32 weights do not get bfloat16 steps, and the state does not change."""
    of_params, of_grads = pair.split()
    tx, p = row.make(), params(of_params)
    state = tx.init(p)
    u, new = jax.eval_shape(tx.update, gradients(params(of_grads)), state, p)
    assert typeof(new) == typeof(state)
    if not row.partial:
        assert {x.dtype for x in jax.tree.leaves(u)} == {jnp.dtype("float32")}


@everyone
def test_every_array_of_a_state_is_its_own(row: Row):
    """Otherwise it would be donated twice, and JAX would crash."""
    tx, p = row.make(), params()
    arrays = jax.tree.leaves((p, tx.init(p), tx.init(p)))
    assert len({id(x) for x in arrays}) == len(arrays)


@everyone
def test_init_takes_shapes(row: Row):
    """Before anything is allocated."""
    tx, p = row.make(), params()
    shapes = jax.eval_shape(lambda: p)
    assert typeof(tx.init(shapes)) == typeof(tx.init(p))
    found = jax.eval_shape(tx.init, p)
    assert jax.tree.structure(found) == jax.tree.structure(tx.init(p))


@over([row for row in ZOO + PARTS if row.open])
def test_extra_arguments_are_accepted(row: Row):
    tx, p = row.make(), params()
    plain, _ = tx.update(gradients(p), tx.init(p), p)
    unknown = {"anything": None} if row.wants else {"anything": None, "value": 1.0}
    extra, _ = tx.update(gradients(p), tx.init(p), p, **unknown)
    jax.tree.map(np.testing.assert_array_equal, plain, extra)


@everyone
@pytest.mark.parametrize("empty", [{}, [], [None], (None, {})], ids=str)
def test_trees_without_leaves_pass(row: Row, empty):
    tx = row.make()
    u, state = tx.update(empty, tx.init(empty), empty)
    assert u == empty
    assert typeof(state) == typeof(tx.init(empty))


@over([row for row in ZOO + PARTS if not row.rounds])
def test_a_leaf_without_gradient_keeps_its_memory(row: Row):
    """A leaf with gradient `None` does not change."""
    tx, p = row.make(), params()
    state = tx.init(p)
    _, state = tx.update(gradients(p), state, p)
    g = gradients(p)
    g["w"] = None
    u, new = tx.update(g, state, p)
    assert u["w"] is None
    assert typeof(new) == typeof(state)
    paths = jax.tree_util.tree_leaves_with_path
    for (path, was), (_, now) in zip(paths(state), paths(new), strict=True):
        if row.per_leaf and "'w'" in jax.tree_util.keystr(path):
            np.testing.assert_array_equal(was, now)


# Their masks ask for `x.ndim`, which a Python number does not have.
_ARRAYS_ONLY = {"adamw_masked", "_masked_adam", "_partition", "muon_numbers"}
_ARRAYS_ONLY |= {"_hyperball_of_matrices"}


@over([row for row in ZOO if not row.light and row.name not in _ARRAYS_ONLY])
def test_params_may_be_python_numbers(row: Row):
    tx, p = row.make(), {"w": jnp.ones((2, 3)), "s": 2.0}
    g = {"w": jnp.ones((2, 3)), "s": 1.0}
    u, state = tx.update(g, tx.init(p), p)
    u, _ = tx.update(g, state, p)
    assert jnp.shape(u["s"]) == () and bool(jnp.isfinite(u["s"]))


@everyone
def test_state_survives_copying_and_pickling(row: Row):
    tx, p = row.make(), params()
    _, state = tx.update(gradients(p), tx.init(p), p)
    for again in (copy.deepcopy(state), pickle.loads(pickle.dumps(state))):
        assert typeof(again) == typeof(state)
        jax.tree.map(np.testing.assert_array_equal, again, state)


@everyone
def test_state_survives_saving_by_name(row: Row, tmp_path):
    """Every array of a state has its own path, and training continues from it."""
    tx, p = row.make(), params()
    _, state = tx.update(gradients(p), tx.init(p), p)
    rows, treedef = jax.tree_util.tree_flatten_with_path(state)
    named = {jax.tree_util.keystr(path): x for path, x in rows}
    assert len(named) == len(rows)
    np.savez(tmp_path / "state.npz", **named)
    with np.load(tmp_path / "state.npz") as file:
        again = treedef.unflatten([file[name] for name in named])
    u, new = tx.update(gradients(p, 1), state, p)
    u_again, new_again = tx.update(gradients(p, 1), again, p)
    jax.tree.map(np.testing.assert_array_equal, (u, new), (u_again, new_again))


@everyone
def test_numpy_arrays_are_arrays(row: Row):
    tx, p = row.make(), params()
    as_numpy = jax.tree.map(np.asarray, (gradients(p), p))
    u, state = tx.update(as_numpy[0], tx.init(as_numpy[1]), as_numpy[1])
    want, _ = tx.update(gradients(p), tx.init(p), p)
    jax.tree.map(np.testing.assert_array_equal, u, want)
    assert typeof(state) == typeof(tx.init(p))
