"""A run continues with another storage."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steepest

P = {"w": jnp.linspace(-1, 1, 4096).reshape(64, 64), "b": jnp.ones(3)}
STORED = [None, "int8", "int4", "float8", jnp.bfloat16]


def _begun(dtype):
    tx = steepest.adamw(0.1, memory_dtype=dtype)
    state = tx.init(P)
    for _ in range(2):
        _, state = tx.update(P, state, P)
    return tx, state


@pytest.mark.parametrize("before", STORED, ids=str)
@pytest.mark.parametrize("after", STORED, ids=str)
def test_from_any_storage_to_any_other(before, after):
    tx, _ = _begun(after)
    _, state = _begun(before)
    new = steepest.restore_as(state, tx, P)
    assert jax.tree.structure(new) == jax.tree.structure(tx.init(P))
    assert [x.dtype for x in jax.tree.leaves(new)] == [
        x.dtype for x in jax.tree.leaves(tx.init(P))
    ]
    assert int(new[0].count) == 2
    u, _ = tx.update(P, new, P)
    want, _ = _begun(None)[0].update(P, _begun(None)[1], P)
    np.testing.assert_allclose(u["b"], want["b"], 0.02)
    if "int4" not in (before, after):
        np.testing.assert_allclose(u["w"], want["w"], 0.1)


def test_what_is_stored_so_is_unchanged():
    tx, state = _begun("int8")
    new = steepest.restore_as(state, tx, P)
    for x, y in zip(jax.tree.leaves(state), jax.tree.leaves(new), strict=True):
        np.testing.assert_array_equal(x, y)


def test_another_optimizer_is_refused():
    _, state = _begun("int8")
    with pytest.raises(ValueError, match=r"restore_as: .*only its `memory_dtype` may"):
        steepest.restore_as(state, steepest.lion(0.1), P)
    tx = steepest.adamw(0.1)
    with pytest.raises(ValueError, match=r"restore_as: .*mu.*\['w'\].* has shape"):
        steepest.restore_as(state, tx, {**P, "w": jnp.ones((64, 65))})
