"""The pair of functions, and what it does with extra arguments."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import steepest
from steepest import GradientTransformation, GradientTransformationExtraArgs

pairs = pytest.mark.parametrize(
    "pair", [GradientTransformation, GradientTransformationExtraArgs]
)


def _init(params):
    return ("state of", params)


def _plain(updates, state, params=None):
    return -updates, (state, params)


def _scaled(updates, state, params=None, *, value=1.0, **extra_args):
    return value * updates, (state, sorted(extra_args))


@pairs
def test_a_pair_unpacks_into_two(pair):
    tx = pair(_init, _plain)
    init, update = tx
    assert isinstance(tx, tuple) and tx == (_init, _plain)
    assert (init, update) == (tx.init, tx.update) == (_init, _plain)
    assert tx._fields == ("init", "update")


def test_one_with_extra_arguments_is_a_transformation():
    tx = GradientTransformationExtraArgs(_init, _scaled)
    assert isinstance(tx, GradientTransformation)
    assert not isinstance(
        GradientTransformation(_init, _plain), GradientTransformationExtraArgs
    )


def test_an_ordinary_one_learns_to_ignore_extras():
    tx = steepest.with_extra_args_support(GradientTransformation(_init, _plain))
    assert isinstance(tx, GradientTransformationExtraArgs)
    assert tx.init("p") == ("state of", "p")
    found = tx.update(2.0, "s", "p", value=5.0, anything=None)
    assert found == (-2.0, ("s", "p"))


def test_params_stay_optional():
    tx = steepest.with_extra_args_support(GradientTransformation(_init, _plain))
    assert tx.update(2.0, "s") == (-2.0, ("s", None))


def test_one_that_takes_extras_comes_back_unchanged():
    tx = GradientTransformationExtraArgs(_init, _scaled)
    assert steepest.with_extra_args_support(tx) is tx


def test_support_twice_is_support_once():
    once = steepest.with_extra_args_support(GradientTransformation(_init, _plain))
    assert steepest.with_extra_args_support(once) is once


def test_an_ordinary_one_of_optax_learns_to_ignore_extras():
    tx = steepest.with_extra_args_support(optax.GradientTransformation(_init, _plain))
    assert isinstance(tx, GradientTransformationExtraArgs)
    assert tx.update(2.0, "s", "p", value=5.0) == (-2.0, ("s", "p"))


def test_one_of_optax_still_receives_extras():
    theirs = optax.GradientTransformationExtraArgs(_init, _scaled)
    tx = steepest.with_extra_args_support(theirs)
    assert isinstance(tx, GradientTransformationExtraArgs)
    found = tx.update(2.0, "s", value=5.0, other=None)
    assert found == (10.0, ("s", ["other"]))


def test_the_empty_state_is_empty():
    """It has no leaves: nothing to save, shard or donate."""
    assert steepest.EmptyState() == ()
    assert steepest.EmptyState._fields == ()
    assert jax.tree.leaves(steepest.EmptyState()) == []


@pytest.mark.parametrize("params", [None, {"w": 1.0}, ()])
def test_init_empty_state_looks_at_nothing(params):
    state = steepest.init_empty_state(params)
    assert isinstance(state, steepest.EmptyState)


def test_stateless_sees_updates_and_params():
    tx = steepest.stateless(lambda updates, params: updates - 2 * params)
    g, p = jnp.array([5.0, 7.0]), jnp.array([1.0, 2.0])
    state = tx.init(p)
    u, new = tx.update(g, state, p)
    np.testing.assert_array_equal(u, [3.0, 3.0])
    assert new == state == steepest.EmptyState()


def test_stateless_without_params_is_given_none():
    tx = steepest.stateless(lambda updates, params: (updates, params))
    assert tx.update("g", tx.init(None))[0] == ("g", None)


def test_stateless_ignores_extras():
    tx = steepest.stateless(lambda updates, params: 2 * updates)
    assert isinstance(tx, GradientTransformationExtraArgs)
    assert tx.update(3.0, tx.init(None), value=1.0, other=None)[0] == 6.0
