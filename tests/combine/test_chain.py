"""Chains: order, names and errors."""

from collections import OrderedDict
from types import MappingProxyType

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steepest

G = jnp.array([3.0, -4.0])


def _run(tx, g=G):
    return tx.update(g, tx.init(g), g)


def test_from_left_to_right():
    clipped_first = steepest.chain(steepest.clip(1.0), steepest.scale(10.0))
    scaled_first = steepest.chain(steepest.scale(10.0), steepest.clip(1.0))
    assert _run(clipped_first)[0].tolist() == [10.0, -10.0]
    assert _run(scaled_first)[0].tolist() == [1.0, -1.0]


def test_the_state_of_a_chain_of_one_is_a_tuple():
    u, state = _run(steepest.chain(steepest.trace(0.9)))
    want, kept = _run(steepest.trace(0.9))
    np.testing.assert_array_equal(u, want)
    assert isinstance(state, tuple) and len(state) == 1
    np.testing.assert_array_equal(state[0].trace, kept.trace)


def test_named_chain_has_names():
    tx = steepest.named_chain(
        ("z", steepest.trace(0.9)), ("a", steepest.scale_by_adam())
    )
    _, state = _run(tx)
    assert list(state) == ["z", "a"]
    assert isinstance(state["a"], steepest.ScaleByAdamState)


def test_a_named_chain_takes_a_plain_dict_for_its_state():
    """As loaded from a checkpoint, in any order."""
    tx = steepest.named_chain(
        ("z", steepest.trace(0.9)), ("a", steepest.scale_by_adam())
    )
    state = tx.init(G)
    u, _ = tx.update(G, {"a": state["a"], "z": state["z"]})
    np.testing.assert_array_equal(u, _run(tx)[0])


def test_an_identity_in_a_chain_keeps_its_place():
    _, state = _run(steepest.chain(steepest.identity(), steepest.trace(0.9)))
    assert state[0] == steepest.EmptyState()


ADAM = steepest.adam(0.1)
BAD = {
    "nothing": (lambda: steepest.chain(), "chain: got no transformation"),
    "a list": (
        lambda: steepest.chain([ADAM]),
        "chain: argument 0 is a list, expected a gradient transformation",
    ),
    "not called": (
        lambda: steepest.chain(ADAM, steepest.adam),
        "argument 1 is a function, expected a gradient transformation (a pair of "
        "`init` and `update`). Call it first: `adam(...)`",
    ),
    "a number": (lambda: steepest.chain(0.1), "argument 0 is a float"),
    "no names": (lambda: steepest.named_chain(), "named_chain: got no transformation"),
    "one name twice": (
        lambda: steepest.named_chain(("a", ADAM), ("a", ADAM)),
        "named_chain: got the name 'a' twice",
    ),
    "a named list": (
        lambda: steepest.named_chain(("a", [ADAM])),
        "named_chain: 'a' is a list",
    ),
    "a short state": (
        lambda: steepest.chain(ADAM, ADAM).update(G, ADAM.init(G)[:1], G),
        "chain: the state is a tuple of 1, expected a tuple of 2 states",
    ),
    "a state without names": (
        lambda: steepest.named_chain(("a", ADAM)).update(G, (ADAM.init(G),), G),
        "named_chain: the state is a tuple of 1, expected a dict with the keys ['a']",
    ),
    "masked list": (lambda: steepest.masked([ADAM], True), "masked: inner is a list"),
}


@pytest.mark.parametrize("name", BAD)
@pytest.mark.usefixtures("as_users_do")
def test_what_cannot_be_chained_is_refused(name):
    bad, message = BAD[name]
    with pytest.raises((ValueError, TypeError)) as error:
        bad()
    assert message in str(error.value)


def _listed(state):
    """A state as some checkpoint loaders return it: with lists for tuples."""
    if isinstance(state, tuple) and not hasattr(state, "_fields"):
        return [_listed(x) for x in state]
    return state


def test_a_state_of_lists_is_a_state():
    tx = steepest.chain(steepest.clip(1.0), ADAM, steepest.chain(steepest.scale(2.0)))
    state = tx.init(G)
    want, found = tx.update(G, state, G), tx.update(G, _listed(state), G)
    assert jax.tree.structure(found) == jax.tree.structure(want)
    jax.tree.map(np.testing.assert_array_equal, found, want)


@pytest.mark.parametrize("kind", [dict, OrderedDict, MappingProxyType])
def test_a_named_state_may_be_any_mapping(kind):
    tx = steepest.named_chain(("clip", steepest.clip(1.0)), ("adam", ADAM))
    state = tx.init(G)
    want, found = tx.update(G, state, G), tx.update(G, kind(state), G)
    assert jax.tree.structure(found) == jax.tree.structure(want)
    jax.tree.map(np.testing.assert_array_equal, found, want)
