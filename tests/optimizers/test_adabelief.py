"""AdaBelief alone."""

import jax.numpy as jnp
import numpy as np
import pytest

import steepest

from ..unusual import ODD
from ._refused import NOT_FLAGS, refuses
from ._steps import steps

G = jnp.array([3.0, -0.5])


def test_it_goes_further_than_adam_where_gradients_are_as_expected():
    """Figure 1 of the paper: a constant gradient justifies a long step."""
    gs = [G] * 5
    belief, _ = steps(steepest.adabelief(0.1), gs)
    adam, _ = steps(steepest.adam(0.1), gs)
    assert (jnp.abs(belief[-1]) > 1.2 * jnp.abs(adam[-1])).all()


def test_without_momentum_the_gradient_is_always_expected():
    """`mu` is `g`, so `nu` contains only the accumulated `eps_root`."""
    _, state = steps(steepest.scale_by_belief(b1=0.0, b2=0.5, eps_root=0.25), [G, -G])
    np.testing.assert_allclose(state.nu, 0.25 * 0.5 + 0.25)


def test_the_formula_by_hand():
    b1, b2, eps, eps_root = 0.8, 0.9, 1e-2, 1e-3
    mu, nu = 0.0, 0.0
    for g in (1.0, -3.0):
        mu = b1 * mu + (1 - b1) * g
        nu = b2 * nu + (1 - b2) * (g - mu) ** 2 + eps_root
    want = mu / (1 - b1**2) / (np.sqrt(nu / (1 - b2**2)) + eps)
    us, state = steps(steepest.scale_by_belief(b1, b2, eps, eps_root), [1.0, -3.0])
    np.testing.assert_allclose(us[1], want, rtol=1e-5)
    assert state.count == 2


def test_no_gradient_no_step_even_without_eps():
    us, _ = steps(steepest.scale_by_belief(eps=0.0, eps_root=0.0), [0 * G, 0 * G])
    assert not np.any(us[1])


@pytest.mark.parametrize("bad", ["b1", "b2"])
def test_impossible_numbers_are_refused(bad):
    with pytest.raises(ODD, match=rf"^adabelief: {bad} is 1.5, .* \[0, 1\]"):
        steepest.adabelief(0.1, **{bad: 1.5})


@pytest.mark.usefixtures("as_users_do")
def test_impossible_arguments_are_refused():
    refuses(steepest.scale_by_belief, nesterov=NOT_FLAGS)
