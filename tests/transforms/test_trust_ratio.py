"""Steps scaled by the norm of the weights."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steepest
from steepest import UnusualValueWarning

G, P = jnp.array([3.0, 4.0]), jnp.array([0.0, -10.0])
ZERO = jnp.zeros(2)


def _step(tx, g, p):
    return tx.update(g, tx.init(p), p)[0]


def test_the_step_is_as_long_as_the_param():
    u = _step(steepest.scale_by_trust_ratio(trust_coefficient=0.1), G, P)
    np.testing.assert_allclose(u, [0.6, 0.8], rtol=1e-6)


@pytest.mark.parametrize("g, p", [(G, ZERO), (ZERO, P), (ZERO, ZERO)], ids="pgb")
def test_without_a_length_there_is_no_ratio(g, p):
    """A bias at zero moves by its gradient, whatever the coefficient."""
    tx = steepest.scale_by_trust_ratio(trust_coefficient=0.1, eps=0.5)
    np.testing.assert_array_equal(_step(tx, g, p), g)
    with jax.debug_nans(True):
        slopes = jax.jacobian(lambda g: _step(tx, g, p))(g)
    assert np.isfinite(slopes).all()


def test_a_least_length():
    tx = steepest.scale_by_trust_ratio(min_norm=20.0)
    np.testing.assert_allclose(_step(tx, G, P), G, rtol=1e-6)
    tx = steepest.scale_by_trust_ratio(min_norm=2.5)
    np.testing.assert_allclose(_step(tx, G, ZERO), G / 2, rtol=1e-6)


def test_leaves_are_apart():
    tx = steepest.scale_by_trust_ratio()
    u = _step(tx, {"a": G, "b": G, "n": None}, {"a": P, "b": 2 * P, "n": None})
    np.testing.assert_allclose(2 * u["a"], u["b"], rtol=1e-6)
    assert u["n"] is None


def test_half_precision_squares_do_not_overflow():
    g, p = jnp.full(4, 300.0, jnp.float16), jnp.full(4, 3.0, jnp.float16)
    u = _step(steepest.scale_by_trust_ratio(), g, p)
    assert u.dtype == jnp.float16
    np.testing.assert_array_equal(u, p)


@pytest.mark.usefixtures("as_users_do")
def test_error_messages():
    with pytest.warns(
        UnusualValueWarning, match="scale_by_trust_ratio: min_norm is -1"
    ):
        steepest.scale_by_trust_ratio(-1)
    with pytest.raises(ValueError, match="scale_by_trust_ratio: `update` needs"):
        steepest.scale_by_trust_ratio().update(G, steepest.EmptyState())
