"""What matrix optimizers promise: few steps on a quadratic, whitening, permutations."""

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steepest

Make = Callable[[Any], Any]  # learning rate -> optimizer

D = 16
PLAIN = {"weight_decay": 0.0}
OFTEN = {**PLAIN, "frequency": 1}
# Each with the steps in which it reaches a millionth of the loss; Adam needs ten times
# as many, or more.
FAST: dict[str, tuple[Make, int]] = {
    "soap": (partial(steepest.soap, **PLAIN), 350),
    "soap every step": (partial(steepest.soap, b1=0.9, b2=0.9, **OFTEN), 200),
    "soap fresh": (partial(steepest.soap, fresh=True, **OFTEN), 300),
    "soap rotation": (partial(steepest.soap, basis="rotation", **OFTEN), 350),
    "soap kl": (partial(steepest.soap, factors="kl", fresh=True, **OFTEN), 400),
    "shampoo": (partial(steepest.shampoo, frequency=10, **PLAIN), 350),
    "shampoo kl": (partial(steepest.shampoo, factors="kl", **OFTEN), 350),
    "psgd": (partial(steepest.psgd, **PLAIN), 400),
    "kron": (partial(steepest.kron, **PLAIN), 450),
}
RATES = np.logspace(-2, 0.25, 12)


def _definite(seed: int, condition: float) -> jax.Array:
    q = np.linalg.qr(np.random.RandomState(seed).randn(D, D))[0]
    return jnp.float32((q * np.logspace(0, -np.log10(condition), D)) @ q.T)


def _loss(w: jax.Array) -> jax.Array:
    """A quadratic with the condition 1e8: 1e4 for rows times 1e4 for columns."""
    return jnp.sum(w * (_definite(0, 1e4) @ w @ _definite(1, 1e4)))


def _best(make: Make, steps: int) -> float:
    """The loss at the end over that at the start, at the best of several rates."""
    start = jnp.float32(np.random.RandomState(2).randn(D, D))

    @jax.jit
    @jax.vmap
    def final(rate):
        tx = make(lambda t: rate * (1 - t / steps))

        def step(kept, _):
            w, state = kept
            u, state = tx.update(jax.grad(_loss)(w), state, w)
            return (w + u, state), None

        (w, _), _ = jax.lax.scan(step, (start, tx.init(start)), None, length=steps)
        return _loss(w)

    return float(np.nanmin(final(jnp.float32(RATES))) / _loss(start))


@cache
def _adam(steps: int) -> float:
    return _best(steepest.adam, steps)


@pytest.mark.parametrize("name", FAST)
def test_a_tenth_of_adams_steps(name):
    make, steps = FAST[name]
    assert _best(make, steps) < 1e-6
    assert _adam(10 * steps) > 1e-6


WHITE: dict[str, Any] = {
    "soap": lambda: steepest.scale_by_soap(b1=0.0, b2=0.99, frequency=2),
}


@pytest.mark.parametrize("name", WHITE)
def test_updates_are_white(name):
    """Gradients with correlated rows and columns give updates without correlations."""
    tx, rng = WHITE[name](), np.random.RandomState(0)
    rows, columns = (np.linalg.cholesky(_definite(k, 30.0)) for k in (3, 4))
    draws = jnp.float32(rows @ rng.randn(600, D, D) @ columns.T)

    def step(state, g):
        u, state = tx.update(g, state, g)
        return state, u

    _, us = jax.jit(lambda: jax.lax.scan(step, tx.init(draws[0]), draws))()
    us = np.float64(us[300:])
    for x in (us, np.swapaxes(us, 1, 2)):
        c = np.mean(x @ np.swapaxes(x, 1, 2), axis=0)
        c = c / np.trace(c) * D
        # The mean of 300 * 16 samples has an error of its own.
        assert np.linalg.norm(c - np.eye(D), 2) < 0.1 + 2 * (D / (300 * D)) ** 0.5
