"""Yogi alone."""

import jax.numpy as jnp
import numpy as np
import pytest

import steepest

from ..unusual import ODD
from ._refused import NOT_AMOUNTS, refuses
from ._steps import steps

G = jnp.array([3.0, -0.5])


def test_both_begin_where_they_are_told():
    state = steepest.scale_by_yogi(initial_accumulator_value=0.5).init(G)
    for x in (state.mu, state.nu):
        np.testing.assert_array_equal(x, 0.5)
        assert not x.weak_type


def test_the_square_moves_by_the_size_of_the_gradient_alone():
    """Equation 1 of the paper: up or down by (1 - b2) g^2, never by more."""
    tx = steepest.scale_by_yogi(b2=0.9, initial_accumulator_value=1.0)
    _, state = steps(tx, [[3.0, 0.5]])
    np.testing.assert_allclose(state.nu, [1 + 0.9, 1 - 0.025], rtol=1e-6)


def test_a_large_square_is_forgotten_slowly():
    """Adam forgets it quickly, and its steps get long."""
    gs = [100 * G] + [G] * 20
    _, ours = steps(steepest.scale_by_yogi(b2=0.5), gs)
    _, adam = steps(steepest.scale_by_adam(b2=0.5), gs)
    assert (ours.nu > 100 * adam.nu).all()


def test_the_square_never_becomes_negative():
    """It decreases only where it is above g^2, and by less than that."""
    gs = [G, 0.9 * G, 0.1 * G, 3 * G, 0 * G, 1e-3 * G]
    tx = steepest.scale_by_yogi(b2=0.0, initial_accumulator_value=0.0)
    for k in range(len(gs)):
        assert (steps(tx, gs[: k + 1])[1].nu >= 0).all()


def test_no_gradient_no_step_even_without_eps():
    us, _ = steps(
        steepest.scale_by_yogi(eps=0.0, initial_accumulator_value=0.0), [0 * G] * 2
    )
    assert not np.any(us[1])


def test_impossible_numbers_are_refused():
    with pytest.raises(ODD, match=r"^yogi: eps is -0.001"):
        steepest.yogi(0.1, eps=-0.001)
    with pytest.raises(ODD, match=r"initial_accumulator_value is -1.0"):
        steepest.scale_by_yogi(initial_accumulator_value=-1.0)


@pytest.mark.usefixtures("as_users_do")
def test_impossible_arguments_are_refused():
    refuses(steepest.scale_by_yogi, initial_accumulator_value=NOT_AMOUNTS)
