"""Nesterov's accelerated gradient, step by step."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steepest
from steepest.decoupled import nag_init, nag_step, of, sgd_init, sgd_step

three = [jnp.array([3.0])]


def _run(theta, updates, **hyper):
    state, path = nag_init(theta), []
    for g in updates:
        state, theta = nag_step(state, theta, g, **hyper)
        path.append(theta)
    return state, path


def _random(steps=10):
    theta = {"w": jnp.array([[1.0, -2.0]]), "b": [jnp.array(0.5)]}
    keys = jax.random.split(jax.random.key(0), steps)
    return theta, [
        jax.tree.map(lambda x, key=key: jax.random.normal(key, x.shape), theta)
        for key in keys
    ]


def _assert_close(a, b):
    jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, 1e-5, 1e-6), a, b)


def test_the_state_is_a_second_point_and_the_time_step():
    phi, time_step = nag_init([jnp.ones(2), jnp.ones((1, 3), jnp.bfloat16)])
    assert [(x.shape, x.dtype.name) for x in phi] == [
        ((2,), "float32"),
        ((1, 3), "bfloat16"),
    ]
    assert not any(x.any() for x in phi)
    assert time_step == 0


def test_the_numbers_of_ngc_learn():
    (phi, time_step), path = _run(three, [three] * 2)
    np.testing.assert_allclose([x[0][0] for x in path], [2.97, 2.913], rtol=1e-6)
    np.testing.assert_allclose(phi[0], [2.94], rtol=1e-6)
    assert time_step == 2


def test_the_formula_line_by_line():
    theta, updates = _random()
    eta, mu = 0.1, 0.7
    _, path = _run(theta, updates, eta=eta, mu=mu)
    x, phi = np.array([[1.0, -2.0]]), np.zeros((1, 2))
    for t, (g, result) in enumerate(zip(updates, path, strict=True)):
        new_phi = x - eta * np.array(g["w"])
        x = new_phi + (mu if t else 0) * (new_phi - phi)
        phi = new_phi
        np.testing.assert_allclose(result["w"], x, rtol=1e-5, atol=1e-6)


def test_the_same_as_the_transformation():
    theta, updates = _random()
    _, path = _run(theta, updates, eta=0.1, mu=0.7)
    tx = steepest.nag(0.1, momentum=0.7)
    state = tx.init(theta)
    for g, result in zip(updates, path, strict=True):
        u, state = tx.update(g, state, theta)
        theta = steepest.apply_updates(theta, u)
        _assert_close(result, theta)


def test_the_same_as_made_of_the_transformation():
    theta, updates = _random()
    (phi, time_step), path = _run(theta, updates, eta=0.1, mu=0.7)
    init, step = of(steepest.nag(0.1, momentum=0.7))
    state = init(theta)
    for g in updates:
        state, theta = step(state, theta, g)
    _assert_close((phi, path[-1]), (state.phi, theta))
    assert (float(time_step), int(state.count)) == (10, 10)


@pytest.mark.parametrize("mu", [0.0, 0.5, 0.99])
def test_the_first_step_is_plain_descent(mu):
    """There is no previous point yet."""
    _, path = _run(three, [three], eta=0.1, mu=mu)
    _, theta = sgd_step(sgd_init(three), three, three, eta=0.1)
    _assert_close(path[0], theta)


def test_without_momentum_it_is_plain_descent():
    theta, updates = _random(4)
    _, path = _run(theta, updates, eta=0.1, mu=0.0)
    state = sgd_init(theta)
    for g, result in zip(updates, path, strict=True):
        state, theta = sgd_step(state, theta, g, eta=0.1)
        _assert_close(result, theta)


def test_momentum_overtakes_plain_descent_in_a_valley():
    """That is its purpose: 60 steps down `x^2 / 2 + y^2 / 100`."""

    def height(x):
        return 0.5 * x[0] ** 2 + 0.01 * x[1] ** 2

    def last(mu):
        theta = jnp.array([1.0, 1.0])
        state = nag_init(theta)
        for _ in range(60):
            state, theta = nag_step(state, theta, jax.grad(height)(theta), 0.5, mu)
        return height(theta)

    assert last(0.9) < 0.01 * last(0.0)
