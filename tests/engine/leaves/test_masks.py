"""Masks: which leaves they select, the state, and errors for bad masks."""

import functools
import inspect

import equinox
import flax
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import nnx

import steepest

P = {"w": jnp.ones((3, 2)), "b": {"x": jnp.ones(2), "y": None}}
NO_BIAS = {"w": True, "b": False}


def test_memory_only_for_what_is_seen():
    state = steepest.masked(steepest.trace(0.9), NO_BIAS).init(P)
    assert [x.shape for x in jax.tree.leaves(state)] == [(3, 2)]
    assert state.inner_state.trace["b"] == steepest.MaskedNode()


def test_masked_out_leaves_pass_unchanged():
    tx = steepest.masked(steepest.scale(2.0), NO_BIAS)
    u, _ = tx.update(P, tx.init(P), P)
    assert u["b"]["x"] is P["b"]["x"]
    np.testing.assert_array_equal(u["w"], 2 * P["w"])


@pytest.mark.parametrize(
    "inner", [{"w": True, "b": True}, lambda p: True], ids=["tree", "function"]
)
def test_masks_under_masks(inner):
    """The inner mask may be for the whole tree, or for the selected leaves."""
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


def test_opaque_transformations_see_masked_nodes():
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


def test_a_string_is_a_pattern():
    tx = steepest.masked(steepest.scale(2.0), "^b/")
    u, _ = tx.update(P, tx.init(P), P)
    assert u["w"] is P["w"] and u["b"]["x"].tolist() == [2, 2]
    same = steepest.masked(steepest.scale(2.0), steepest.not_matching("w"))
    jax.tree.map(np.testing.assert_array_equal, u, same.update(P, same.init(P), P)[0])


def _with_masks():
    """Every public function with an argument for a mask, and its name."""
    doors = {"": steepest, "contrib.": steepest.contrib}
    for door, room in doors.items():
        for name, f in inspect.getmembers(room, inspect.isfunction):
            for argument in inspect.signature(f).parameters:
                if argument.endswith("mask"):
                    yield pytest.param(f, argument, id=f"{door}{name}-{argument}")


@pytest.mark.parametrize("f, argument", list(_with_masks()))
def test_patterns_wherever_a_mask_is_taken(f, argument):
    """A malformed pattern is an error at once."""
    given = {
        "learning_rate": 0.1,
        "optimizer": steepest.sgd(0.1),
        "inner": steepest.sgd(0.1),
        "weight_decay": 0.1,
        "weight_decay_rate": 0.1,
    }
    takes = inspect.signature(f).parameters
    given = {name: x for name, x in given.items() if name in takes}
    f(**given, **{argument: "w"})
    with pytest.raises(
        ValueError, match=r"the pattern 'w\(' is invalid at position 1: "
    ):
        f(**given, **{argument: "w("})


def test_hyperparameters_and_patterns():
    tx = steepest.inject_hyperparams(steepest.adamw)(0.1, weight_decay=0.5, mask="w")
    state = tx.init(P)
    assert "mask" not in state.hyperparams
    zero = jax.tree.map(jnp.zeros_like, P)
    u, _ = tx.update(zero, state, P)
    assert u["w"].all() and not u["b"]["x"].any()


class _Net(nnx.Module):
    def __init__(self, rngs):
        self.layer = nnx.Linear(1, 2, rngs=rngs)


_BY_NAME = {"layer": {"kernel": True, "bias": False}}
_ARRAYS = {"layer": {"kernel": jnp.ones(2), "bias": jnp.ones(2)}}
_LINEAR = equinox.nn.Linear(1, 2, key=jax.random.key(0))
_OTHERS = {
    "a dict for a FrozenDict": (flax.core.freeze(_ARRAYS), _BY_NAME),
    "a FrozenDict for a dict": (_ARRAYS, flax.core.freeze(_BY_NAME)),
    "a dict for a state": (nnx.state(_Net(nnx.Rngs(0)), nnx.Param), _BY_NAME),
    "a dict for a module": (_LINEAR, {"weight": True, "bias": False}),
    "a tuple for a list": ([jnp.ones(2), jnp.ones(2)], (True, False)),
}


@pytest.mark.parametrize("name", _OTHERS)
def test_node_types_need_not_match(name):
    """Leaves match by name, whatever the type of their nodes."""
    tree, mask = _OTHERS[name]
    p = jax.tree.map(jnp.ones_like, tree)
    tx = steepest.masked(steepest.trace(1.0), mask)
    state = tx.init(p)
    for _ in range(2):
        u, state = tx.update(p, state, p)
    assert jax.tree.structure(u) == jax.tree.structure(p)
    chosen = ("kernel", "weight", "0")
    for path, x in zip(steepest.tree.key_paths(u), jax.tree.leaves(u), strict=True):
        seen = any(key in chosen for key in path.split("/"))
        assert x.ravel()[0] == (2.0 if seen else 1.0)


def test_a_whole_mask_under_a_mask():
    """The inner mask may have a subtree where the outer one makes a hole."""
    whole = {"w": True, "b": {"x": True, "y": None}}
    for kind in (dict, flax.core.freeze):
        inner = steepest.masked(steepest.scale(2.0), kind(whole))
        tx = steepest.masked(inner, NO_BIAS)
        u, _ = tx.update(P, tx.init(P), P)
        assert u["w"][0, 0] == 2 and u["b"]["x"] is P["b"]["x"]


@pytest.mark.parametrize("too", [False, True])
def test_extra_arguments_are_masked_when_asked(too):
    heard = {}

    def update(updates, state, params=None, **extra_args):
        heard.update(extra_args)
        return updates, state

    tx = steepest.GradientTransformationExtraArgs(steepest.init_empty_state, update)
    tx = steepest.masked(tx, NO_BIAS, mask_compatible_extra_args=too)
    tx.update(P, tx.init(P), P, alike=P, grad=P, value=3.0)
    assert (heard["alike"]["b"] == steepest.MaskedNode()) == too
    assert heard["grad"]["b"] == steepest.MaskedNode()
    assert heard["value"] == 3.0


def _heard(**extra):
    """The arguments that an opaque transformation inside two masks receives."""
    heard = {}

    def update(updates, state, params=None, **extra_args):
        heard.update(extra_args, params=params)
        return updates, state

    tx = steepest.GradientTransformationExtraArgs(steepest.init_empty_state, update)
    tx = steepest.masked(steepest.masked(tx, "x"), "b")
    tx.update(P, tx.init(P), **extra)
    return heard


@pytest.mark.parametrize("name", ["value_fn", "obj_fn", "grad_fn"])
def test_a_function_of_the_params_becomes_one_of_those_seen(name):
    def f(p, factor, *, more=0.0):
        """Of all params."""
        return jax.tree.map(lambda x: x * factor + more, p)

    heard = _heard(params=P, **{name: f})
    seen = jax.tree.map(lambda x: x + 1, heard["params"])
    found = heard[name](seen, 10.0, more=1.0)
    if name == "grad_fn":
        assert found["w"] == steepest.MaskedNode()
    else:
        assert found["w"].tolist() == [[11, 11]] * 3
    assert found["b"]["x"].tolist() == [21, 21] and found["b"]["y"] is None
    assert inspect.signature(heard[name]) == inspect.signature(f)
    with pytest.raises(ValueError, match=r"masked: .* in the updates and not in the p"):
        heard[name]({}, 10.0)


def test_functions_that_are_not_of_the_params_pass():
    f = functools.partial(lambda k, p: (k, p), 3)
    assert _heard(value_fn=f)["value_fn"] is f  # no params to fill the holes with
    assert _heard(params=P, other_fn=f)["other_fn"] is f
    assert _heard(params=P, value_fn=None)["value_fn"] is None
    heard = _heard(params=P, value_fn=f)
    k, p = heard["value_fn"](heard["params"])
    assert k == 3 and p["w"] is P["w"] and p["b"]["x"] is P["b"]["x"]


def test_params_of_another_structure_are_refused():
    with pytest.raises(ValueError, match=r"masked: leaf \['b'\]\['x'\] is in the up"):
        _heard(params={"w": P["w"]})


def test_a_callable_module_of_booleans_is_a_tree():
    """An Equinox module is callable, but not a function of the params."""

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


@pytest.mark.parametrize("one", [1, 2.0, np.int8(1), jnp.ones(())])
def test_numbers_are_booleans_as_in_optax(one):
    make = lambda m: m.masked(m.scale(2.0), {"w": one, "b": 0})
    for tx in map(make, (steepest, optax)):
        u, _ = tx.update(P, tx.init(P))
        np.testing.assert_array_equal(u["w"], 2 * P["w"])
        np.testing.assert_array_equal(u["b"]["x"], P["b"]["x"])


BAD = {
    "another structure": ({"w": True}, "leaf ['b']['x'] is in the params and not in"),
    "a label": ({"w": "on", "b": False}, "the mask has 'on' at leaf ['w']"),
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

    with pytest.raises(TypeError, match="boolean known before tracing"):
        jax.jit(init)(True)


def test_a_state_of_something_else_is_refused():
    tx = steepest.masked(steepest.scale(2.0), NO_BIAS)
    with pytest.raises(TypeError, match="the state is a tuple, expected a MaskedState"):
        tx.update(P, (), P)
