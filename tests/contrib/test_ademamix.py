"""AdEMAMix and its simplified form."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steepest
from steepest import contrib

from ..unusual import ODD

G = jnp.array([1.0, -2.0, 0.0])


def _run(tx, gs):
    state, us = tx.init(gs[0]), []
    for g in gs:
        u, state = tx.update(g, state, gs[0])
        us.append(u)
    return us, state


def test_without_the_slow_mean_it_is_adam():
    gs = [G, -0.5 * G, 3 * G]
    mixed, _ = _run(contrib.scale_by_ademamix(alpha=0.0), gs)
    adam, _ = _run(steepest.scale_by_adam(), gs)
    np.testing.assert_allclose(mixed, adam, rtol=1e-6)


def test_schedules_count_from_zero():
    seen = []

    def alpha(count):
        seen.append(int(count))
        return 0.0

    _run(contrib.scale_by_ademamix(alpha=alpha), [G, G, G])
    assert seen == [0, 1, 2]


def test_the_slow_mean_moves_in_half_precision():
    """With b3 = 0.9999 a bfloat16 average does not change, so it is kept in float32."""
    g = jnp.ones(2, jnp.bfloat16)
    tx = contrib.ademamix(0.1)
    state = tx.init(g)
    assert state[0].m1.dtype == jnp.bfloat16
    assert state[0].m2.dtype == state[0].nu.dtype == jnp.float32
    for _ in range(3):
        _, state = tx.update(g, state, g)
    np.testing.assert_allclose(state[0].m2, 3e-4, rtol=1e-3)
    kept = contrib.scale_by_ademamix(mu_dtype=jnp.float16).init(G)
    assert kept.m1.dtype == kept.m2.dtype == jnp.float16


def test_the_sum_of_a_constant_gradient():
    """`m` tends to g / (1 - b1), and the update to (alpha + 1 / (1 - b1)) sign(g)."""
    tx = contrib.scale_by_simplified_ademamix(b1=0.5, b2=0.9, alpha=3.0)
    us, state = _run(tx, [G] * 25)
    np.testing.assert_allclose(state.m, 2 * G, rtol=1e-5)
    np.testing.assert_allclose(us[-1], 5 * jnp.sign(G), rtol=1e-5)
    assert state.t == 25


def test_without_memory_it_is_adam_without_momentum():
    gs = [G, -0.5 * G, 3 * G]
    mixed, _ = _run(contrib.scale_by_simplified_ademamix(0.0, 0.99), gs)
    adam, _ = _run(steepest.scale_by_adam(0.0, 0.99), gs)
    np.testing.assert_allclose(mixed, adam, rtol=1e-6)


def test_complex_gradients_are_divided_by_their_length():
    g = jnp.array([3 + 4j])
    for make in (contrib.scale_by_ademamix, contrib.scale_by_simplified_ademamix):
        tx = make(alpha=0.0)
        u, _ = jax.jit(tx.update)(g, tx.init(g))
        np.testing.assert_allclose(u, g / 5, rtol=1e-5)


@pytest.mark.usefixtures("as_users_do")
def test_impossible_numbers_are_refused():
    with pytest.raises(ODD, match=r"^ademamix: b3 is 1.5"):
        contrib.ademamix(0.1, b3=1.5)
    with pytest.raises(ODD, match=r"simplified_ademamix: b2 is -0.1"):
        contrib.simplified_ademamix(0.1, b2=-0.1)
