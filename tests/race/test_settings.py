"""Options: given, else from the previous race, else the problem's defaults."""

import jax.numpy as jnp
import numpy as np
import pytest

from steepest.race._settings import settings_of

from .small import LINE


def _of(before=None, **given):
    return settings_of("line", LINE, given, before or {})


def test_the_problem_has_the_defaults():
    result = _of(steps=None)
    assert result.optimizers == ("sgd", "adam")
    assert result.steps == 12 and result.target == 0.5
    assert result.seeds == (0, 1, 2) and result.time_budget is None


def test_rates_are_in_their_order():
    assert _of(learning_rates=[1, 0.1]).learning_rates == (0.1, 1.0)


def test_spaces_in_quotes_are_kept():
    """They may be part of a pattern."""
    given = ['muon(routes={"a  b":   "adam"})']
    assert _of(optimizers=given).optimizers == ('muon(routes={"a  b": "adam"})',)


def test_given_options_come_first():
    result = _of(steps=5, seeds=[4, 2], learning_rates=[1], optimizers=["lion"])
    assert result.steps == 5 and result.seeds == (4, 2)
    assert result.learning_rates == (1.0,) and result.optimizers == ("lion",)


BEFORE = {
    "problem": "line",
    "optimizers": ["adam"],
    "learning_rates": [0.1],
    "seeds": [3],
    "steps": 7,
    "target": None,
    "schedule": None,
    "time_budget": None,
}


def test_a_resumed_race_keeps_its_settings():
    result = _of(BEFORE)
    assert (result.optimizers, result.seeds, result.steps) == (("adam",), (3,), 7)


def test_more_optimizers_may_join():
    result = _of(BEFORE, optimizers=["adam", "lion"], target=0.1, time_budget=60)
    assert result.optimizers == ("adam", "lion") and result.time_budget == 60.0


@pytest.mark.parametrize(
    "given",
    [{"steps": 8}, {"seeds": 2}, {"learning_rates": [0.2]}, {"schedule": "rate"}],
)
def test_what_makes_a_run_may_not_change(given):
    (name,) = given
    with pytest.raises(ValueError, match=f"race: `{name}` is .* the race to resume"):
        _of(BEFORE, **given)


@pytest.mark.parametrize(
    "given, message",
    {
        "no steps": ({"steps": 0}, "`steps` is 0, expected a whole number"),
        "half a step": ({"steps": 1.5}, "`steps` is 1.5"),
        "no seeds": ({"seeds": []}, r"`seeds` is \[\]"),
        "seed below": ({"seeds": [-1]}, r"`seeds` is \[-1\]"),
        "half a seed": ({"seeds": 1.5}, "`seeds` is 1.5, expected a count, or a list"),
        "all seeds": ({"seeds": 10**9}, "more than 10000 `seeds`"),
        "seed twice": ({"seeds": [1, 1]}, "`seeds` has 1 twice"),
        "rate zero": ({"learning_rates": [0.0]}, "of `learning_rates` is 0.0"),
        "rate nan": ({"learning_rates": [float("nan")]}, "of `learning_rates` is nan"),
        "no rates": ({"learning_rates": []}, "`learning_rates` is empty"),
        "grid": ({"learning_rates": "1e-3:1:4"}, "for the command line .*geomspace"),
        "rate twice": ({"learning_rates": [1e-1, 0.1]}, "has 0.1 twice"),
        "nobody": ({"optimizers": []}, r"`optimizers` is \[\]"),
        "a number": ({"optimizers": [3]}, r"`optimizers` is \[3\]"),
        "twice": ({"optimizers": ["sgd", " sgd"]}, "`optimizers` has sgd twice"),
        "no time": ({"time_budget": -1}, "`time_budget` is -1"),
        "target": ({"target": "high"}, "`target` is 'high'"),
    }.values(),
)
def test_bad_settings_are_refused(given, message):
    with pytest.raises(ValueError, match=message):
        _of(**given)


def test_numbers_of_numpy_are_numbers():
    settings = _of(steps=np.int64(5), target=np.float32(0.5), time_budget=np.int32(9))
    assert (settings.steps, settings.target, settings.time_budget) == (5, 0.5, 9.0)
    assert type(settings.steps) is int


@pytest.mark.parametrize("array", [np.asarray, jnp.asarray])
def test_arrays_are_lists(array):
    three, rates = array([0, 1, 7]), array([0.25, 0.5])
    for seeds in (three, list(three)):
        settings = _of(seeds=seeds, learning_rates=rates)
        assert settings.seeds == (0, 1, 7) and settings.learning_rates == (0.25, 0.5)
        assert {*map(type, (*settings.seeds, *settings.learning_rates))} == {int, float}
    assert _of(seeds=array(3)).seeds == (0, 1, 2)
    assert _of(learning_rates=list(rates)).learning_rates == (0.25, 0.5)
