"""Inspecting what a transformation is made of."""

import jax.numpy as jnp

import steepest
from steepest.engine import handlers, resharded, shown, wrapper_info

P = {"w": jnp.ones(2), "b": jnp.ones(2)}


def _shown(tx):
    return [(one.groups, one.name, float(one.value)) for one in shown(tx, tx.init(P))]


def test_learning_rate_and_decay_are_shown():
    tx = steepest.adamw(0.1, weight_decay=0.5)
    assert _shown(tx) == [((), "weight_decay", 0.5), ((), "learning_rate", 0.1)]


def test_of_a_schedule_the_value_of_the_last_step():
    tx = steepest.sgd(lambda t: 10 + t)
    state = tx.init(P)
    assert [float(one.value) for one in shown(tx, state)] == [10]
    for _ in range(3):
        _, state = tx.update(P, state)
    assert [float(one.value) for one in shown(tx, state)] == [12]


def test_groups_have_their_labels_and_wrappers_are_looked_into():
    groups = {"slow": steepest.sgd(0.1), "fast": steepest.sgd(1.0)}
    tx = steepest.guard(steepest.partition(groups, {"w": "slow", "b": "fast"}))
    rates = {groups: round(x, 3) for groups, _, x in _shown(tx)}
    assert rates == {("slow",): 0.1, ("fast",): 1.0}


def test_which_transformation_handles_a_leaf():
    inner = steepest.masked(steepest.clip(1.0), {"w": True, "b": False})
    tx = steepest.chain(inner, steepest.flatten(steepest.sgd(0.1)))
    rate = "flatten(scale_by_learning_rate)"
    assert handlers(tx, P) == [[rate], ["clip", rate]]


def test_a_wrapper_says_what_it_is_around():
    inner = steepest.sgd(0.1)
    assert wrapper_info(steepest.flatten(inner)).tx == inner
    assert wrapper_info(inner) is None
    assert wrapper_info(steepest.MultiSteps(inner, 2).gradient_transformation())


def test_which_leaves_are_resharded_inside_a_wrapper():
    p = {"down": jnp.ones((2, 3)), "q": jnp.ones((5, 5)), "up": jnp.ones((3, 2))}
    tx = steepest.guard(steepest.muon(0.1, reshard="data"))
    two = "over data: one of 2"
    alone = "by the compiler: no other matrix has its shape"
    assert resharded(tx, p) == [two, alone, two]
    assert resharded(steepest.muon(0.1), p) == ["", "", ""]
