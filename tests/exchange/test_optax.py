"""States move between the libraries. `tests/oracles` does it in mid-training."""

import sys
from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax
import pytest

import steepest

P = {"w": jnp.ones((2, 2)), "b": [jnp.ones(2), None]}


def _deep(m):
    return m.chain(
        m.clip_by_global_norm(1.0),
        m.masked(m.adamw(0.1), {"w": True, "b": False}),
        m.named_chain(("a", m.trace(0.9)), ("b", m.scale(1.0))),
    )


def test_there_and_back():
    state = _deep(steepest).init(P)
    there = steepest.to_optax(state)
    assert jax.tree.structure(there) == jax.tree.structure(_deep(optax).init(P))
    back = steepest.from_optax(there)
    assert jax.tree.structure(back) == jax.tree.structure(state)
    same = jax.tree.map(lambda a, b: a is b, back, state)
    assert all(jax.tree.leaves(same)), "no array is copied"


def test_what_is_not_optax_passes():
    class Mine(NamedTuple):
        x: int

    assert steepest.from_optax({"a": Mine(1), "b": None}) == {"a": Mine(1), "b": None}


def test_what_the_other_does_not_have_is_named(as_users_do):
    state = steepest.nag(0.1, 0.9).init(P)
    with pytest.raises(ValueError, match=r"to_optax: the state holds a \w+ with"):
        steepest.to_optax(state)


@pytest.mark.parametrize("move", [steepest.from_optax, steepest.to_optax])
def test_only_states_move(move, as_users_do):
    for x in (steepest.adam(0.1), optax.adam(0.1), optax.adam, "state.pkl"):
        with pytest.raises(
            TypeError, match=rf"{move.__name__}: found a \w+, and the st"
        ):
            move(x)


def test_without_optax_there_is_nowhere_to_go(monkeypatch):
    monkeypatch.setitem(sys.modules, "optax", None)
    with pytest.raises(ImportError, match="to_optax: Optax cannot be imported"):
        steepest.to_optax(steepest.EmptyState())
