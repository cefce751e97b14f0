"""Mechanic finds the learning rate."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steepest
from steepest import UnusualValueWarning
from steepest.contrib import mechanize

P = {"w": jnp.array([3.0, -2.0]), "none": None}
bases = pytest.mark.parametrize(
    "base",
    [steepest.sgd(1.0), steepest.adam(1.0), steepest.sgd(1e-2, 0.9)],
    ids=["sgd", "adam", "slow"],
)


@bases
def test_it_goes_downhill_whatever_the_learning_rate(base):
    tx = mechanize(base)

    def step(carry, _):
        p, state = carry
        g = jax.tree.map(lambda x: 2 * x, p)
        u, state = tx.update(g, state, p)
        return (steepest.apply_updates(p, u), state), None

    (p, state), _ = jax.jit(
        lambda p: jax.lax.scan(step, (p, tx.init(p)), None, length=300)
    )(P)
    assert np.abs(p["w"]).max() < 1
    assert state.count == 300


def test_the_initial_params_come_from_the_first_update():
    """Not those passed to `init`, which may have been shapes."""
    tx = mechanize(steepest.sgd(1.0))
    state = tx.init(P)
    _, state = tx.update(P, state, {"w": P["w"] + 5, "none": None})
    np.testing.assert_allclose(state.x0["w"], P["w"] + 5)
    _, state = tx.update(P, state, P)
    np.testing.assert_allclose(state.x0["w"], P["w"] + 5)


def test_all_steps_are_multiplied_by_one_factor():
    """`p = x0 - sum(s) * (the total update of the optimizer alone)`."""
    tx, p = mechanize(steepest.sgd(0.1), s_init=0.1), P
    state, done = tx.init(p), 0.0
    for t in range(5):
        g = {"w": jnp.sin(p["w"] + t), "none": None}
        done = done + 0.1 * g["w"]
        u, state = tx.update(g, state, p)
        p = steepest.apply_updates(p, u)
        want = P["w"] - jnp.sum(state.s) * done
        np.testing.assert_allclose(p["w"], want, rtol=1e-4)


def test_mixed_dtypes_and_complex():
    """The scalars of the state are real, in float32 or wider."""
    p = {"a": jnp.ones(2, "bfloat16"), "b": jnp.ones(2), "c": jnp.ones(2, "complex64")}
    tx = mechanize(steepest.sgd(0.1))
    u, state = tx.update(p, tx.init(p), p)
    assert jax.tree.map(lambda x: x.dtype, u) == jax.tree.map(lambda x: x.dtype, p)
    assert state.s.dtype == state.r.dtype == "float32"


def test_errors(as_users_do):
    with pytest.raises(ValueError, match="mechanize: num_betas is 0"):
        mechanize(steepest.sgd(0.1), num_betas=0)
    with pytest.warns(UnusualValueWarning, match="mechanize: eps is 0"):
        mechanize(steepest.sgd(0.1), eps=0.0)
    with pytest.raises(TypeError, match="mechanize: base_optimizer is a float"):
        mechanize(0.1)
    tx = mechanize(steepest.sgd(0.1))
    with pytest.raises(ValueError, match="mechanize: `update` needs `params`"):
        tx.update(P, tx.init(P))
    with pytest.raises(
        TypeError, match="mechanize: the state is a tuple, expected a Mechan"
    ):
        tx.update(P, (), P)
    with pytest.raises(
        TypeError, match=r"mechanize: leaf \['x'\] of the params is a st"
    ):
        tx.init({"x": "text"})
