"""Steps that run only under a condition."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steepest

from ..unusual import ODD

P = {"w": jnp.array([1.0, 2.0]), "n": None}
BAD = {"w": jnp.array([jnp.nan, 1.0]), "n": None}


def test_a_bad_gradient_changes_nothing():
    tx = steepest.apply_if_finite(steepest.adam(0.1), 2)
    _, state = tx.update(P, tx.init(P), P)
    u, new = tx.update(BAD, state, P)
    assert u["w"].tolist() == [0, 0] and u["n"] is None
    jax.tree.map(np.testing.assert_array_equal, state.inner_state, new.inner_state)
    assert [int(new.notfinite_count), int(new.total_notfinite)] == [1, 1]
    assert not new.last_finite


def test_after_too_many_in_a_row_they_are_applied():
    tx = steepest.apply_if_finite(steepest.sgd(1.0), 2)
    state, seen = tx.init(P), []
    for g in (BAD, BAD, BAD, P, BAD):
        u, state = tx.update(g, state)
        seen.append((bool(np.isnan(u["w"][0])), int(state.notfinite_count)))
    assert seen == [(False, 1), (False, 2), (True, 3), (False, 0), (False, 1)]
    assert int(state.total_notfinite) == 4


def test_the_count_restarts_after_a_finite_gradient():
    """So the next series of bad gradients gets the same tolerance as the first."""
    tx = steepest.apply_if_finite(steepest.sgd(1.0), 2)
    state, held, counts = tx.init(P), [], []
    for g in (BAD, BAD, P, BAD, BAD, BAD, P, BAD):
        u, state = tx.update(g, state)
        held.append(not np.any(u["w"]))
        counts.append(int(state.notfinite_count))
    assert counts == [1, 2, 0, 1, 2, 3, 0, 1]
    assert held == [True, True, False, True, True, False, False, True]


def test_nothing_is_copied():
    """Every array is updated in place, as without the condition."""
    leaf = jnp.ones((256, 256))
    p, tx = [leaf, leaf + 1], steepest.apply_if_finite(steepest.adam(0.1), 2)
    compiled = steepest.make_step(tx).lower(p, tx.init(p), p).compile()
    assert not re.findall(r"= \w+\[256,256\]\S* copy\(", compiled.as_text())
    assert compiled.memory_analysis().temp_size_in_bytes < leaf.nbytes


def test_it_checks_the_gradient_not_the_update():
    tx = steepest.apply_if_finite(steepest.scale(jnp.inf), 2)
    u, _ = tx.update(P, tx.init(P))
    assert np.isinf(u["w"]).all()


def test_integers_are_finite_and_empty_trees_too():
    tx = steepest.apply_if_finite(steepest.identity(), 2)
    u, state = tx.update({"i": jnp.array([1, 2])}, tx.init({}))
    assert u["i"].tolist() == [1, 2] and state.last_finite
    assert tx.update({}, tx.init({}))[1].last_finite


@pytest.mark.parametrize("forward", [False, True])
def test_the_condition_sees_the_count_and_extra_arguments(forward):
    seen = []

    def condition(step, **extra):
        seen.append(sorted(extra))
        return step % 2 == 1

    for maker, otherwise in (
        (steepest.conditionally_mask, [0, 0]),
        (steepest.conditionally_transform, [1, 2]),
    ):
        tx = maker(steepest.trace(0.9), condition, forward_extra_args=forward)
        state, rows = tx.init(P), []
        for _ in range(4):
            u, state = tx.update(P, state, P, value=1.0)
            rows.append(u["w"].tolist())
        assert rows[0] == rows[2] == otherwise
        np.testing.assert_allclose(rows[3], [1.9, 3.8], 1e-6)
        assert int(state.step) == 4
    assert all(x == (["value"] if forward else []) for x in seen)


def test_the_condition_may_be_a_python_boolean():
    tx = steepest.conditionally_mask(steepest.sgd(1.0), lambda step: False)
    assert tx.update(P, tx.init(P))[0]["w"].tolist() == [0, 0]


def test_functions_may_be_passed_on():
    """A loss for a line search cannot be traced: the step runs uncompiled."""

    def update(updates, state, params=None, *, value_fn, **extra):
        return jax.tree.map(lambda u: u * value_fn(2.0), updates), state

    inner = steepest.GradientTransformationExtraArgs(steepest.init_empty_state, update)
    tx = steepest.apply_if_finite(inner, 2)
    u, _ = tx.update(P, tx.init(P), P, value_fn=lambda x: x**2)
    assert u["w"].tolist() == [4, 8]


@pytest.mark.parametrize(
    "make",
    [
        lambda x: steepest.apply_if_finite(x, 1),
        lambda x: steepest.conditionally_mask(x, bool),
        lambda x: steepest.conditionally_transform(x, bool),
        lambda x: steepest.flatten(x),
        lambda x: steepest.guard(x),
        lambda x: steepest.MultiSteps(x, 2),
    ],
    ids=["apply_if_finite", "mask", "transform", "flatten", "guard", "MultiSteps"],
)
def test_what_is_wrapped_must_be_a_transformation(make, as_users_do):
    with pytest.raises(TypeError, match="a gradient transformation"):
        make(steepest.adam)


@pytest.mark.parametrize("name", ["conditionally_mask", "conditionally_transform"])
def test_wrong_conditions_are_errors(name, as_users_do):
    make = getattr(steepest, name)
    with pytest.raises(
        TypeError, match=f"{name}: should_transform_fn is a bool, expected"
    ):
        make(steepest.sgd(1.0), True)
    with pytest.raises(
        TypeError, match=f"{name}: forward_extra_args is None, expected"
    ):
        make(steepest.sgd(1.0), bool, None)
    for answer, says in [(None, "None"), (np.ones(2), r"an array of shape \(2,\)")]:
        tx = make(steepest.sgd(1.0), lambda step, answer=answer: answer)
        with pytest.raises(ValueError, match=f"{name}: .* one boolean .* got {says}"):
            tx.update(P, tx.init(P))
    with pytest.raises(TypeError, match=f"{name}: the state is a tuple"):
        tx.update(P, (), P)


def test_wrong_calls_of_apply_if_finite_are_errors(as_users_do):
    with pytest.raises(ODD, match="max_consecutive_errors is -1,"):
        steepest.apply_if_finite(steepest.sgd(1.0), -1)
    tx = steepest.apply_if_finite(steepest.sgd(1.0), float("inf"))
    with pytest.raises(TypeError, match="apply_if_finite: the state is a tuple"):
        tx.update(P, (), P)
