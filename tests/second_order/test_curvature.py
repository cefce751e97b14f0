"""Hessian-vector products, and diagonals."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax.flatten_util import ravel_pytree

from steepest import second_order
from steepest.second_order import fisher_diag, hessian_diag, hvp
from tests.oracles._calls import assert_same, called


def loss(params, inputs, targets):
    found = params["w"] ** 3 * inputs + jnp.sum(params["w"]) * params["b"][None]
    return jnp.sum((found - targets) ** 2)


def problem(dtype=jnp.float32):
    rng = np.random.default_rng(0)
    new = lambda *shape: jnp.array(rng.normal(size=shape), dtype)
    return {"w": new(3), "b": new()}, new(3), new(3), new(4)


def all_three(lib):
    """The three functions of a library, compiled together."""

    def found(params, inputs, targets, v):
        rest = params, inputs, targets
        diagonals = lib.hessian_diag(loss, *rest), lib.fisher_diag(loss, *rest)
        return lib.hvp(loss, v, *rest), *diagonals

    return jax.jit(found)


@pytest.mark.parametrize("bits", [32, 64])
def test_as_in_optax(bits):
    with jax.enable_x64(bits == 64):
        args = problem(jnp.float64 if bits == 64 else jnp.float32)
        found = all_three(second_order)(*args)
        wanted = called(all_three(optax.second_order), *args)
        assert_same(found, wanted, atol=1e-5)


def test_as_the_whole_matrix_says():
    params, inputs, targets, v = problem()
    flat, unravel = ravel_pytree(params)
    whole = jax.jit(jax.hessian(lambda x: loss(unravel(x), inputs, targets)))(flat)
    product, diagonal, _ = all_three(second_order)(params, inputs, targets, v)
    np.testing.assert_allclose(ravel_pytree(product)[0], whole @ v, rtol=1e-4)
    np.testing.assert_allclose(diagonal, jnp.diag(whole), rtol=1e-4)


def test_the_vector_may_be_a_tree():
    params, inputs, targets, v = problem()
    f = jax.jit(lambda v: hvp(loss, v, params, inputs, targets))
    assert_same(f(ravel_pytree(params)[1](v)), f(v))


def cubes(params, inputs, targets):
    return sum(jnp.sum(x**3) for x in jax.tree.leaves(params))


def test_more_numbers_than_fit_in_a_block():
    x = jnp.arange(70.0)
    found = jax.jit(lambda x: hessian_diag(cubes, x, None, None))(x)
    np.testing.assert_allclose(found, 6 * x)


def test_dtypes():
    """Optax supports neither half precision nor a vector in another dtype."""
    half = jnp.array([1.0, 2.0], jnp.float16)
    assert_same(hessian_diag(cubes, half, None, None), jnp.array([6, 12], half.dtype))
    assert_same(hvp(cubes, jnp.ones(2), half, None, None), 6 * half)
    assert_same(fisher_diag(cubes, half, None, None), jnp.array([9, 144], half.dtype))

    def mixed(params, inputs, targets):
        return sum(cubes(x, None, None).astype(float) for x in params)

    params = [half, jnp.ones(1)]
    np.testing.assert_allclose(hessian_diag(mixed, params, None, None), [6, 12, 6])


def test_numbers_none_and_nothing():
    assert_same(hessian_diag(cubes, 2.0, None, None), jnp.array([12.0]))
    params = {"a": jnp.ones(2), "n": None}
    assert hvp(cubes, jnp.ones(2), params, None, None)["n"] is None
    assert hessian_diag(cubes, {}, None, None).shape == (0,)


@pytest.mark.parametrize("v", [jnp.ones(3), jnp.ones((1, 2)), {"a": jnp.ones(2)}])
def test_a_vector_that_does_not_fit(v):
    with pytest.raises(ValueError, match="hvp: v has shapes"):
        hvp(cubes, v, jnp.ones(2), None, None)


@pytest.mark.parametrize("who", ["hvp", "hessian_diag", "fisher_diag"])
def test_the_loss_must_be_a_number(who):
    def call(f, params):
        v = [jnp.ones(2)] if who == "hvp" else []
        return getattr(second_order, who)(f, *v, params, None, None)

    p = jnp.ones(2)
    name = "negative_log_likelihood" if who == "fisher_diag" else "loss"
    with pytest.raises(
        TypeError, match=rf"^{who}: {name} returns shape \(2,\), expected one"
    ):
        call(lambda p, x, y: p, p)
    with pytest.raises(
        TypeError, match=f"^{who}: {name} returns a NoneType, expected one num"
    ):
        call(lambda p, x, y: None, p)
    with pytest.raises(
        TypeError, match=rf"^{who}: leaf \['n'\] of the params has dtype"
    ):
        call(cubes, {"n": jnp.array([1, 2])})


def test_a_loss_must_be_a_function(as_users_do):
    with pytest.raises(TypeError, match=r"^hvp: loss is a int, expected a function"):
        hvp(3, jnp.ones(2), jnp.ones(2), None, None)
