"""Adam, step by step."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from steepest.decoupled import adam_init, adam_step

HYPER = [
    dict(),
    dict(eta=0.1),
    dict(eta=0.05, beta1=0.5, beta2=0.9, eps=1e-3),
    dict(eta=0.1, beta1=0.0, beta2=0.0),
]
hypers = pytest.mark.parametrize("hyper", HYPER)


def _updates():
    return np.array(jax.random.normal(jax.random.key(0), (10, 2, 3)))


def _run(theta, updates, **hyper):
    state = adam_init([theta])
    for g in updates:
        state, (theta,) = adam_step(state, [theta], [jnp.asarray(g)], **hyper)
    return state, theta


def _reference(theta, updates, eta=0.001, beta1=0.9, beta2=0.999, eps=1e-8):
    """Algorithm 1 of the paper, in float64."""
    g1, g2 = np.zeros_like(theta), np.zeros_like(theta)
    for t, g in enumerate(updates, 1):
        g1 = beta1 * g1 + (1 - beta1) * g
        g2 = beta2 * g2 + (1 - beta2) * g**2
        m, v = g1 / (1 - beta1**t), g2 / (1 - beta2**t)
        theta = theta - eta * m / (np.sqrt(v) + eps)
    return g1, g2, theta


def test_the_state_is_two_moments_and_the_time_step():
    theta = [jnp.ones(2), jnp.ones((1, 3), jnp.bfloat16)]
    g1, g2, time_step = adam_init(theta)
    assert [x.dtype for x in g1] == [jnp.float32, jnp.bfloat16]
    assert [x.dtype for x in g2] == [jnp.float32, jnp.float32]
    assert not any(x.any() for x in (*g1, *g2))
    assert time_step == 0


@hypers
def test_the_same_as_the_paper(hyper):
    theta = np.linspace(-1, 1, 6).reshape(2, 3)
    (g1, g2, time_step), result = _run(jnp.asarray(theta), _updates(), **hyper)
    wanted = _reference(theta, _updates(), **hyper)
    assert time_step == 10
    for x, y in zip(([*g1, *g2, result]), wanted, strict=True):
        np.testing.assert_allclose(x, y, rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("hyper", [HYPER[0], HYPER[2]])
def test_the_same_as_the_paper_in_64_bits(hyper):
    with jax.enable_x64(True):
        theta = np.linspace(-1, 1, 6).reshape(2, 3)
        updates = _updates().astype(np.float64)
        _, result = _run(jnp.asarray(theta), updates, **hyper)
        wanted = _reference(theta, updates, **hyper)[-1]
        np.testing.assert_allclose(result, wanted, rtol=1e-10)


def test_the_same_as_optax():
    theta = jnp.linspace(-1.0, 1.0, 6).reshape(2, 3)
    _, result = _run(theta, _updates(), eta=0.1, beta1=0.8, beta2=0.95, eps=1e-6)
    with jax.numpy_dtype_promotion("standard"):
        tx = optax.adam(0.1, 0.8, 0.95, 1e-6)
        state = tx.init(theta)
        for g in _updates():
            u, state = tx.update(jnp.asarray(g), state)
            theta = optax.apply_updates(theta, u)
    np.testing.assert_allclose(result, theta, rtol=1e-5, atol=1e-6)


def test_the_first_step_has_length_eta():
    _, theta = _run(jnp.array([3.0, -3.0]), [np.array([50.0, -0.02])], eta=0.5)
    np.testing.assert_allclose(theta, [2.5, -2.5], rtol=1e-5)


def test_no_update_is_no_step():
    _, theta = _run(jnp.array([3.0]), [np.zeros(1)] * 3, eta=0.5)
    assert theta == 3
