"""Transformations remember the call that made them."""

import copy
import inspect
import pickle

import jax
import jax.numpy as jnp
import pytest

import steepest
from steepest import adamw, chain, clip_by_global_norm
from steepest.core import Call


def test_it_prints_as_it_is_typed():
    tx = chain(clip_by_global_norm(1.0), adamw(1e-3, mask=r"kernel"))
    assert repr(tx) == (
        "chain(\n"
        "    clip_by_global_norm(max_norm=1.0),\n"
        "    adamw(learning_rate=0.001, b1=0.9, b2=0.999, eps=1e-08, eps_root=0.0, "
        "weight_decay=0.0001, mask='kernel'),\n"
        ")"
    )
    assert eval(repr(tx), dict(inspect.getmembers(steepest))) == tx


def test_groups_print_one_below_the_other():
    tx = steepest.route({"bias": None, ".*": steepest.sgd(0.1)})
    assert repr(tx) == (
        "route(\n"
        "    transforms={\n"
        "        'bias': None,\n"
        "        '.*': sgd(learning_rate=0.1),\n"
        "    },\n"
        ")"
    )


@pytest.mark.parametrize(
    "tx, line",
    [
        (steepest.sgd(jnp.array(0.5)), "sgd(learning_rate=array(0.5, float32))"),
        (
            steepest.sgd(steepest.cosine_decay_schedule(0.1, 100)),
            "sgd(learning_rate=cosine_decay_schedule(init_value=0.1, decay_steps=100, "
            "alpha=0.0, exponent=1.0))",
        ),
        (
            steepest.inject_hyperparams(steepest.sgd)(0.1, nesterov=True),
            "inject_hyperparams(sgd)(learning_rate=0.1, nesterov=True)",
        ),
        (
            steepest.MultiSteps(steepest.sgd(1.0), 2),
            "MultiSteps(\n    opt=sgd(learning_rate=1.0),\n    every_k_schedule=2,\n)",
        ),
    ],
    ids=["array", "schedule", "injected", "MultiSteps"],
)
def test_it_prints_what_is_inside(tx, line):
    assert repr(tx) == line


def test_twins_are_equal_and_others_are_not():
    assert adamw(1e-3) == adamw(learning_rate=1e-3, b1=0.9)
    assert hash(adamw(1e-3)) == hash(adamw(1e-3))
    assert adamw(1e-3) != adamw(2e-3)
    assert adamw(1e-3) != steepest.adam(1e-3)
    assert adamw(1e-3, mask={"a": True, "b": False}) != adamw(1e-3, mask={"a": True})
    assert adamw(jnp.array(0.1)) == adamw(jnp.array(0.1))
    assert adamw(jnp.array(0.1)) != adamw(jnp.array(0.2))
    assert adamw(jnp.array(0.1)) != adamw(0.1)
    schedule = lambda: steepest.linear_schedule(1.0, 0.0, 10)
    assert adamw(schedule()) == adamw(schedule())
    assert adamw(0.0) != adamw(-0.0)


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, jax.tree.map])
def test_copies_are_equal(again):
    tx = chain(clip_by_global_norm(1.0), adamw(jnp.array(1e-3), mask=r"kernel"))
    made = again(lambda x: x, tx) if again is jax.tree.map else again(tx)
    assert made == tx
    assert type(made) is type(tx)
    assert jax.tree.structure(made) == jax.tree.structure(tx)


def test_it_pickles():
    tx = chain(clip_by_global_norm(1.0), adamw(steepest.linear_schedule(1.0, 0.0, 9)))
    again = pickle.loads(pickle.dumps(tx))
    assert again == tx
    g = jnp.ones(2)
    u, _ = again.update(g, again.init(g), g)
    v, _ = tx.update(g, tx.init(g), g)
    assert (u == v).all()
    init, update = pickle.loads(pickle.dumps(tuple(tx)))
    assert (init, update) == tuple(tx)


def test_its_leaves_are_arrays_with_names():
    tx = chain(clip_by_global_norm(1.0), adamw(jnp.array(0.1), eps=jnp.array(1e-8)))
    paths = jax.tree_util.tree_leaves_with_path(tx)
    names = [jax.tree_util.keystr(path) for path, _ in paths]
    assert names == [".args.1.eps", ".args.1.learning_rate"]


def test_the_order_of_patterns_survives():
    """JAX sorts the keys of a dict, but the first matching pattern wins."""
    parts = {"w": steepest.sgd(jnp.array(1.0)), "": steepest.sgd(jnp.array(2.0))}
    tx = jax.tree.map(lambda x: x, steepest.route(parts))
    g = {"w": jnp.ones(1), "v": jnp.ones(1)}
    u, _ = tx.update(g, tx.init(g))
    assert (u["w"][0], u["v"][0]) == (-1.0, -2.0)


def test_labels_of_two_types():
    tx = steepest.partition({1: steepest.sgd(1.0), "a": steepest.sgd(2.0)}, [1, "a"])
    assert jax.tree.map(lambda x: x, tx) == tx


def test_masks_stay_booleans():
    mask = {"w": jnp.array(True), "b": jnp.array(False)}
    tx = steepest.masked(steepest.scale(2.0), mask)
    g = {"w": jnp.ones(1), "b": jnp.ones(1)}
    step = jax.jit(lambda tx, g: tx.update(g, tx.init(g))[0])
    assert jax.tree.map(lambda x: x.tolist(), step(tx, g)) == {"w": [2.0], "b": [1.0]}


def test_an_unusual_number_warns_once():
    with pytest.warns(steepest.UnusualValueWarning):
        tx = steepest.sgd(jnp.array(0.1), momentum=1.5)
    g = jnp.ones(1)
    jax.jit(lambda tx, g: tx.update(g, tx.init(g)))(tx, g)


def test_a_pair_with_another_function_forgets_how_it_was_made():
    tx = adamw(1e-3)
    other = tx._replace(init=lambda params: "mine")
    assert other.init(None) == "mine"
    assert not hasattr(other, "call")
    assert other != tx


def test_a_wrong_keyword_is_named():
    with pytest.raises(TypeError, match="adamw: there is no argument `lr_rate`"):
        adamw(lr_rate=1e-3)
    with pytest.raises(TypeError, match="Did you mean `learning_rate`"):
        adamw(learning_rat=1e-3)
    with pytest.raises(TypeError, match="clip: there is no argument `delta`"):
        steepest.clip(delta=1.0)


def test_it_is_built_when_it_is_used(as_users_do):
    """JAX replaces leaves by arbitrary objects."""
    tx = jax.tree.unflatten(jax.tree.structure(adamw(jnp.array(0.1))), [object()])
    assert isinstance(tx.call, Call)
    with pytest.raises(TypeError, match="learning_rate is a object"):
        tx.init(jnp.ones(1))


@steepest.transformation
def _mine(learning_rate, max_norm=1.0):
    return chain(clip_by_global_norm(max_norm), steepest.sgd(learning_rate))


def test_a_function_of_the_user():
    tx = _mine(0.1)
    assert repr(tx) == "_mine(learning_rate=0.1, max_norm=1.0)"
    assert pickle.loads(pickle.dumps(tx)) == tx
    g = jnp.full((1,), 5.0)
    u, _ = tx.update(g, tx.init(g))
    assert u[0] == pytest.approx(-0.1)


def test_a_dict_that_changes_later_changes_nothing():
    parts = {".*": steepest.sgd(jnp.array(1.0))}
    tx = steepest.route(parts)
    parts[".*"] = steepest.sgd(jnp.array(2.0))
    again, g = jax.tree.map(lambda x: x, tx), jnp.ones(1)
    assert again.update(g, again.init(g))[0] == -1
