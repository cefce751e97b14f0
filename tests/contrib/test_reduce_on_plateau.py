"""A learning rate that is reduced when the loss stops improving."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import steepest
from steepest.contrib import reduce_on_plateau

from ..unusual import ODD

G = {"w": jnp.array([1.0, -2.0]), "none": None}
FLAT = [5.0, 4, 4, 4, 4, 4, 4, 3, 3, 3, 3, -1, -1.0001, -1]


def _states(m, losses, **options):
    """The state after each loss, and an update."""
    tx = m.contrib.reduce_on_plateau(**options)

    def step(state, loss):
        u, state = tx.update(G, state, value=loss)
        return state, (*state, u["w"][0])

    columns = jax.lax.scan(step, tx.init(G), jnp.array(losses, "float32"))[1]
    return np.stack([x.astype("float32") for x in columns], axis=1)


@pytest.mark.parametrize(
    "options",
    [
        {"patience": 2, "cooldown": 2, "factor": 0.5},
        {"patience": 1, "cooldown": 1, "factor": 0.5, "accumulation_size": 2},
        {"patience": 1, "factor": 0.5, "min_scale": 0.3},
        {"patience": 1, "rtol": 0.5, "atol": 0.1},
        {"patience": 2, "rtol": 0.0, "atol": 1e-3, "accumulation_size": 3},
        {"patience": 1, "min_scale": 2.0},
    ],
    ids=["cooldown", "accumulate", "least", "both", "absolute", "above"],
)
def test_step_by_step_as_optax(options):
    losses = [*FLAT, -5.0, np.nan, np.nan, -8, -8, np.inf, -9]
    with jax.numpy_dtype_promotion("standard"):
        want = _states(optax, losses, **options)
    np.testing.assert_allclose(_states(steepest, losses, **options), want, 1e-6)


def test_patience():
    """It is reduced at the second average in a row that is not better."""
    scales = _states(steepest, [3, 3, 3, 2, 2, 2], factor=0.5, patience=2)[:, 0]
    assert scales.tolist() == [1, 1, 0.5, 0.5, 0.5, 0.25]


def test_rtol_of_one_works():
    """A fraction of an infinite best value is NaN: Optax with `rtol=1`."""
    best = _states(steepest, [3.0, -1.0], rtol=1.0)[:, 1]
    assert best.tolist() == [3.0, -1.0]


@pytest.mark.parametrize("size", [1, 2])
def test_in_a_chain_under_scan(size):
    plateau = reduce_on_plateau(factor=0.5, patience=1, accumulation_size=size)
    tx = steepest.chain(steepest.adam(0.1), plateau)
    p = {"w": G["w"]}

    def step(state, loss):
        u, state = tx.update(p, state, p, value=loss)
        return state, u

    state, _ = jax.lax.scan(step, tx.init(p), jnp.full(8, 3.0))
    assert state[1].scale == 0.5 ** (7 if size == 1 else 3)


def test_the_loss_may_have_any_dtype():
    """The loss may be a bfloat16 number, an integer or a NumPy number."""
    tx, g = reduce_on_plateau(patience=1), jnp.ones(2, "bfloat16")
    state = tx.init(g)
    assert state.scale.dtype == "float32"
    for value in (jnp.bfloat16(3), 3, np.float64(3), jnp.float32(3)):
        u, new = tx.update(g, state, value=value)
        assert u.dtype == "bfloat16"
        assert new.best_value == 3 and new.best_value.dtype == "float32"


@pytest.mark.parametrize(
    "options",
    [
        {"factor": 0.0},
        {"factor": 1.0},
        {"factor": -0.1},
        {"rtol": -1.0},
        {"rtol": 1.5},
        {"atol": -1.0},
        {"rtol": 0.0},
        {"accumulation_size": 0},
        {"patience": 0},
        {"patience": 1.5},
        {"cooldown": -1},
        {"min_scale": -0.5},
    ],
    ids=str,
)
def test_impossible_options(as_users_do, options):
    with pytest.raises(ODD, match=f"reduce_on_plateau: {next(iter(options))}"):
        reduce_on_plateau(**options)


def test_the_loss_is_needed(as_users_do):
    tx = reduce_on_plateau()
    with pytest.raises((TypeError, ValueError), match="needs `value`"):
        tx.update(G, tx.init(G), G)
    said = r"reduce_on_plateau: value has shape \(2,\), expected one number"
    with pytest.raises(ValueError, match=said):
        tx.update(G, tx.init(G), G, value=jnp.ones(2))
