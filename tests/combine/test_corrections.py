"""A weight and its correction are two results of a program, and parts of one number."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steepest

MOMENTUM = steepest.sgd(1e-2, 0.9)


def _applied(tx, p, state, g):
    u, state = tx.update(g, state, p)
    return steepest.apply_updates(p, u), state


@pytest.mark.parametrize("way", ["step", "update"])
def test_weight_and_correction_belong_together(way):
    """In a million weights, some are in the middle between two bfloat16 numbers.

    With the options of conftest.py, XLA rounds a product in two ways in one program.
    """
    inner = MOMENTUM
    tx = steepest.compensated(inner)
    draw = lambda k: jax.random.normal(jax.random.key(k), (1 << 20,), jnp.bfloat16)
    compiled = lambda tx: (
        steepest.make_step(tx)
        if way == "step"
        else jax.jit(functools.partial(_applied, tx))
    )
    p, w = draw(0), draw(0).astype(jnp.float32)
    state, want_state = tx.init(p), inner.init(w)
    step, wide_step = compiled(tx), compiled(inner)
    for k in range(1, 4):
        p, state = step(p, state, draw(k))
        w, want_state = wide_step(w, want_state, draw(k).astype(jnp.float32))
    np.testing.assert_allclose(steepest.wide_params(p, state), w, 1e-6, 1e-6)


@pytest.mark.skipif(
    jax.default_backend() != "cpu" or jax.__version_info__ < (0, 11),
    reason="what the CPU compiler does; that of JAX 0.10 ignores the barrier",
)
def test_a_weight_is_computed_once():
    """Else two loops read the old weights, and one of them reads a copy."""
    tx, p = steepest.compensated(MOMENTUM), jnp.ones((8, 16), jnp.bfloat16)
    step = jax.jit(steepest.engine.stepping(tx), donate_argnums=(0, 1))
    assert " copy(" not in step.lower(p, tx.init(p), p).compile().as_text()
