"""Optimizers of matrices under `vmap` over learning rates, as in a race."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steepest

RATES = jnp.array([0.1, 0.2])
MAKERS = {
    "fira": lambda rate: steepest.fira(rate, rank=2, update_proj_gap=3),
    "galore": lambda rate: steepest.contrib.galore(rate, rank=2, update_proj_gap=3),
}


def _step(make, params, state, rate):
    """The gradients are the params."""
    updates, state = make(rate).update(params, state, params)
    return steepest.apply_updates(params, updates), state


@pytest.mark.parametrize("name", MAKERS)
def test_rare_work_stays_rare(name):
    """Each run has its own count. The decomposition is still in a condition."""
    make = MAKERS[name]
    many = jax.jit(jax.vmap(lambda *args: _step(make, *args)))
    params = {"w": jnp.ones((2, 4, 6))}
    state = jax.vmap(make(0.1).init)(params)
    program = many.lower(params, state, RATES).as_text()
    assert "stablehlo.case" in program


@pytest.mark.parametrize("name", MAKERS)
def test_a_sweep_equals_single_runs(name):
    make = MAKERS[name]
    one = jax.jit(lambda *args: _step(make, *args))
    many = jax.jit(jax.vmap(lambda *args: _step(make, *args)))
    start = {"w": jax.random.normal(jax.random.key(0), (2, 4, 6))}
    state = jax.vmap(make(0.1).init)(start)
    # One run is a step ahead, so their projections change in different steps.
    ahead, later = (jax.tree.map(lambda x, k=k: x[k], (start, state)) for k in (0, 1))
    ahead = one(*ahead, RATES[0])
    params, state = jax.tree.map(lambda *xs: jnp.stack(xs), ahead, later)
    for _ in range(4):
        ahead, later = one(*ahead, RATES[0]), one(*later, RATES[1])
        params, state = many(params, state, RATES)
    for k, (alone, _) in enumerate((ahead, later)):
        np.testing.assert_allclose(params["w"][k], alone["w"], rtol=1e-4, atol=1e-5)
