"""All leaves as one vector."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steepest

P = {"w": jnp.ones((2, 3)), "b": jnp.array([1.0, -2.0]), "n": None, "s": jnp.array(3.0)}


def test_the_same_steps_with_one_vector_for_a_state():
    tx, plain = steepest.flatten(steepest.adamw(0.1)), steepest.adamw(0.1)
    u, state = tx.update(P, tx.init(P), P)
    want, _ = plain.update(P, plain.init(P), P)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, 1e-6), u, want)
    assert state[0].mu.shape == (9,) and u["n"] is None


def test_leaves_of_several_dtypes_come_back_in_their_own():
    p = {"w": jnp.ones(2, jnp.bfloat16), "b": jnp.ones(2)}
    tx = steepest.flatten(steepest.adam(0.1))
    u, state = tx.update(p, tx.init(p), p)
    assert u["w"].dtype == jnp.bfloat16 and u["b"].dtype == jnp.float32
    assert state[0].mu.dtype == jnp.float32


def test_a_leaf_without_a_gradient_stays_in_its_place():
    tx = steepest.flatten(steepest.sgd(1.0))
    u, _ = tx.update({**P, "b": None}, tx.init(P), P)
    assert u["b"] is None and float(u["s"]) == -3


def test_params_of_another_structure_are_named(as_users_do):
    tx = steepest.flatten(steepest.sgd(1.0))
    with pytest.raises(ValueError, match=r"flatten: leaf \['s'\]"):
        tx.update(P, tx.init(P), {k: x for k, x in P.items() if k != "s"})
