"""Optimizers go downhill."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steepest

from ..zoo import few_params, optimizers, params, Row, typeof


def quadratic(p):
    """An ill-conditioned bowl over all leaves."""
    leaves = jnp.concatenate([x.ravel() for x in jax.tree.leaves(p)]).astype(float)
    return 0.5 * jnp.sum(jnp.linspace(0.5, 5, leaves.size) * leaves**2)


def rosenbrock(p):
    """The banana-shaped valley, with a matrix and a vector as its two coordinates."""
    x, y = p["x"][0, 0], p["y"][0]
    return (1 - x) ** 2 + 100 * (y - x**2) ** 2


BANANA = {"x": jnp.array([[-1.2]]), "y": jnp.array([1.0])}


def _minimise(tx, f, p, steps):
    @jax.jit
    def run(p):
        def step(carry, _):
            p, state = carry
            value, g = jax.value_and_grad(f)(p)
            known = {"value": value, "grad": g, "value_fn": f, "obj_fn": f}
            u, state = tx.update(g, state, p, **known)
            return (steepest.apply_updates(p, u), state), None

        return jax.lax.scan(step, (p, tx.init(p)), None, length=steps)[0]

    return run(p)[0]


@optimizers
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_on_a_quadratic(row: Row, dtype):
    p = params(dtype) if dtype == "float32" else few_params(dtype)
    q = _minimise(row.make(), quadratic, p, 150)
    assert typeof(q) == typeof(p)
    if row.confined:
        size, wanted = (np.linalg.norm(x["w"].astype(float)) for x in (q, p))
        np.testing.assert_allclose(size, wanted, rtol=1e-2)
        p, q = {**p, "w": None}, {**q, "w": None}
    assert quadratic(q) < 0.1 * quadratic(p)


@optimizers
def test_on_rosenbrock(row: Row):
    """Gradients reach into the hundreds there: plain optimizers need small steps."""
    q = _minimise(row.make(**row.steep), rosenbrock, BANANA, 800)
    assert rosenbrock(q) < 0.2 * rosenbrock(BANANA)


@optimizers
def test_without_a_gradient_it_stands_still(row: Row):
    tx, p = row.make(), params()
    zero = jax.tree.map(jnp.zeros_like, p)
    u, _ = tx.update(zero, tx.init(p), p)
    moved = any(np.any(x != 0) for x in jax.tree.leaves(u))
    assert moved != row.still
