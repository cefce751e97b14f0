"""Optimizers that are evaluated at averages of their params."""

import jax.numpy as jnp
import numpy as np
import pytest

import steepest
from steepest import contrib
from steepest.race import recommendation
from steepest.race._averages import begun, evaluated_params, use_of
from steepest.race.entrants import entrant

from .outcomes import outcome, sweep

PARAMS = {"a": jnp.ones(3), "b": jnp.full((2, 2), 2.0)}
LOOKAHEAD, FREE = "LookaheadParams.init_synced(params)", "schedule_free_eval_params"


def _tx(text):
    return entrant(text, steps=9).make(1e-2)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("lookahead(adamw)", LOOKAHEAD),
        ("schedule_free_adamw", FREE),
        ("chain(clip_by_global_norm(1.0), schedule_free_sgd)", FREE),
        ("chain(clip_by_global_norm(1.0), lookahead(sgd))", LOOKAHEAD),
        ("lookahead(schedule_free_sgd)", LOOKAHEAD),
        ("MultiSteps(contrib.schedule_free(sgd(0.1), 0.1), 2)", FREE),
    ],
)
def test_the_code_has_a_comment_if_the_params_are_not_evaluated(text, says):
    assert says in use_of(_tx(text))
    first = recommendation(outcome(sweep(text))).first
    code, *comments = first.line.splitlines()
    assert code == f"tx = {first.code}" and says in "\n".join(comments)
    assert all(line.startswith("# ") for line in comments)
    text = str(recommendation(outcome(sweep(text))))
    assert all(f"\n    {line}" in text for line in [code, *comments])


@pytest.mark.parametrize("text", ["adamw", "muon", "sam(sgd)", "lbfgs"])
def test_most_optimizers_need_no_comment(text):
    assert use_of(_tx(text)) == ""
    assert "\n" not in recommendation(outcome(sweep(text))).first.line


def test_a_program_that_follows_the_comment_for_lookahead():
    tx = _tx("lookahead(sgd(0.1), 2, 0.5)")
    params, state = begun(tx, PARAMS)
    by_hand = steepest.LookaheadParams.init_synced(PARAMS)
    np.testing.assert_array_equal(params.fast["a"], by_hand.fast["a"])
    updates, state = tx.update(PARAMS, state, params)
    params = steepest.apply_updates(params, updates)
    np.testing.assert_array_equal(
        evaluated_params(params, state)["a"], params.slow["a"]
    )
    assert (params.slow["a"] != params.fast["a"]).all()


def test_every_schedule_free_part_is_evaluated_at_its_average():
    """Two of them, each for one leaf."""
    inner = ["contrib.schedule_free(sgd(0.1), 0.1, b1=0.5)"] * 2
    text = f"partition({{'x': {inner[0]}, 'y': {inner[1]}}}, {{'a': 'x', 'b': 'y'}})"
    tx = _tx(text)
    params, state = begun(tx, PARAMS)
    for _ in range(3):
        updates, state = tx.update(PARAMS, state, params)
        params = steepest.apply_updates(params, updates)
    result = evaluated_params(params, state)
    expected = contrib.schedule_free_eval_params(state, params)
    for name in PARAMS:
        np.testing.assert_array_equal(result[name], expected[name])
        assert (result[name] != params[name]).all()


def test_an_optimizer_for_other_params_has_no_comment():
    text = "partition({'x': schedule_free_sgd(0.1)}, {'a': 'x', 'b': 'x'})"
    assert use_of(_tx(text)) == ""
    assert recommendation(outcome(sweep(text))).first.code is not None
