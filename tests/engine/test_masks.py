"""Masks: what is seen, what is kept, and what is said about bad ones."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import steepest

P = {"w": jnp.ones((3, 2)), "b": {"x": jnp.ones(2), "y": None}}
NO_BIAS = {"w": True, "b": False}


def test_memory_only_for_what_is_seen():
    state = steepest.masked(steepest.trace(0.9), NO_BIAS).init(P)
    assert [x.shape for x in jax.tree.leaves(state)] == [(3, 2)]
    assert state.inner_state.trace["b"] == steepest.MaskedNode()


def test_the_rest_passes_as_it_is():
    tx = steepest.masked(steepest.scale(2.0), NO_BIAS)
    u, _ = tx.update(P, tx.init(P), P)
    assert u["b"]["x"] is P["b"]["x"]
    np.testing.assert_array_equal(u["w"], 2 * P["w"])


@pytest.mark.parametrize(
    "inner", [{"w": True, "b": True}, lambda p: True], ids=["tree", "function"]
)
def test_masks_under_masks(inner):
    """The inner one may be written for the whole tree, or see what is left."""
    tx = steepest.masked(steepest.masked(steepest.scale(2.0), inner), NO_BIAS)
    u, state = tx.update(P, tx.init(P), P)
    assert isinstance(state.inner_state, steepest.MaskedState)
    np.testing.assert_array_equal(u["w"], 2 * P["w"])
    assert u["b"]["x"] is P["b"]["x"]


def test_a_function_under_a_mask_sees_what_is_left():
    seen = []

    def mask(tree):
        seen.append(jax.tree.leaves(tree))
        return jax.tree.map(lambda x: True, tree)

    steepest.masked(steepest.masked(steepest.scale(2.0), mask), NO_BIAS).init(P)
    assert [x.shape for x in seen[0]] == [(3, 2)]


def test_only_what_is_seen_is_measured():
    tx = steepest.masked(steepest.clip_by_global_norm(1.0), {"w": False, "b": True})
    u, _ = tx.update(P, tx.init(P), P)
    np.testing.assert_allclose(u["b"]["x"], 1 / np.sqrt(2) * np.ones(2), rtol=1e-6)


def test_what_is_no_rule_sees_holes():
    """As with Optax: the inner transformation gets a tree with `MaskedNode`s."""
    seen = []

    def look(updates, params):
        seen.append((updates, params))
        return jax.tree.map(lambda x: 3 * x, updates)

    tx = steepest.masked(steepest.stateless(look), NO_BIAS)
    u, _ = tx.update(P, tx.init(P), P)
    for tree in seen[0]:
        assert tree["b"] == steepest.MaskedNode()
    np.testing.assert_array_equal(u["w"], 3 * P["w"])
    np.testing.assert_array_equal(u["b"]["x"], P["b"]["x"])


@pytest.mark.parametrize("too", [False, True])
def test_extra_arguments_are_masked_when_asked(too):
    heard = {}

    def update(updates, state, params=None, **extra_args):
        heard.update(extra_args)
        return updates, state

    tx = steepest.GradientTransformationExtraArgs(steepest.init_empty_state, update)
    tx = steepest.masked(tx, NO_BIAS, mask_compatible_extra_args=too)
    tx.update(P, tx.init(P), P, alike=P, other=3.0)
    assert (heard["alike"]["b"] == steepest.MaskedNode()) == too
    assert heard["other"] == 3.0


def test_a_callable_module_of_booleans_is_a_tree():
    """An Equinox module is callable, and yet not a function of the params."""

    @jax.tree_util.register_pytree_node_class
    class Module:
        def __init__(self, w, b):
            self.w, self.b = w, b

        def tree_flatten(self):
            return (self.w, self.b), None

        @classmethod
        def tree_unflatten(cls, _, children):
            return cls(*children)

        def __call__(self, x):
            raise AssertionError("called")

    p = Module(jnp.ones(2), jnp.ones(2))
    tx = steepest.masked(steepest.scale(2.0), Module(True, False))
    u, _ = tx.update(p, tx.init(p), p)
    assert (u.w[0], u.b[0]) == (2.0, 1.0)


def test_masked_adam_of_optax_and_ours_agree_on_what_they_keep():
    make = lambda m: m.masked(m.adam(0.1), {"w": False, "b": {"x": True, "y": None}})
    ours, theirs = make(steepest).init(P), make(optax).init(P)
    assert str(jax.tree.structure(ours)) == str(jax.tree.structure(theirs))


BAD = {
    "another structure": ({"w": True}, "leaf ['b']['x'] is in the params and not in"),
    "a number": ({"w": 1, "b": False}, "the mask has 1 at leaf ['w']"),
    "none": ({"w": None, "b": False}, "the mask has None at leaf ['w']"),
    "more than the params": (
        {"w": True, "b": {"x": True, "y": True, "z": True}},
        "leaf ['b']['z'] is in the mask and not in the params",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_mask_is_refused(name):
    mask, message = BAD[name]
    with pytest.raises((ValueError, TypeError)) as error:
        steepest.masked(steepest.scale(2.0), mask).init(P)
    assert str(error.value).startswith("masked: ")
    assert message in str(error.value)


def test_a_traced_mask_is_refused():
    def init(on):
        return steepest.masked(steepest.scale(2.0), {"w": on, "b": False}).init(P)

    with pytest.raises(TypeError, match="boolean known before tracing is wanted"):
        jax.jit(init)(True)


def test_a_state_of_something_else_is_refused():
    tx = steepest.masked(steepest.scale(2.0), NO_BIAS)
    with pytest.raises(TypeError, match="the state is a tuple, and a MaskedState"):
        tx.update(P, (), P)
