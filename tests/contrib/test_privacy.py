"""Differential privacy."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import steepest
from steepest import UnusualValueWarning
from steepest.contrib import differentially_private_aggregate, dpsgd

P = {"w": jnp.zeros((2, 3)), "b": [jnp.zeros(2), None], "s": jnp.zeros(())}
GS = jax.tree.map(lambda p: jax.random.normal(jax.random.key(7), (4, *p.shape)), P)


def _run(tx, gs, steps=3):
    p = jax.tree.map(lambda g: g[0], gs)
    state, found, update = tx.init(p), [], jax.jit(tx.update)
    for t in range(steps):
        u, state = update(jax.tree.map(lambda g, t=t: g * (t + 1), gs), state, p)
        found.append(u)
    return found, jax.random.key_data(jax.tree.leaves(state)[0])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    "make",
    [
        lambda m: m.contrib.differentially_private_aggregate(0.7, 0.5, 3),
        lambda m: m.contrib.differentially_private_aggregate(10.0, 0.0, 3),
        lambda m: m.contrib.dpsgd(0.1, 1.0, 0.3, 3),
        lambda m: m.contrib.dpsgd(0.1, 1.0, 0.3, 3, 0.9, True),
    ],
    ids=["noisy", "clean", "dpsgd", "nesterov"],
)
def test_the_same_numbers_as_optax(make, dtype):
    with jax.enable_x64(dtype == "float64"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        gs = jax.tree.map(lambda g: jnp.asarray(np.asarray(g, dtype)), GS)
        ours = _run(make(steepest), gs)
        with jax.numpy_dtype_promotion("standard"):
            theirs = _run(make(optax), gs)
    tolerance = 1e-5 if dtype == "float32" else 1e-12
    for a, b in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


def test_no_example_counts_for_more_than_the_clip():
    """Without noise, whatever the example."""
    tx = differentially_private_aggregate(1.0, 0.0, 0)
    for size in (1e-3, 1.0, 1e15):
        gs = jax.tree.map(lambda g, size=size: size * g[:1], GS)
        u, _ = tx.update(gs, tx.init(P))
        length = np.sqrt(sum(np.sum(x**2) for x in jax.tree.leaves(u)))
        assert length <= 1 + 1e-5


def test_noise_has_the_size_that_was_promised():
    tx = differentially_private_aggregate(2.0, 3.0, 0)
    gs = jnp.zeros((5, 20000))
    u, _ = tx.update(gs, tx.init(gs[0]))
    np.testing.assert_allclose(jnp.std(u), 2 * 3 / 5, rtol=0.02)


def test_noise_is_new_in_every_step_and_leaf():
    tx = differentially_private_aggregate(1.0, 1.0, 0)
    zero = {"a": jnp.zeros((3, 4)), "b": jnp.zeros((3, 4))}

    def step(state, _):
        u, state = tx.update(zero, state)
        return state, u

    _, us = jax.lax.scan(step, tx.init(zero), None, length=2)
    rows = np.concatenate([us["a"], us["b"]])
    assert len({tuple(row) for row in rows}) == 4


def test_slopes_where_a_gradient_is_zero():
    tx = differentially_private_aggregate(1.0, 0.0, 0)
    f = lambda g: tx.update(g, tx.init(g[0]))[0].sum()
    assert np.isfinite(jax.grad(f)(jnp.zeros((2, 3)))).all()


def test_half_precision_and_ints():
    tx = differentially_private_aggregate(1.0, 0.5, 0)
    for dtype in ("bfloat16", "float16"):
        g = jnp.ones((4, 3), dtype)
        assert tx.update(g, tx.init(g[0]))[0].dtype == dtype
    g = jnp.ones((4, 3), int)
    assert tx.update(g, tx.init(g[0]))[0].dtype == "float32"


def test_nothing_to_do():
    tx = differentially_private_aggregate(1.0, 0.5, 0)
    assert tx.update({}, tx.init({}))[0] == {}


def test_errors(as_users_do):
    tx = differentially_private_aggregate(1.0, 1.0, 0)
    who = "differentially_private_aggregate: "
    for gs in (
        {"a": jnp.ones((3, 2)), "b": jnp.ones((4, 2))},
        {"a": jnp.ones((3, 2)), "b": jnp.ones(())},
    ):
        with pytest.raises(ValueError, match=who + "the gradients have shapes"):
            tx.update(gs, tx.init(gs))
    with pytest.raises(ValueError, match=who + "got no examples"):
        tx.update(jnp.ones((0, 2)), tx.init(jnp.ones(2)))
    with pytest.raises(ValueError, match=who + "got both `key` and `seed`"):
        differentially_private_aggregate(1.0, 1.0, 0, seed=0)
    with pytest.warns(UnusualValueWarning, match=who + "l2_norm_clip is -1.0"):
        differentially_private_aggregate(-1.0, 1.0, 0)
    with pytest.raises(ValueError, match=who + "noise_multiplier is inf"):
        differentially_private_aggregate(1.0, float("inf"), 0)
    with pytest.raises(
        TypeError, match=who + "the state is a tuple, expected a Different"
    ):
        differentially_private_aggregate(1.0, 1.0, 0).update(jnp.ones((3, 2)), ())
    with pytest.raises(UnusualValueWarning, match=r"dpsgd: momentum is 2\.0"):
        dpsgd(0.1, 1.0, 1.0, 0, momentum=2.0)
    with pytest.warns(DeprecationWarning, match="`seed` is deprecated"):
        differentially_private_aggregate(1.0, 1.0, seed=0)
    with pytest.warns(UserWarning, match="got no `key`"):
        differentially_private_aggregate(1.0, 1.0)
    assert dpsgd(0.1, 1.0, 1.0, jax.random.key(0)).init(P)[0].rng_key == jax.random.key(
        0
    )
