"""COCOB alone."""

import jax.numpy as jnp
import numpy as np
import pytest

import steepest
from steepest import contrib

P = jnp.array([1.0, -2.0])
G = jnp.array([0.5, 4.0])


def test_the_first_bet_is_one_part_in_alpha():
    """Whatever the size of the gradient: there is no learning rate."""
    tx = contrib.scale_by_cocob(alpha=100.0)
    for size in (1e-3, 1.0, 1e3):
        u, _ = tx.update(size * G, tx.init(P), P)
        np.testing.assert_allclose(u, -jnp.sign(G) / 100, rtol=1e-4)


def test_winning_increases_the_bet():
    tx = contrib.cocob()
    p, state, lengths = P, tx.init(P), []
    for _ in range(60):
        u, state = tx.update(jnp.sign(G), state, p)
        p = steepest.apply_updates(p, u)
        lengths.append(float(jnp.abs(u).max()))
    assert lengths[-1] > 1.1 * lengths[30] > 1.2 * lengths[1]
    assert (state[2].reward > 0).all()


def test_without_eps_a_zero_gradient_is_finite():
    """Optax divides zero by zero."""
    tx = contrib.scale_by_cocob(eps=0.0)
    u, state = tx.update(0 * G, tx.init(P), P)
    assert not u.any()
    u, _ = tx.update(G, state, P)
    np.testing.assert_allclose(u, -jnp.sign(G) / 100, rtol=1e-5)


def test_the_initial_params_are_a_copy():
    """So params and state can be donated together."""
    step = steepest.make_step(contrib.cocob())
    p = jnp.array(P)
    p, state = step(p, contrib.cocob().init(p), G)
    np.testing.assert_allclose(state[2].init_particles, P)


@pytest.mark.usefixtures("as_users_do")
def test_params_are_needed():
    tx = contrib.scale_by_cocob()
    with pytest.raises(ValueError, match="scale_by_cocob: `update` needs `params`"):
        tx.update(G, tx.init(P))


def test_a_complex_weight_bets_on_both_parts():
    """The imaginary part of the sum of gradients used to be dropped."""
    g = jnp.array([1.0 + 1.0j])
    ends = []
    for tx in (contrib.cocob(), contrib.split_real_and_imaginary(contrib.cocob())):
        p = jnp.array([1.0 + 2.0j])
        state = tx.init(p)
        for c in (1.0, 2.0, -0.5):
            u, state = tx.update(c * g, state, p)
            p = p + u
        ends.append(p)
    np.testing.assert_allclose(ends[0], ends[1], rtol=1e-6)
    assert float(ends[0].imag[0]) < 2.0
