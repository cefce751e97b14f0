"""MADGRAD alone."""

import jax.numpy as jnp
import numpy as np
import pytest

import steepest
from steepest import contrib

from ..unusual import ODD

P = jnp.array([1.0, -2.0])
G = jnp.array([0.5, -4.0])


def test_the_first_step():
    """s / cbrt(nu) = c^(2/3) g^(1/3), minus a tenth."""
    tx = contrib.scale_by_madgrad(0.1, eps=0.0)
    u, state = tx.update(G, tx.init(P), P)
    np.testing.assert_allclose(u, -0.1 * 0.1 ** (2 / 3) * jnp.cbrt(G), rtol=1e-5)
    np.testing.assert_allclose(state.x0, P)


def test_without_momentum_it_steps_from_the_initial_params():
    tx = contrib.scale_by_madgrad(0.1, momentum=0.0)
    p, state = P, tx.init(P)
    for _ in range(3):
        u, state = tx.update(G, state, p)
        p = steepest.apply_updates(p, u)
    want = P - state.s / (jnp.cbrt(state.grad_sum_sq) + 1e-6)
    np.testing.assert_allclose(p, want, rtol=1e-6)


def test_without_eps_a_zero_gradient_is_finite():
    """Optax divides zero by zero."""
    tx = contrib.scale_by_madgrad(0.1, eps=0.0)
    u, state = tx.update(0 * G, tx.init(P), P)
    assert not u.any()
    u, _ = tx.update(G, state, P)
    assert np.isfinite(u).all() and (jnp.sign(u) == -jnp.sign(G)).all()


def test_sums_do_not_stop_in_half_precision():
    """A sum of ones in bfloat16 stops growing at 256."""
    p = jnp.ones(2, jnp.bfloat16)
    tx = contrib.madgrad(0.1)
    state = tx.init(p)
    assert state[1].s.dtype == jnp.float32 and state[1].x0.dtype == p.dtype
    u, _ = tx.update(p, state, p)
    assert u.dtype == p.dtype


@pytest.mark.usefixtures("as_users_do")
def test_impossible_numbers_are_refused():
    with pytest.raises(ODD, match=r"^madgrad: momentum is 1.5"):
        contrib.madgrad(0.1, momentum=1.5)
    with pytest.raises(ODD, match=r"^madgrad: learning_rate is inf"):
        contrib.madgrad(float("inf"))
