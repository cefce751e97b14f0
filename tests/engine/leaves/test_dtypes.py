"""The dtype rules: compute in float32 or wider, store in the dtype of the storage."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steepest
from steepest.engine.leaves import restore_like
from steepest.numerics import encode


def test_the_second_moment_of_bfloat16_moves():
    """With decay 0.999 a bfloat16 average of squares would stop halfway."""
    tx = steepest.scale_by_adam()
    p = jnp.ones((2,), jnp.bfloat16)

    @jax.jit
    def run(state):
        def step(state, g):
            return tx.update(jnp.full_like(p, g), state)[1], None

        gs = jnp.where(jnp.arange(2100) < 100, 0.1, 1.0).astype(jnp.bfloat16)
        return jax.lax.scan(step, state, gs)[0]

    state = run(tx.init(p))
    assert state.nu.dtype == jnp.float32
    np.testing.assert_allclose(state.nu, 0.865, rtol=1e-2)


def test_the_user_chooses_where_moments_are_kept():
    tx = steepest.adam(0.1, mu_dtype=jnp.bfloat16, nu_dtype=jnp.float16)
    p = jnp.ones((2,))
    state = tx.init(p)
    assert (state[0].mu.dtype, state[0].nu.dtype) == (jnp.bfloat16, jnp.float16)
    u, new = tx.update(p, state, p)
    assert (new[0].mu.dtype, new[0].nu.dtype) == (jnp.bfloat16, jnp.float16)
    assert u.dtype == jnp.float32


def test_a_bfloat16_run_follows_its_float32_twin():
    """Step by step from the same point, the update is the float32 one, rounded once."""
    tx, g = steepest.adamw(0.1), jnp.array([0.3, -0.7, 1e-3])
    p = jnp.array([1.0, 2.0, -3.0])
    u, _ = tx.update(g.astype("bfloat16"), tx.init(p.astype("bfloat16")), p)
    want, _ = tx.update(g.astype("bfloat16").astype(float), tx.init(p), p)
    np.testing.assert_allclose(u, want, rtol=1e-5)


def test_no_rounding_between_the_links_of_a_chain():
    """1e-3 x 1e3 is 1 in float16 too, if no intermediate result is rounded."""
    factors = [1e-6, 1e-6, 1e12]
    tx = steepest.chain(*map(steepest.scale, factors))
    g = jnp.array([3.0], jnp.float16)
    u, _ = tx.update(g, tx.init(g))
    assert u.dtype == jnp.float16
    np.testing.assert_allclose(u, g, rtol=1e-3)


def test_no_rounding_between_passes():
    tx = steepest.chain(
        steepest.scale(1e-6), steepest.clip_by_global_norm(1.0), steepest.scale(1e6)
    )
    g = jnp.array([3.0], jnp.float16)
    u, _ = tx.update(g, tx.init(g))
    np.testing.assert_allclose(u, g, rtol=1e-3)


def test_what_the_last_pass_does_not_see_is_rounded_too():
    g = {"w": jnp.ones((2,), jnp.bfloat16), "b": jnp.ones((2,), jnp.bfloat16)}
    late = steepest.masked(steepest.clip_by_global_norm(1.0), {"w": True, "b": False})
    tx = steepest.chain(steepest.scale(2.0), late)
    u, _ = tx.update(g, tx.init(g), g)
    assert u["w"].dtype == u["b"].dtype == jnp.bfloat16


def test_too_large_for_float16_is_the_largest_not_infinite():
    """If float32 can represent it: an infinite gradient stays infinite."""
    g = jnp.array([6e4, jnp.inf, -6e4], jnp.float16)
    u, _ = (tx := steepest.scale(2.0)).update(g, tx.init(g))
    assert u.tolist() == [65504, float("inf"), -65504]


def test_integers_are_taken_as_numbers():
    g = jnp.array([3, -4])
    u, _ = (tx := steepest.scale(0.5)).update(g, tx.init(g))
    assert u.tolist() == [1.5, -2.0]


def test_numbers_are_float64_under_x64():
    """Bias correction to sixteen digits, for float64 params."""
    with jax.enable_x64(True):
        g = jnp.array([0.1])
        u, _ = (tx := steepest.scale_by_adam(eps=0.0)).update(g, tx.init(g))
        np.testing.assert_allclose(u, 1.0, rtol=1e-13)


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
def test_float32_stays_float32_under_x64(dtype):
    """Also with a traced float64 learning rate."""
    with jax.enable_x64(True):
        p = jnp.ones((2,), jnp.float32)
        update = jax.jit(
            lambda lr: steepest.adam(lr).update(p, steepest.adam(lr).init(p))
        )
        u, state = update(jnp.asarray(0.1, dtype))
        assert u.dtype == state[0].mu.dtype == state[0].nu.dtype == jnp.float32


def test_complex_moments_are_complex_and_squares_real():
    g = jnp.array([3 + 4j, 0])
    tx = steepest.scale_by_adam(eps=0.0, b1=0.0)
    u, state = tx.update(g, tx.init(g))
    assert (state.mu.dtype, state.nu.dtype) == (jnp.complex64, jnp.float32)
    np.testing.assert_allclose(u[0], (3 + 4j) / 5, rtol=1e-4)


def test_what_did_not_change_is_not_stored_again():
    """It would be rounded and clipped, which is a pass over all of it."""
    old = {"a": jnp.ones(3, "float16"), "b": encode(jnp.ones((2, 4)), "signed8")}
    read = {"a": old["a"].astype("float32"), "b": old["b"].decode()}
    same = restore_like(old, read, read)
    assert same["a"] is old["a"] and same["b"] is old["b"]
    other = restore_like(old, jax.tree.map(lambda x: 2 * x, read), read)
    assert other["a"].dtype == jnp.float16 and jnp.allclose(other["a"], 2)
    assert jnp.allclose(other["b"].decode(), 2)
