"""Adan alone."""

import jax.numpy as jnp
import numpy as np
import pytest

import steepest

from ..unusual import ODD
from ._steps import steps

G = jnp.array([3.0, -0.5])


def test_the_first_step_is_the_sign():
    """There is no difference of gradients yet."""
    us, state = steps(steepest.scale_by_adan(), [G])
    np.testing.assert_allclose(us[0], jnp.sign(G), rtol=1e-5)
    assert not np.any(state.v)
    np.testing.assert_array_equal(state.g, G)
    assert state.t == 1


def test_a_first_gradient_of_zero_is_a_gradient():
    """The next difference is relative to zero."""
    _, state = steps(steepest.scale_by_adan(b2=0.9), [0 * G, G])
    np.testing.assert_allclose(state.v, 0.1 * G, rtol=1e-5)


def test_the_formula_by_hand():
    b1, b2, b3, eps, eps_root = 0.9, 0.8, 0.7, 1e-2, 1e-3
    m = v = n = last = 0.0
    for t, g in enumerate((1.0, -3.0)):
        d = g - last if t else 0.0
        m, v = b1 * m + (1 - b1) * g, b2 * v + (1 - b2) * d
        n = b3 * n + (1 - b3) * (g + (1 - b2) * d) ** 2
        last = g
    top = m / (1 - b1**2) + (1 - b2) * v / (1 - b2**2)
    want = top / (np.sqrt(n / (1 - b3**2) + eps_root) + eps)
    us, _ = steps(steepest.scale_by_adan(b1, b2, b3, eps, eps_root), [1.0, -3.0])
    np.testing.assert_allclose(us[1], want, rtol=1e-5)


def test_no_gradient_no_step_even_without_eps():
    us, _ = steps(steepest.scale_by_adan(eps=0.0), [0 * G, 0 * G])
    assert not np.any(us[1])


def test_the_decay_obeys_its_mask():
    p = {"w": jnp.ones(2), "b": jnp.ones(2)}
    g = {"w": jnp.zeros(2), "b": jnp.zeros(2)}
    tx = steepest.adan(0.1, weight_decay=0.5, mask={"w": True, "b": False})
    u, _ = tx.update(g, tx.init(p), p)
    np.testing.assert_allclose(u["w"], -0.05, rtol=1e-6)
    assert not u["b"].any()


def test_impossible_numbers_are_refused():
    with pytest.raises(ODD, match=r"^adan: b3 is -0.1"):
        steepest.adan(0.1, b3=-0.1)
