"""MoMo and MoMo-Adam alone."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import steepest
from steepest import contrib

P = {"a": jnp.array([3.0, -4.0]), "b": None}


def _loss(p):
    return jnp.sum(p["a"] ** 2) + 1.0


def test_without_momentum_it_is_the_step_of_polyak():
    """(loss - lower bound) / |g|^2, and at most the learning rate."""
    tx = contrib.momo(10.0, beta=0.0, lower_bound=1.0)
    value, g = jax.value_and_grad(_loss)(P)
    u, _ = tx.update(g, tx.init(P), P, value=value)
    np.testing.assert_allclose(u["a"], -25 / 100 * g["a"], rtol=1e-6)
    short = contrib.momo(0.1, beta=0.0, lower_bound=1.0)
    u, _ = short.update(g, short.init(P), P, value=value)
    np.testing.assert_allclose(u["a"], -0.1 * g["a"], rtol=1e-6)
    assert u["b"] is None


def test_below_the_lower_bound_it_does_not_move():
    tx = contrib.momo(1.0, lower_bound=100.0)
    value, g = jax.value_and_grad(_loss)(P)
    u, _ = tx.update(g, tx.init(P), P, value=value)
    assert not u["a"].any()


@pytest.mark.parametrize("make", [contrib.momo, contrib.momo_adam], ids=["sgd", "adam"])
@pytest.mark.parametrize("rate", [0.5, 50.0])
def test_the_lower_bound_is_found(make, rate):
    """The loss ends at 1. Too large a learning rate does no harm."""
    tx = make(rate, lower_bound=-10.0, adapt_lower_bound=True)

    @jax.jit
    def run(p):
        def step(_, carry):
            p, state = carry
            value, g = jax.value_and_grad(_loss)(p)
            u, state = tx.update(g, state, p, value=value)
            return steepest.apply_updates(p, u), state

        return jax.lax.fori_loop(0, 300, step, (p, tx.init(p)))

    p, state = run(P)
    assert _loss(p) < 2
    assert state.lb <= 1.25  # it may rise too far, but is lowered again


def test_the_bound_stays_finite_if_the_sum_of_squares_overflows():
    tx, p = contrib.momo(1.0, adapt_lower_bound=True), jnp.ones(1000)
    state = tx.init(p)
    for size in (1e18, -1e18, 0.0):
        _, state = tx.update(jnp.full(1000, size), state, p, value=1.0)
        assert jnp.isfinite(state.lb)


@pytest.mark.parametrize("make", [contrib.momo, contrib.momo_adam], ids=["sgd", "adam"])
def test_a_zero_gradient_first_and_then_training(make):
    for adapt in (False, True):
        tx = make(0.1, adapt_lower_bound=adapt)
        zero = jax.tree.map(jnp.zeros_like, P)
        u, state = tx.update(zero, tx.init(P), P, value=26.0)
        assert not u["a"].any()
        value, g = jax.value_and_grad(_loss)(P)
        u, state = tx.update(g, state, P, value=value)
        assert all(np.isfinite(x).all() for x in jax.tree.leaves((u, state)))
        assert (jnp.sign(u["a"]) == -jnp.sign(g["a"])).all()


@pytest.mark.parametrize(
    "value",
    [1, 1.0, np.float64(1), jnp.ones((), jnp.bfloat16)],
    ids=lambda x: str(type(x)),
)
def test_the_loss_may_be_any_number(value):
    tx = contrib.momo()
    _, state = tx.update(P, tx.init(P), P, value=value)
    assert state.barf.dtype == jnp.float32 and state.barf == 1


@pytest.mark.usefixtures("as_users_do")
def test_the_loss_is_needed():
    for tx in (contrib.momo(), contrib.momo_adam()):
        with pytest.raises(ValueError, match=r"needs `value` and was called without"):
            tx.update(P, tx.init(P), P, value=None)
        with pytest.raises(ValueError, match=r"needs `params` and was called without"):
            tx.update(P, tx.init(P), value=1.0)


@pytest.mark.parametrize("name", ["momo", "momo_adam"])
def test_a_group_without_arrays_keeps_optax_s_bound(name):
    """Also if a mask leaves it nothing, or the tree is empty."""

    def bound(library, params, mask):
        tx = getattr(library.contrib, name)(adapt_lower_bound=True)
        tx = library.masked(tx, mask)
        state = tx.init(params)
        for value in (41.7, 40.0):
            _, state = tx.update(params, state, params, value=jnp.array(value))
        return library.tree.get(state, "lb")

    for params, mask in (({"a": jnp.ones(3)}, {"a": False}), ({}, {})):
        want = bound(optax, params, mask)
        assert want > 39
        np.testing.assert_allclose(bound(steepest, params, mask), want, rtol=1e-6)
