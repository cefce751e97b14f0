"""A tree whose gradient is scaled."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from steepest import scale_gradient
from tests.oracles._calls import called

X = {"w": jnp.array([1.0, -2.0]), "n": None, "i": jnp.array([3])}


def loss(f, w, scale):
    return jnp.sum(f({"w": w, "n": None}, scale)["w"] ** 3)


@pytest.mark.parametrize("scale", [2.0, 0.0, 1.0, -1.0, 3])
def test_values_and_gradients_as_in_optax(scale):
    ours = jax.value_and_grad(lambda w: loss(scale_gradient, w, scale))(X["w"])
    theirs = called(
        jax.value_and_grad(lambda w: loss(optax.scale_gradient, w, scale)), X["w"]
    )
    for x, y in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-6)


def test_the_tree_is_itself():
    found = scale_gradient(X, 2.0)
    assert found["i"] is X["i"] and found["n"] is None
    odd = jnp.array([jnp.inf, jnp.nan])
    np.testing.assert_array_equal(scale_gradient(odd, 2.0), odd)


def test_the_scale_may_be_traced_and_has_no_slope():
    """Optax branches on its value."""
    g = jax.jit(jax.grad(lambda w, s: loss(scale_gradient, w, s)))(X["w"], 2.0)
    np.testing.assert_allclose(g, 2 * 3 * X["w"] ** 2)
    assert jax.grad(lambda s: loss(scale_gradient, X["w"], s))(2.0) == 0


def test_directional_derivatives_and_second_ones():
    """Optax does not support forward mode."""
    ones = jnp.ones(2)
    f = lambda x: scale_gradient(x, 3.0)
    np.testing.assert_array_equal(jax.jvp(f, (ones,), (ones,))[1], 3 * ones)
    second = jax.grad(jax.grad(lambda x: scale_gradient(x**3, 2.0)))(2.0)
    assert second == 24


def test_zero_stops_also_what_is_not_finite():
    g = jax.grad(lambda x: jnp.sqrt(scale_gradient(x, 0.0)))(0.0)
    assert g == 0


def test_half_precision_keeps_its_dtype():
    x = jnp.ones(2, jnp.float16)
    g = jax.grad(lambda x: scale_gradient(x, jnp.array(2.0)).sum())(x)
    np.testing.assert_array_equal(g, 2 * x)
    assert g.dtype == x.dtype


def test_the_scale_must_be_a_scalar():
    with pytest.raises(ValueError):
        scale_gradient(X, jnp.ones(2))
