"""AdaMax alone."""

import jax.numpy as jnp
import numpy as np
import pytest

import steepest

from ..unusual import ODD
from ._steps import steps

G = jnp.array([3.0, -0.01])


def test_the_first_step_is_the_sign():
    us, _ = steps(steepest.scale_by_adamax(), [G])
    np.testing.assert_allclose(us[0], jnp.sign(G), rtol=1e-5)


def test_no_step_is_longer_than_the_learning_rate():
    """The bound in section 7.1 of the paper."""
    gs = [G, 100 * G, -G, 1e-4 * G, 5 * G]
    us, _ = steps(steepest.adamax(0.1), gs)
    assert all((jnp.abs(u) <= 0.1 * (1 + 1e-5)).all() for u in us)


def test_the_largest_is_forgotten_slowly():
    _, state = steps(steepest.scale_by_adamax(b2=0.5, eps=0.0), [G, 0 * G, 0 * G])
    np.testing.assert_allclose(state.nu, jnp.abs(G) / 4, rtol=1e-6)


def test_no_gradient_no_step_even_without_eps():
    us, _ = steps(steepest.scale_by_adamax(eps=0.0), [0 * G, 0 * G])
    assert not np.any(us[1])


def test_adamaxw_without_decay_is_adamax_and_with_it_decays():
    gs = [G, -G, 2 * G]
    ours, _ = steps(steepest.adamaxw(0.1, weight_decay=0.0), gs, G)
    want, _ = steps(steepest.adamax(0.1), gs, G)
    np.testing.assert_array_equal(ours[-1], want[-1])
    us, _ = steps(steepest.adamaxw(0.1, weight_decay=0.5), [0 * G], G)
    np.testing.assert_allclose(us[0], -0.1 * 0.5 * G, rtol=1e-6)


def test_the_largest_of_half_precision_is_forgotten_too():
    """In bfloat16, 0.999 times a number is that number."""
    g = jnp.ones(1, jnp.bfloat16)
    tx = steepest.scale_by_adamax()
    _, state = tx.update(g, tx.init(g))
    _, state = tx.update(0 * g, state)
    np.testing.assert_allclose(state.nu, 0.999, rtol=1e-6)


def test_impossible_numbers_are_refused():
    for maker in (steepest.adamax, steepest.adamaxw):
        with pytest.raises(ODD, match=f"^{maker.__name__}: b2 is 1.5"):
            maker(0.1, b2=1.5)
