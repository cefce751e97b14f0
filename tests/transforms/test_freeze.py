"""Frozen leaves."""

import jax
import jax.numpy as jnp
import pytest

import steepest

P = {"a": jnp.ones(2), "b": jnp.ones(3)}


MASKS = {
    "tree": {"a": True, "b": False},
    "function": lambda p: {"a": p["a"].size == 2, "b": False},
    "pattern": "a",
}


@pytest.mark.parametrize("by", MASKS)
def test_frozen_leaves_hold_still_and_take_no_memory(by):
    mask = MASKS[by]
    tx = steepest.selective_transform(steepest.adamw(0.1), freeze_mask=mask)
    u, state = tx.update(P, tx.init(P), P)
    assert u["a"].tolist() == [0, 0] and float(u["b"][0]) < 0
    adam = state.inner_states["train"].inner_state[0]
    assert adam.mu["a"] == steepest.MaskedNode() and adam.mu["b"].shape == (3,)


def test_freeze_lets_the_others_pass():
    tx = steepest.freeze({"a": True, "b": False})
    g = {"a": jnp.array([jnp.nan, 1.0]), "b": jnp.ones(3)}
    u, state = tx.update(g, tx.init(g))
    assert u["a"].tolist() == [0, 0] and u["b"].tolist() == [1, 1, 1]
    assert state == steepest.MaskedState(steepest.EmptyState())


LATER = {
    "rules": lambda: steepest.adamw(0.1),
    "no rule": lambda: steepest.stateless(lambda g, p: p),
    "both": lambda: steepest.chain(
        steepest.stateless(lambda g, p: p), steepest.add_decayed_weights(0.1)
    ),
    "under a mask": lambda: steepest.masked(steepest.adamw(0.1), "a|b"),
}


@pytest.mark.parametrize("name", LATER)
def test_what_is_frozen_stays_so_to_the_end_of_the_chain(name):
    """Weight decay after it applies only to the other leaves."""
    tx = steepest.chain(steepest.freeze("a"), LATER[name]())
    state = tx.init(P)
    u, new = tx.update(P, state, P)
    assert u["a"].tolist() == [0, 0] and u["b"].all()
    assert jax.tree.structure(state) == jax.tree.structure(new)


def test_what_is_set_to_zero_may_be_moved_again():
    zero = steepest.masked(steepest.set_to_zero(), "a")
    tx = steepest.chain(zero, steepest.add_decayed_weights(0.5))
    u, _ = tx.update(P, tx.init(P), P)
    assert u["a"].tolist() == [0.5, 0.5] and u["b"].tolist() == [1.5] * 3
