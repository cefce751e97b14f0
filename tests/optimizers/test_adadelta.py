"""AdaDelta alone."""

import jax.numpy as jnp
import numpy as np
import pytest

import steepest

from ..unusual import ODD
from ._steps import steps

G = jnp.array([3.0, -0.5])


def test_the_first_step_has_the_size_of_the_root_of_eps():
    us, state = steps(steepest.scale_by_adadelta(rho=0.0, eps=1e-6), [G])
    np.testing.assert_allclose(us[0], 1e-3 * jnp.sign(G), rtol=1e-4)
    np.testing.assert_allclose(state.e_g, G**2)
    np.testing.assert_allclose(state.e_x, us[0] ** 2, rtol=1e-6)


def test_units_are_those_of_the_params():
    """The size of the gradient does not matter: section 3.2 of the paper."""
    small, _ = steps(steepest.scale_by_adadelta(eps=1e-12), [G, -G, 2 * G])
    large, _ = steps(
        steepest.scale_by_adadelta(eps=1e-12), [1e3 * G, -1e3 * G, 2e3 * G]
    )
    np.testing.assert_allclose(small[-1], large[-1], rtol=1e-5)


def test_without_a_learning_rate_the_direction_is_up():
    bare, _ = steps(steepest.adadelta(), [G], G)
    with_one, _ = steps(steepest.adadelta(1.0), [G], G)
    np.testing.assert_array_equal(bare[0], -with_one[0])


def test_the_decay_is_part_of_the_gradient():
    """If it only makes the gradient longer, it changes nothing."""
    decayed, _ = steps(steepest.adadelta(1.0, eps=1e-12, weight_decay=1.0), [G], G)
    plain, _ = steps(steepest.adadelta(1.0, eps=1e-12), [G], G)
    np.testing.assert_allclose(decayed[0], plain[0], rtol=1e-5)


def test_a_mask_selects_what_decays():
    p = {"w": jnp.ones(2), "b": jnp.ones(2)}
    g = {"w": jnp.zeros(2), "b": jnp.zeros(2)}
    mask = {"w": True, "b": False}
    tx = steepest.adadelta(1.0, weight_decay=0.1, weight_decay_mask=mask)
    u, _ = tx.update(g, tx.init(p), p)
    assert (u["w"] < 0).all() and not u["b"].any()


def test_without_eps_it_never_begins():
    """And 0 / 0 does not give NaN."""
    us, state = steps(steepest.scale_by_adadelta(eps=0.0), [0 * G, G])
    assert np.isfinite(state.e_x).all() and (jnp.abs(us[1]) < 1e-15).all()


def test_impossible_numbers_are_refused():
    with pytest.raises(ODD, match=r"^adadelta: rho is 1.5"):
        steepest.adadelta(0.1, rho=1.5)
    with pytest.raises(ODD, match=r"^adadelta: eps is -1.0"):
        steepest.adadelta(0.1, eps=-1.0)


def test_the_decay_needs_the_params():
    tx = steepest.adadelta(0.1)
    with pytest.raises(ValueError, match="needs `params`"):
        tx.update(G, tx.init(G))
