"""Sign SGD, without and with momentum."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steepest

from ..unusual import ODD
from ._steps import steps

G = jnp.array([3.0, -1e-30, 0.0])


def test_only_the_sign_counts():
    us, state = steps(steepest.sign_sgd(0.1), [G])
    np.testing.assert_allclose(us[0], [-0.1, 0.1, 0.0], rtol=1e-6)
    assert jax.tree.leaves(state) == []


def test_the_sign_of_a_complex_number_is_its_direction():
    g = jnp.array([3 + 4j, -2j, 0], jnp.complex64)
    tx = steepest.scale_by_sign()
    u, _ = tx.update(g, tx.init(g))
    np.testing.assert_allclose(u, [0.6 + 0.8j, -1j, 0], rtol=1e-6)


def test_momentum_votes():
    """A large gradient outweighs a small one that comes later."""
    us, state = steps(steepest.signum(0.1, beta=0.5), [G, -0.1 * G])
    np.testing.assert_allclose(us[1], [-0.1, 0.1, 0.0], rtol=1e-6)
    np.testing.assert_allclose(state[0].ema, 0.2 * G, rtol=1e-5)
    assert state[0].count == 2


def test_without_momentum_it_is_sign_descent():
    ours, _ = steps(steepest.signum(0.1, beta=0.0), [G, -G])
    want, _ = steps(steepest.sign_sgd(0.1), [G, -G])
    np.testing.assert_array_equal(ours[1], want[1])


def test_the_mean_is_kept_in_the_dtype_that_is_asked_for():
    state = steepest.signum(0.1, accumulator_dtype="bfloat16").init(G)
    assert state[0].ema.dtype == jnp.bfloat16


def test_impossible_numbers_are_refused():
    with pytest.raises(ODD, match=r"^signum: beta is 2.0, .* number in \[0, 1\]"):
        steepest.signum(0.1, beta=2.0)
