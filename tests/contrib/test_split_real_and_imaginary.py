"""Complex numbers as pairs of real numbers."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import steepest
from steepest import contrib

P = {"c": jnp.array([1 + 2j, -3j]), "r": jnp.array([0.5, -1.0]), "n": None}


@pytest.mark.parametrize("wide", [False, True], ids=["complex64", "complex128"])
def test_as_optax_does(wide):
    """Updates and state, with arrays in the same places."""
    with jax.enable_x64(wide):
        dtype = jnp.complex128 if wide else jnp.complex64
        p = {**P, "c": P["c"].astype(dtype), "r": P["r"].astype(float)}
        found = []
        for m in (steepest, optax):
            with jax.numpy_dtype_promotion("standard"):
                tx = m.contrib.split_real_and_imaginary(m.adamw(0.1))
                state = tx.init(p)
                for _ in range(3):
                    u, state = tx.update(p, state, p)
            found.append((u, state))
        ours, theirs = found
        assert str(jax.tree.structure(ours)) == str(jax.tree.structure(theirs))
        moved = steepest.from_optax(theirs[1])
        assert jax.tree.structure(moved) == jax.tree.structure(ours[1])
        for a, b in zip(*map(jax.tree.leaves, found), strict=True):
            assert a.dtype == b.dtype
            np.testing.assert_allclose(a, b, rtol=1e-12 if wide else 1e-5)


def test_both_parts_are_numbers_of_their_own():
    tx = contrib.split_real_and_imaginary(steepest.scale_by_adam())
    u, _ = tx.update(P, tx.init(P), P)
    np.testing.assert_allclose(u["c"], [1 + 1j, -1j], atol=1e-5)
    assert u["c"].dtype == P["c"].dtype and u["n"] is None


def test_real_trees_pass_as_they_are():
    p = {"r": P["r"]}
    tx, plain = steepest.adam(0.1), steepest.adam(0.1)
    split = contrib.split_real_and_imaginary(tx)
    u, state = jax.jit(split.update)(p, split.init(p), p)
    want, kept = plain.update(p, plain.init(p), p)
    np.testing.assert_allclose(u["r"], want["r"], rtol=1e-6)
    assert jax.tree.structure(state.inner_state) == jax.tree.structure(kept)


def test_init_of_shapes_and_extra_arguments():
    tx = contrib.split_real_and_imaginary(contrib.momo())
    shapes = jax.eval_shape(lambda: P)
    assert jax.tree.structure(tx.init(shapes)) == jax.tree.structure(tx.init(P))
    u, _ = tx.update(P, tx.init(P), P, value=1.0)
    assert u["c"].dtype == P["c"].dtype


@pytest.mark.usefixtures("as_users_do")
def test_what_is_not_a_transformation_is_refused():
    with pytest.raises(TypeError, match="split_real_and_imaginary: inner is a float"):
        contrib.split_real_and_imaginary(0.1)
