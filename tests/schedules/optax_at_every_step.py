"""Schedules of both libraries, at every step of a run."""

import jax
import jax.numpy as jnp
import numpy as np
import optax

import steepest

LAST = 2**31 - 1  # the largest count
STEPS = 120


def every(schedule):
    return jax.jit(jax.vmap(schedule))(jnp.arange(STEPS))


def same_at_every_step(name, options):
    """In float64; and in float32, where Optax's float64 is the reference."""
    narrow = every(getattr(steepest, name)(**options))
    assert narrow.dtype == jnp.float32
    with jax.enable_x64(True):
        ours = every(getattr(steepest, name)(**options))
        with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
            # Not compiled: compiled, XLA multiplies by the reciprocal, and misses the
            # end.
            theirs = jax.vmap(getattr(optax, name)(**options))(jnp.arange(STEPS))
        assert ours.dtype == theirs.dtype == jnp.float64
    np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(narrow, theirs, rtol=2e-5, atol=1e-6)


def same_for_any_count(name, options):
    """One step, for every type of count: the same value, and Optax's dtype."""
    ours = getattr(steepest, name)(**options)
    with jax.numpy_dtype_promotion("standard"):
        theirs = getattr(optax, name)(**options)
        wanted = [jax.eval_shape(theirs, count) for count in COUNTS]
        value = theirs(7)
    for count, theirs in zip(COUNTS, wanted, strict=True):
        assert jax.eval_shape(ours, count).dtype == theirs.dtype, repr(count)
    for count in (7, np.int64(7), jnp.array(7.0, jnp.float32), jnp.array(7, jnp.int8)):
        np.testing.assert_allclose(ours(count), value, rtol=2e-5)
    half = ours(jnp.array(7.0, jnp.bfloat16)).astype(jnp.float32)
    np.testing.assert_allclose(half, value, rtol=1e-2)
    np.testing.assert_allclose(jax.jit(ours)(7), value, rtol=2e-5, atol=1e-6)
    np.testing.assert_allclose(ours(jnp.array([3, 7]))[1], value, rtol=2e-5)


COUNTS = [
    7,
    7.0,
    np.int64(7),
    np.float32(7),
    jnp.array(7),
    jnp.array(7, jnp.int8),
    jnp.array(7, jnp.int32),
    jnp.array(7.0, jnp.float32),
    jnp.array(7.0, jnp.bfloat16),
]
