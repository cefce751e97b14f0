"""The parts of a state that look like the params."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
import pytest

import steepest
from steepest import tree

P = {"w": jnp.ones(2), "v": jnp.ones(1)}
NAMES = {"w": "W", "v": "V"}


class Two(NamedTuple):
    x: Any
    y: Any


def made(lib):
    """The same transformations in both libraries."""
    parts = {"a": lib.adam(0.1), "b": lib.sgd(0.1, 0.9)}
    return {
        "adam": lib.adam(0.1),
        "scheduled": lib.adam(lambda count: 0.1),
        "sgd": lib.sgd(0.1),
        "momentum": lib.sgd(0.1, 0.9),
        "chain": lib.chain(lib.clip(1.0), lib.adam(0.1), lib.trace(0.9)),
        "masked": lib.masked(lib.adam(0.1), {"w": True, "v": False}),
        "masked_by_function": lib.masked(
            lib.adam(0.1), lambda p: jax.tree.map(lambda x: x.size > 1, p)
        ),
        "partition": lib.partition(parts, {"w": "a", "v": "b"}),
        "injected": lib.inject_hyperparams(lib.adam)(0.1),
        "many_steps": lib.MultiSteps(lib.adam(0.1), 2),
    }


def marked(t, tx, params=P):
    """Which leaves of the state are recognized as params."""
    state = tx.init(params)
    return jax.tree.leaves(
        t.map_params(
            tx, lambda x: "param", state, transform_non_params=lambda x: "other"
        )
    )


@pytest.mark.parametrize("name", list(made(steepest)))
def test_the_same_leaves_as_in_optax(name):
    ours, theirs = made(steepest)[name], made(optax)[name]
    wanted = marked(optax.tree, theirs)
    assert marked(tree, ours) == wanted
    assert marked(tree, theirs) == wanted, "a pair of Optax"


@pytest.mark.parametrize("lib", [steepest, optax], ids=["ours", "optax"])
@pytest.mark.parametrize("name", ["adam", "masked", "masked_by_function", "partition"])
def test_each_param_meets_its_own(lib, name):
    """Also in masked states, where Optax needs `rest` masked like the state."""
    tx = made(lib)[name]
    state = tx.init(P)
    found = tree.map_params(tx, lambda x, name: (x.shape, name), state, NAMES)
    pairs = {x for x in jax.tree.leaves(found, is_leaf=_is_pair) if _is_pair(x)}
    wanted = {((2,), "W"), ((1,), "V")}
    assert pairs == wanted if name in ("adam", "partition") else {((2,), "W")}


def _is_pair(x):
    return isinstance(x, tuple) and len(x) == 2 and isinstance(x[1], str)


def test_what_is_not_a_param_stays():
    tx = steepest.adam(0.1)
    state = tx.init(P)
    found = tree.map_params(tx, lambda x: x + 1, state)
    assert found[0].count is state[0].count
    assert tree.allclose(found[0].mu, P) and tree.allclose(found[0].nu, P)
    assert type(found[0]) is type(state[0])


def test_an_init_alone_will_do():
    tx = steepest.adam(0.1)
    found = tree.map_params(tx.init, lambda x: "param", tx.init(P))
    assert found[0].mu == {"w": "param", "v": "param"}
    assert steepest.tree_map_params is tree.map_params


@pytest.mark.parametrize("lib", [steepest, optax], ids=["ours", "optax"])
def test_none_stays_none(lib):
    params = {"w": jnp.ones(2), "v": None}
    tx = lib.adam(0.1)
    found = tree.map_params(tx, lambda x, n: n, tx.init(params), NAMES)
    assert found[0].mu == {"w": "W", "v": None}


def test_masked_leaves_stay_unless_they_are_asked_for():
    tx = made(steepest)["masked"]
    state = tx.init(P)
    found = tree.map_params(tx, lambda x: "param", state)
    assert found.inner_state[0].mu == {"w": "param", "v": steepest.MaskedNode()}
    is_leaf = lambda x: isinstance(x, steepest.MaskedNode)
    found = tree.map_params(tx, lambda x: "param", state, is_leaf=is_leaf)
    assert found.inner_state[0].mu == {"w": "param", "v": "param"}


def test_leaves_of_rest_may_be_trees():
    tx = steepest.adam(0.1)
    rest = {"w": (1, 2), "v": None}
    found = tree.map_params(tx, lambda x, r: [r], tx.init(P), rest)
    assert found[0].mu == {"w": [(1, 2)], "v": [None]}


def test_is_leaf_ends_a_param():
    tx = steepest.adam(0.1)
    state = tx.init({"w": (jnp.ones(2), jnp.ones(2))})
    is_leaf = lambda x: type(x) is tuple
    found = tree.map_params(tx, lambda x, r: r, state, {"w": "pair"}, is_leaf=is_leaf)
    assert found[0].mu == {"w": "pair"}


def test_params_that_are_one_array_or_none_at_all():
    tx = steepest.adam(0.1)
    assert tree.map_params(tx, lambda x: "p", tx.init(jnp.ones(2)))[0].mu == "p"
    assert tree.map_params(tx, lambda x: "p", tx.init({}))[0].mu == {}


def test_an_init_that_looks_inside():
    """Optax calls it with an object that has no keys."""

    def init(params):
        return Two({"best": params["w"]}, jnp.zeros(3))

    found = tree.map_params(init, lambda x, name: name, init(P), NAMES)
    assert found.x == {"best": "W"}
    assert found.y.shape == (3,)


def test_shapes_and_compiled_states():
    tx = steepest.adam(0.1)
    shapes = jax.eval_shape(tx.init, P)
    assert tree.map_params(tx, lambda x: x.shape, shapes)[0].mu == {
        "w": (2,),
        "v": (1,),
    }
    double = jax.jit(lambda s: tree.map_params(tx, lambda x: 2 * x + 1, s))
    assert tree.allclose(double(tx.init(P))[0].mu, P)


def test_lookahead_warns_of_nothing():
    tx = steepest.lookahead(steepest.sgd(0.1, 0.9), 2, 0.5)
    state = tx.init(steepest.LookaheadParams.init_synced(P))
    found = tree.map_params(tx, lambda x: "param", state)
    assert "param" in jax.tree.leaves(found)


def test_what_does_not_fit():
    tx = steepest.adam(0.1)
    with pytest.raises(ValueError):
        tree.map_params(tx, lambda x: x, (1, 2))
    with pytest.raises(ValueError):
        tree.map_params(tx, lambda x, r: x, tx.init(P), {"w": 1})
    for t in (tree, optax.tree):
        with pytest.raises(TypeError):
            t.map_params(3, lambda x: x, tx.init(P))


def test_an_error_of_init_is_not_hidden():
    def init(params):
        raise RuntimeError("no")

    with pytest.raises(RuntimeError, match="no"):
        tree.map_params(init, lambda x: x, {"w": jnp.ones(1)})


def test_a_masked_state_that_keeps_nothing():
    tx = steepest.masked(steepest.sgd(0.1), {"a": True, "b": False})
    state = tx.init({"a": jnp.ones(2), "b": jnp.ones(2)})
    assert tree.map_params(tx, lambda x: x + 1, state) == state
