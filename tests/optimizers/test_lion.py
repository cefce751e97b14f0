"""Lion alone."""

import jax.numpy as jnp
import numpy as np
import pytest

import steepest

from ._refused import INF, NAN, NOT_DTYPES, refuses

G = jnp.array([3.0, -0.01, 0.0])


def test_every_step_is_a_sign():
    tx = steepest.scale_by_lion()
    state = tx.init(G)
    for g in (G, 2 * G, 0.5 * G):
        u, state = tx.update(g, state)
        assert u.tolist() == [1.0, -1.0, 0.0]
    assert state.count == 3


def test_the_last_gradient_weighs_more_in_the_step_than_in_the_memory():
    """With b1 = 0 the step follows only the gradient, but the momentum does not."""
    tx = steepest.scale_by_lion(b1=0.0, b2=0.9)
    _, state = tx.update(G, tx.init(G))
    u, state = tx.update(-0.1 * G, state)
    assert u.tolist() == [-1.0, 1.0, 0.0]
    np.testing.assert_allclose(state.mu, (0.9 * 0.1 - 0.1 * 0.1) * G, rtol=1e-5)


@pytest.mark.parametrize("b1, b2", [(0.9, 0.99), (0.5, 0.1), (0.0, 0.9), (0.9, 0.0)])
def test_the_direction_is_that_of_the_old_memory(b1, b2):
    """However it is computed: `refined` shows it directly."""
    tx = steepest.scale_by_lion(b1, b2, mode="refined")
    mu, g = jnp.array([0.4, -0.3]), jnp.array([-0.2, 0.9])
    u, state = tx.update(g, tx.init(g)._replace(mu=mu))
    np.testing.assert_allclose(u, b1 * mu + (1 - b1) * g, rtol=1e-5)
    np.testing.assert_allclose(state.mu, b2 * mu + (1 - b2) * g, rtol=1e-5)


def test_a_steep_smooth_sign_is_hard():
    smooth = steepest.scale_by_lion(mode="smooth", smooth_beta=1e6)
    u, _ = smooth.update(G, smooth.init(G))
    np.testing.assert_allclose(u, jnp.sign(G), rtol=1e-6)


@pytest.mark.usefixtures("as_users_do")
def test_an_unknown_sign_is_refused():
    with pytest.raises(
        ValueError, match="'soft', expected one of: hard, smooth, refined"
    ):
        steepest.scale_by_lion(mode="soft")


@pytest.mark.usefixtures("as_users_do")
def test_impossible_arguments_are_refused():
    refuses(
        steepest.scale_by_lion,
        mu_dtype=NOT_DTYPES,
        smooth_beta=[0.0, INF, NAN],
        mode=["soft", None, []],
    )
    tx, g = steepest.scale_by_lion(mode="refined"), {"w": jnp.ones(2, jnp.complex64)}
    with pytest.raises(ValueError, match=r"scale_by_lion: leaf \['w'\] is complex64"):
        tx.update(g, tx.init(g))
