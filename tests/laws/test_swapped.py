"""Swapped arguments of `update` are an error that says so."""

import jax
import pytest

import steepest

from ..zoo import few_params, over, ZOO

# The rows with a random key make another state than their transformation.
rows = over([row for row in ZOO if not (row.light or row.random)])


@rows
def test_the_state_first_is_an_error_that_shows_the_right_call(row, as_users_do):
    tx, p = row.make(), few_params()
    state = tx.init(p)
    if not jax.tree.leaves(state):
        pytest.skip("without a state, the error is about the leaves")
    message = r"`update` got the state as its first argument.*\(grads, state, params\)"
    with pytest.raises(TypeError, match=message):
        tx.update(state, p, p)


@pytest.mark.parametrize("place", ["first", "third"])
def test_the_error_names_the_optimizer(place, as_users_do):
    tx, p = steepest.adam(0.1), few_params()
    state = tx.init(p)
    args = (state, p) if place == "first" else (p, p, state)
    with pytest.raises(
        TypeError, match=f"^adam: `update` got the state as its {place}"
    ):
        tx.update(*args)
    with pytest.raises(TypeError, match=r"^adam: `update` got the state as its"):
        jax.jit(tx.update)(*args)


@pytest.mark.parametrize(
    "make, says",
    [
        (
            lambda: steepest.adam(0.1),
            "^adam: the state is a tuple of 1, expected a tup",
        ),
        (lambda: steepest.muon(0.1), "^muon: the state is a tuple, expected a Partiti"),
    ],
    ids=["adam", "muon"],
)
def test_another_state_is_an_error_of_the_optimizer(make, says, as_users_do):
    p = few_params()
    with pytest.raises(ValueError, match=says):
        make().update(p, (p,), p)
