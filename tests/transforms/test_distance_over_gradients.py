"""Distance over gradients, leaf by leaf."""

import gc

import jax
import jax.numpy as jnp
import numpy as np

import steepest

P = {"w": jnp.array([[3.0], [4.0]]), "s": jnp.array(1.0)}


def test_the_first_step_is_relative_to_the_param():
    tx = steepest.scale_by_distance_over_gradients(reps_rel=0.1, eps=0.0)
    u, _ = tx.update(P, tx.init(P), P)
    np.testing.assert_allclose(jnp.linalg.norm(u["w"]), 0.1 * (1 + 5), rtol=1e-6)
    np.testing.assert_allclose(u["s"], 0.1 * 2, rtol=1e-6)


def test_a_scalar_stays_a_scalar():
    """In Optax its update has an additional axis."""
    tx = steepest.scale_by_distance_over_gradients()
    state = tx.init(P)
    assert tx.update(P, state, P)[0]["s"].shape == ()
    assert state.grad_sum_of_squares["s"].shape == (1,)
    assert state.max_dist["s"].shape == ()


def test_how_far_it_has_been_counts_not_how_far_it_is():
    tx = steepest.scale_by_distance_over_gradients(eps=0.0)
    g, state = jax.tree.map(jnp.ones_like, P), tx.init(P)
    away = jax.tree.map(lambda x: x + 3, P)
    for p, steps in ((away, 1), (P, 2)):
        u, state = tx.update(g, state, p)
        np.testing.assert_allclose(u["s"], 3 / steps**0.5, rtol=1e-5)
    assert float(state.max_dist["s"]) == 3


def test_where_it_began_is_a_copy_in_its_own_dtype():
    tx = steepest.scale_by_distance_over_gradients(param_dtype=jnp.bfloat16)
    state = tx.init(P)
    assert state.init_params["w"].dtype == jnp.bfloat16
    assert state.max_dist["w"].dtype == jnp.float32
    step = steepest.make_step(steepest.chain(tx, steepest.scale(-1.0)))
    p = jax.tree.map(jnp.copy, P)
    q, _ = step(p, (tx.init(p), steepest.EmptyState()), P)
    assert float(q["s"]) < 1


def test_half_precision_keeps_its_numbers_in_float32():
    """In bfloat16, squares of 1e-6 would not add up, nor distances of 1e-6."""
    p = jax.tree.map(lambda x: x.astype(jnp.bfloat16), P)
    tx = steepest.scale_by_distance_over_gradients()
    u, state = tx.update(p, tx.init(p), p)
    assert u["w"].dtype == jnp.bfloat16
    assert state.max_dist["w"].dtype == jnp.float32
    assert state.grad_sum_of_squares["w"].dtype == jnp.float32
    assert state.init_params["w"].dtype == jnp.float32


def test_without_gradients_it_stands_still():
    tx = steepest.scale_by_distance_over_gradients(eps=0.0)
    zero = jax.tree.map(jnp.zeros_like, P)
    u, _ = tx.update(zero, tx.init(P), P)
    jax.tree.map(np.testing.assert_array_equal, u, zero)


def test_a_traced_first_step_is_not_kept_after_tracing():
    """The engine caches the shapes of state, not its initial values."""

    @jax.jit
    def two_steps(reps_rel):
        tx = steepest.scale_by_distance_over_gradients(reps_rel)
        _, state = tx.update(P, tx.init(P), P)
        return tx.update(P, state, P)[0]

    # JAX looks for leaks among all objects that Python's collector knows.
    gc.freeze()
    try:
        with jax.checking_leaks():
            small, large = two_steps(0.1), two_steps(0.2)
    finally:
        gc.unfreeze()
    jax.tree.map(lambda a, b: np.testing.assert_allclose(2 * a, b, 1e-6), small, large)
