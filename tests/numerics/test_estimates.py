"""What Adam and its kin share."""

from types import SimpleNamespace

import jax.numpy as jnp
import numpy as np
import pytest

from steepest.core import Step
from steepest.numerics import (
    abs_sq,
    beginning_at,
    counted,
    ema,
    second_moment,
    spread,
    unbiased,
)

G = jnp.array([3.0, -0.5])


def test_the_numbers_of_a_step():
    n, t = counted(0.9, 0.99)(Step(None, {}), jnp.asarray(1, jnp.int32))
    assert t == 2 and t.dtype == jnp.int32
    found = n["c1"], n["c2"], n["next_c1"]
    want = 1 - 0.9**2, 1 - 0.99**2, 1 - 0.9**3
    np.testing.assert_allclose(found, want, rtol=1e-5)


@pytest.mark.parametrize("nesterov", [False, True], ids=["plain", "nesterov"])
def test_of_a_steady_gradient_it_is_the_gradient(nesterov):
    """Plain: at once. Ahead: in the end."""
    mu, count = 0 * G, jnp.asarray(0, jnp.int32)
    for _ in range(40 if nesterov else 3):
        n, count = counted(0.7, 0.9)(Step(None, {}), count)
        mu = ema(mu, G, 0.7)
    found = unbiased(SimpleNamespace(**n), mu, G, 0.7, nesterov)
    np.testing.assert_allclose(found, G, rtol=1e-4)


def test_a_spread_is_a_mean_square_with_a_floor():
    found = spread(abs_sq(G), 2 * G, 0.9, 1e-3)
    np.testing.assert_allclose(found, ema(abs_sq(G), abs_sq(2 * G), 0.9) + 1e-3)
    assert spread(0 * G, 0 * G, 0.9, 1e-16).min() > 0


def test_looking_ahead_is_one_more_step_with_the_same_gradient():
    """Up to the bias of that gradient: Dozat's mixture."""
    n = SimpleNamespace(c1=0.19, next_c1=0.271)
    want = 0.9 * G / 0.271 + 0.1 * 2 * G / 0.19
    np.testing.assert_allclose(unbiased(n, G, 2 * G, 0.9, True), want, rtol=1e-5)


def test_a_memory_that_is_not_empty_at_first():
    begin = beginning_at(0.5, second_moment())
    found = begin(jnp.ones(2, jnp.bfloat16))
    assert found.dtype == jnp.float32 and not found.weak_type
    np.testing.assert_array_equal(found, 0.5)
