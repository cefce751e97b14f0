"""ACProp alone."""

import jax.numpy as jnp
import numpy as np

from steepest import contrib

G = jnp.array([1.0, -2.0])


def test_a_gradient_is_divided_by_those_before_it():
    """However large the second gradient is, it does not shrink its own step."""
    tx = contrib.scale_by_acprop(b1=0.9, b2=0.9, eps=0.0, eps_root=0.0)
    u, state = tx.update(G, tx.init(G))
    np.testing.assert_allclose(u, G)
    for large in (1.0, 1e3):
        u, _ = tx.update(large * G, state)
        np.testing.assert_allclose(u, large * jnp.sign(G), rtol=1e-5)


def test_a_gradient_equal_to_the_mean_adds_nothing():
    """`nu` averages the distance to the previous mean."""
    tx = contrib.scale_by_acprop(b1=0.0, b2=0.5, eps_root=0.0)
    _, state = tx.update(G, tx.init(G))
    _, state = tx.update(G, state)
    np.testing.assert_allclose(state.nu, 0.5 * 0.5 * G**2)
    assert state.count == 2


def test_a_zero_gradient_first_and_then_training():
    tx = contrib.acprop(0.1)
    _, state = tx.update(0 * G, tx.init(G), G)
    u, state = tx.update(1e-9 * G, state, G)
    assert np.isfinite(u).all() and (jnp.sign(u) == -jnp.sign(G)).all()
