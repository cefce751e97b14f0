"""RMSProp alone."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steepest

from ..unusual import ODD
from ._refused import NOT_AMOUNTS, NOT_FLAGS, refuses
from ._steps import steps

G = jnp.array([3.0, -0.5])
both = pytest.mark.parametrize(
    "maker", [steepest.scale_by_rms, steepest.scale_by_stddev], ids=["rms", "stddev"]
)


def test_in_the_end_a_steady_gradient_is_a_sign():
    us, _ = steps(steepest.scale_by_rms(decay=0.5), [G] * 30)
    np.testing.assert_allclose(us[-1], jnp.sign(G), rtol=1e-5)


def test_without_bias_it_is_a_sign_from_the_first_step():
    us, state = steps(steepest.scale_by_rms(bias_correction=True), [G, G])
    np.testing.assert_allclose(us[0], jnp.sign(G), rtol=1e-5)
    np.testing.assert_allclose(us[1], jnp.sign(G), rtol=1e-5)
    assert state.count == 2


def test_eps_stands_under_the_root_or_beside_it():
    under, _ = steps(steepest.scale_by_rms(0.0, eps=16.0), [3.0])
    beside, _ = steps(steepest.scale_by_rms(0.0, eps=16.0, eps_in_sqrt=False), [3.0])
    np.testing.assert_allclose((under[0], beside[0]), (3 / 5, 3 / 19), rtol=1e-6)


def test_centered_divides_by_what_is_around_the_mean():
    """Gradients 10 + 1 and 10 - 1 have deviation 1 and mean square 101."""
    gs = [11.0, 9.0] * 200
    tx = steepest.scale_by_stddev(0.99, bias_correction=True)
    us, state = steps(tx, gs[:200])
    np.testing.assert_allclose(us[-1], 9.0, rtol=0.02)
    assert type(state).__name__ == "ScaleByRStdDevWithCountState"


@both
def test_the_mean_square_begins_where_it_is_told(maker):
    state = maker(initial_scale=0.5).init(G)
    np.testing.assert_array_equal(state.nu, 0.5)
    assert not state.nu.weak_type


@both
@pytest.mark.parametrize("eps_in_sqrt", [True, False])
def test_no_gradient_no_step_even_without_eps(maker, eps_in_sqrt):
    us, _ = steps(maker(eps=0.0, eps_in_sqrt=eps_in_sqrt), [0 * G, 0 * G])
    assert not np.any(us[1])


def test_a_deviation_of_nothing_is_not_imaginary():
    """Rounding makes `nu - mu^2` negative for some of these."""
    g = jax.random.normal(jax.random.key(0), (1000,)) * 1e3
    for options in ({}, {"eps_in_sqrt": False}, {"bias_correction": True}):
        us, _ = steps(steepest.scale_by_stddev(0.1, **options), [g] * 10)
        assert np.isfinite(us[-1]).all()


def test_momentum_is_of_the_finished_steps():
    tx = steepest.rmsprop(0.1, momentum=0.5, bias_correction=True)
    us, state = steps(tx, [G, G])
    np.testing.assert_allclose(us[1], -0.1 * 1.5 * jnp.sign(G), rtol=1e-5)
    np.testing.assert_array_equal(state[2].trace, us[1])


def test_momentum_zero_is_kept_and_none_is_not():
    assert isinstance(
        steepest.rmsprop(0.1, momentum=0.0).init(G)[2], steepest.TraceState
    )
    assert steepest.rmsprop(0.1).init(G)[2] == steepest.EmptyState()


def test_impossible_numbers_are_refused():
    with pytest.raises(ODD, match=r"^rmsprop: decay is 1.5"):
        steepest.rmsprop(0.1, decay=1.5)
    with pytest.raises(ODD, match=r"^rmsprop: initial_scale is -1.0"):
        steepest.rmsprop(0.1, initial_scale=-1.0, centered=True)


@pytest.mark.usefixtures("as_users_do")
def test_impossible_arguments_are_refused():
    for maker in (steepest.scale_by_rms, steepest.scale_by_stddev):
        refuses(
            maker,
            initial_scale=NOT_AMOUNTS,
            eps_in_sqrt=NOT_FLAGS,
            bias_correction=NOT_FLAGS,
        )
    refuses(steepest.rmsprop, 0.1, centered=NOT_FLAGS, nesterov=NOT_FLAGS)
