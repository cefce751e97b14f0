"""Functions shared by Adam and similar optimizers."""

import jax.numpy as jnp
import numpy as np
import pytest

from steepest.numerics import (
    abs_sq,
    bias_corrections,
    ema,
    nesterov_corrections,
    nesterov_mean,
    spread,
)

G = jnp.array([3.0, -0.5])


def test_the_numbers_of_a_step():
    count = jnp.asarray(1, jnp.int32)
    for per_step in (bias_corrections, nesterov_corrections):
        n, t = per_step.function(count, b1=0.9, b2=0.99)
        assert t == 2 and t.dtype == jnp.int32
        assert tuple(n) == per_step.gives
        want = {"c1": 1 - 0.9**2, "c2": 1 - 0.99**2, "next_c1": 1 - 0.9**3}
        for name, x in n.items():
            np.testing.assert_allclose(x, want[name], rtol=1e-5)


@pytest.mark.parametrize("nesterov", [False, True], ids=["plain", "nesterov"])
def test_of_a_steady_gradient_it_is_the_gradient(nesterov):
    """Plain: immediately. With Nesterov: in the limit."""
    mu, count = 0 * G, jnp.asarray(0, jnp.int32)
    for _ in range(40 if nesterov else 3):
        n, count = nesterov_corrections.function(count, b1=0.7, b2=0.9)
        mu = ema(mu, G, 0.7)
    c1, next_c1 = n["c1"], n["next_c1"]
    mean = nesterov_mean(mu, G, 0.7, c1, next_c1) if nesterov else mu / c1
    np.testing.assert_allclose(mean, G, rtol=1e-4)


def test_a_spread_is_a_mean_square_with_a_floor():
    nu = spread(abs_sq(G), 2 * G, 0.9, 1e-3)
    np.testing.assert_allclose(nu, ema(abs_sq(G), abs_sq(2 * G), 0.9) + 1e-3)
    assert spread(0 * G, 0 * G, 0.9, 1e-16).min() > 0


def test_looking_ahead_is_one_more_step_with_the_same_gradient():
    """Up to the bias of that gradient: Dozat's mixture."""
    c1, next_c1 = jnp.array(0.19), jnp.array(0.271)
    want = 0.9 * G / 0.271 + 0.1 * 2 * G / 0.19
    np.testing.assert_allclose(nesterov_mean(G, 2 * G, 0.9, c1, next_c1), want, 1e-5)
