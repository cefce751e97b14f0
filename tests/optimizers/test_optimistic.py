"""Optimistic gradients alone."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steepest

from ._refused import INF, NAN, NOT_FINITE, refuses
from ._steps import steps

G = jnp.array([3.0, -0.5])


def test_the_gradient_and_its_change():
    us, state = steps(steepest.scale_by_optimistic_gradient(0.7, 0.3), [G, 2 * G])
    np.testing.assert_allclose(us[0], 0.7 * G, rtol=1e-6)
    np.testing.assert_allclose(us[1], 1.4 * G + 0.3 * G, rtol=1e-6)
    np.testing.assert_array_equal(state.previous_gradient, 2 * G)
    assert state.is_initial_step.dtype == bool and not state.is_initial_step


def test_without_optimism_it_is_plain():
    ours, _ = steps(steepest.optimistic_gradient_descent(0.1, beta=0.0), [G, -G])
    want, _ = steps(steepest.sgd(0.1), [G, -G])
    np.testing.assert_array_equal(ours[1], want[1])


def _distance(tx, turns):
    """One player minimizes `x y`, one maximizes it, from (1, 2): distance to (0, 0)."""

    def step(carry, _):
        (x, y), state = carry
        u, state = tx.update((y, -x), state, (x, y))
        return (steepest.apply_updates((x, y), u), state), None

    start = jnp.asarray(1.0), jnp.asarray(2.0)
    (end, _), _ = jax.lax.scan(step, (start, tx.init(start)), None, length=turns)
    return jnp.hypot(*end)


def test_two_players_converge():
    """Plain gradient descent spirals outwards."""
    assert _distance(steepest.sgd(0.1), 300) > 3
    assert _distance(steepest.optimistic_gradient_descent(0.1), 600) < 0.2
    assert _distance(steepest.optimistic_adam(1e-2, 1.0), 1000) < 0.01


def test_optimistic_adam_is_its_second_version():
    gs = [G, -0.3 * G, 2 * G]
    ours, _ = steps(steepest.optimistic_adam(0.1, 0.05), gs)
    want, _ = steps(steepest.optimistic_adam_v2(0.1, alpha=1.0, beta=0.5), gs)
    np.testing.assert_allclose(ours[-1], want[-1], rtol=1e-5)


def test_optimism_is_the_learning_rate_unless_told():
    gs = [G, -0.3 * G]
    ours, _ = steps(steepest.optimistic_adam(0.1), gs)
    want, _ = steps(steepest.optimistic_adam(0.1, 0.1), gs)
    np.testing.assert_array_equal(ours[-1], want[-1])


def test_the_second_version_takes_schedules():
    tx = steepest.optimistic_adam_v2(lambda t: 0.1 / (1 + t.astype(float)), b1=0.0)
    us, _ = steps(tx, [G])
    np.testing.assert_allclose(us[0], -0.1 * jnp.sign(G), rtol=1e-5)


@pytest.mark.usefixtures("as_users_do")
def test_what_must_be_a_number():
    falling = lambda t: 0.1
    with pytest.raises(ValueError, match=r"optimistic_adam: .* `optimistic_adam_v2`"):
        steepest.optimistic_adam(falling)
    with pytest.raises(TypeError, match="alpha is a function, expected a number"):
        steepest.optimistic_gradient_descent(0.1, alpha=falling)


@pytest.mark.usefixtures("as_users_do")
def test_impossible_arguments_are_refused():
    refuses(steepest.optimistic_adam, learning_rate=NOT_FINITE)
    bad = [NAN, INF, "1", None]
    refuses(steepest.scale_by_optimistic_gradient, alpha=bad, beta=bad)
