"""How a plan is divided: rules joined, other transformations separate."""

import jax.numpy as jnp
import pytest

import steepest
from steepest.engine import plan_of
from steepest.engine.run._segments import Detour, Link, Segment, segments

P = {"w": jnp.ones((2, 2)), "b": jnp.ones(2)}


def _cut(*txs):
    return segments(plan_of("test", "tx", steepest.chain(*txs)).links)


def _opaque():
    return steepest.stateless(lambda updates, params: updates)


def test_rules_share_a_segment_and_others_stand_alone():
    cut = _cut(steepest.clip(1.0), steepest.adam(0.1), _opaque(), steepest.scale(2.0))
    assert [type(x) for x in cut] == [Segment, Detour, Segment]
    assert [x.size for x in cut] == [3, 1, 1]


def test_a_measure_begins_a_pass_and_a_matrix_formula_ends_it():
    (cut,) = _cut(steepest.scale(2.0), steepest.clip_by_global_norm(1.0))
    assert [len(one.rules) for one in cut.passes] == [1, 1]
    (cut,) = _cut(steepest.scale_by_polar(), steepest.scale(2.0))
    assert [len(one.rules) for one in cut.passes] == [1, 1]


def test_what_is_final_is_applied_again():
    frozen = steepest.masked(steepest.freeze(True), {"w": True, "b": False})
    (cut,) = _cut(frozen, steepest.add_decayed_weights(0.1))
    assert [link.name for link in cut.again] == ["freeze"]
    tx = steepest.chain(frozen, steepest.add_decayed_weights(0.1))
    u, _ = tx.update(P, tx.init(P), P)
    assert not u["w"].any() and u["b"].all()


def test_a_link_has_the_name_of_what_made_it():
    assert Link(steepest.flatten(steepest.sgd(0.1))).name == "flatten"
    pair = steepest.GradientTransformationExtraArgs(lambda p: (), _opaque().update)
    assert Link(pair).name


def test_params_that_do_not_fit_are_an_error_only_if_they_are_needed():
    tx, other = steepest.chain(steepest.adam(0.1), _opaque()), {"w": jnp.ones(2)}
    tx.update(P, tx.init(P), other)
    tx = steepest.chain(steepest.adamw(0.1), _opaque())
    with pytest.raises(ValueError, match=r"^adamw: "):
        tx.update(P, tx.init(P), other)
