"""Leaves that hold still."""

import jax.numpy as jnp
import pytest

import steepest

P = {"a": jnp.ones(2), "b": jnp.ones(3)}


@pytest.mark.parametrize("by", ["tree", "function"])
def test_frozen_leaves_hold_still_and_take_no_memory(by):
    mask = {"a": True, "b": False}
    mask = mask if by == "tree" else lambda p: {"a": p["a"].size == 2, "b": False}
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
