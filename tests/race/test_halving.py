"""Hopeless learning rates are stopped early, and never count as results."""

import json
from dataclasses import replace

import jax
import numpy as np
import pytest

from steepest.race import race, results, standings, Sweep, Watch
from steepest.race._breadth import Breadth, breadth
from steepest.race._fingerprint import race_fingerprint
from steepest.race._halving import halving_steps, survivors
from steepest.race._model import Model
from steepest.race._plan import RunPlan
from steepest.race._program import Program
from steepest.race._settings import settings_of
from steepest.race._sweep import evaluations
from steepest.race.entrants import entrant
from steepest.race.report import columns, notes, recommendation, verdict
from steepest.race.report._advice import breadth_text
from steepest.race.report._again import command
from steepest.race.report._loggers import _runs
from steepest.race.report._records import as_csv, curve_records, standing_records

from .outcomes import halved, outcome, page_of, stopped, sweep
from .small import LINE

NAN = float("nan")
RATES = (1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1e30)
OPTIONS = {"learning_rates": RATES, "seeds": 2, "steps": 16, "halving": True}


def _after(*means, gone=()):
    """Runs after their first evaluation, with these metrics: the higher the better."""
    ends = np.array(means, float)[:, None]
    metric = np.stack([0 * np.nan_to_num(ends), ends], axis=-1)
    return Sweep(
        name="a",
        rates=tuple(10.0**k for k in range(len(means))),
        seeds=(0,),
        steps=(0, 5),
        loss=metric,
        metric=metric,
        seconds=(0.0, 1.0),
        compiling=1.0,
        bytes_per_param=8.0,
        parameters=5,
        planned=20,
        stopped=tuple(0 if k in gone else None for k in range(len(means))),
        shared=(0, len(means)),
    )


@pytest.mark.parametrize(
    "means, kept",
    [
        ([1, 2, 3, 10, 4, 2], (2, 3, 4)),  # the better half
        ([1, 5, 6, 1, 10, 1], (1, 2, 3, 4, 5)),  # and the neighbours of the best
        ([9, 1, 8, 8, 8, 10], (0, 2, 3, 4, 5)),  # and those that are almost as good
        ([1, 2, NAN, 10, NAN, NAN], (0, 1, 3)),  # a run diverged
        ([NAN, NAN, NAN], (0, 1, 2)),  # nothing to compare
        ([-1, -2, -3, -4], (0, 1, 2, 3)),  # no progress yet
        ([10, 1, 1, 1], (0, 1)),  # the best is the lowest one
        ([3], (0,)),
    ],
    ids=str,
)
def test_who_goes_on(means, kept):
    assert survivors(_after(*means), "higher") == kept
    if min(means) >= 0:  # zeros at the start have no logarithm, so signs do not matter
        assert survivors(_after(*(-x for x in means)), "lower") == kept


def test_a_stopped_rate_stays_stopped():
    assert survivors(_after(1, 2, 10, NAN, gone=(3,)), "higher") == (1, 2)


@pytest.mark.parametrize("steps", [1, 2, 3, 8, 40, 250, 1000])
def test_rates_are_stopped_at_an_evaluation(steps):
    """After a quarter and a half of the steps, and never at the start or the end."""
    times = RunPlan((1.0,), (0,), steps).evaluation_steps
    halves = halving_steps(times)
    assert halves <= {*times[1:-1]}
    if steps >= 8:
        low, high = sorted(halves)
        assert 0.25 <= low / steps <= 0.3 and 0.5 <= high / steps <= 0.55


class _Stopping(Watch):
    """Stops after a number of evaluations."""

    def __init__(self, most):
        self.left = most

    def evaluates(self, sweep):
        self.left -= 1

    def stopped(self):
        return self.left <= 0


@pytest.fixture(scope="module")
def whole():
    return race(LINE, ["sgd"], **{**OPTIONS, "halving": False})


@pytest.fixture(scope="module")
def half():
    return race(LINE, ["sgd"], **OPTIONS)


def test_the_others_go_on_as_without_halving(whole, half):
    (every,), (some,) = whole.sweeps, half.sweeps
    assert half.halving and some.stopped[0] == 4 and some.stopped[-1] == 4
    assert 2 <= len(some.running) <= 4 and some.finished
    kept = list(some.running)
    np.testing.assert_allclose(some.metric[kept], every.metric[kept], rtol=1e-5)
    np.testing.assert_allclose(some.loss[kept], every.loss[kept], rtol=1e-5)
    for k, step in enumerate(some.stopped):
        at = some.last[k]
        assert some.steps[at] == (16 if step is None else step)
        np.testing.assert_allclose(
            some.metric[k, :, : at + 1], every.metric[k, :, : at + 1], rtol=1e-5
        )
        assert np.isnan(some.metric[k, :, at + 1 :]).all()
    assert some.diverged[-1].all() and not some.diverged[:-1].any()
    a, b = standings(whole)[0], standings(half)[0]
    assert (a.rate, a.metric) == (b.rate, pytest.approx(b.metric, rel=1e-5))


def test_nothing_is_compiled_again(monkeypatch):
    """Fewer runs take fewer turns of the same program."""
    monkeypatch.setattr(jax, "local_devices", lambda: jax.devices()[:2])
    heard = []
    jax.monitoring.register_event_duration_secs_listener(
        lambda event, _, **rest: heard.append(event)
    )
    plan = RunPlan((1e-4, 1e-3, 1e-2, 1e-1, 1e30), (0, 1), 16, halving=True)
    program = Program(Model(LINE, entrant("rmsprop", steps=16)), plan)
    result = [e.sweep for e in evaluations(program)]
    assert len([e for e in heard if e.endswith("compile_duration")]) == 1
    shared = result[-1].shared
    assert shared[1] == 12 and shared[-1] < 12, "five rates of two seeds, in pairs"
    assert result[-1].at_once is None


@pytest.mark.parametrize("most", [2, 4, 6, 9])
def test_a_race_resumes_to_the_same_end(half, tmp_path, most):
    """Interrupted before, at and after the steps at which rates are stopped."""
    part = race(LINE, ["sgd"], **OPTIONS, folder=tmp_path, watch=_Stopping(most))
    assert part.sweeps[0].steps[-1] == most
    result = race(LINE, folder=tmp_path, resume=True)
    assert result.halving
    (a,), (b,) = half.sweeps, result.sweeps
    assert (a.stopped, a.shared, a.steps) == (b.stopped, b.shared, b.steps)
    np.testing.assert_array_equal(a.loss, b.loss)
    np.testing.assert_array_equal(a.metric, b.metric)
    with pytest.raises(ValueError, match="`halving` is False, but it is True in the"):
        race(LINE, folder=tmp_path, resume=True, halving=False)


def test_a_folder_without_halving_does_not_get_it(tmp_path):
    race(LINE, ["sgd"], seeds=1, learning_rates=[0.1], steps=4, folder=tmp_path)
    with pytest.raises(ValueError, match="`halving` is True, but it is False in the"):
        race(LINE, folder=tmp_path, resume=True, halving=True)


def test_halving_is_part_of_the_fingerprint():
    """With its rule and the direction of the metric, on which it depends."""
    plain, halving = (
        race_fingerprint(LINE, settings_of("line", LINE, {"halving": x}, {}))
        for x in (False, True)
    )
    assert "halving" not in plain and halving["halving"] == "1/4, 1/2, 0.2, lower"
    with pytest.raises(ValueError, match="`halving` is 3, expected True or False"):
        settings_of("line", LINE, {"halving": 3}, {})


def test_at_once_limits_the_runs_of_a_race_with_halving(half):
    few = race(LINE, ["sgd"], **OPTIONS, at_once=1)
    assert few.sweeps[0].at_once == 1
    kept = list(half.sweeps[0].running)
    assert few.sweeps[0].stopped == half.sweeps[0].stopped
    np.testing.assert_allclose(
        few.sweeps[0].metric[kept], half.sweeps[0].metric[kept], rtol=1e-5
    )


def test_a_stopped_rate_has_no_final_metric():
    """Even if it was the best one when it was stopped."""
    full = sweep("adamw", best=1e-2, limit=1.0)
    best = full.rates.index(1e-2)
    part = stopped(full, best)
    row = standings(outcome(part))[0]
    assert standings(outcome(full))[0].place == row.sweep.rates.index(1e-2)
    assert row.place != best and row.stopped == 1 and row.beside == [full.rates[best]]
    assert np.isnan(part.ends[best]).all() and np.isfinite(part.latest[best]).all()
    assert not part.diverged[best].any()


def test_stopped_rates_are_not_good_ones():
    """The range of good rates ends before them, and is marked."""
    full = sweep("adamw", best=3e-3, noise=0.0, limit=1.0)
    place = full.rates.index(3e-3)
    wide = breadth(full, place, "higher")
    part = stopped(full, place - 1, place + 1)
    narrow = breadth(part, place, "higher")
    assert wide.low < 3e-3 < wide.high
    assert narrow == Breadth(3e-3, 3e-3, open=False, cut=True)
    assert not wide.cut and breadth_text(narrow).startswith("≥ ")


def test_time_is_shared_by_the_runs_that_are_left():
    full = sweep("adamw")
    part = stopped(full, 0, 1, 7)
    assert part.seconds[-1] < full.seconds[-1]
    np.testing.assert_allclose(part.run_seconds, full.run_seconds)
    assert part.step_seconds == pytest.approx(full.step_seconds)


def test_the_table_shows_what_was_stopped():
    headers, rows = columns(halved())
    table = {row[0]: dict(zip(headers, row, strict=True)) for row in rows}
    assert table["adamw"]["stopped rates"] == "5 of 8"
    assert table["lost"]["accuracy"] == "diverged"
    told = notes(halved())
    assert (
        "adamw: halving stopped the learning rates 1e-4, 3e-4, 3e-2, 0.1 and 0.3 at "
        "step 250." in told
    )
    alone = notes(outcome(stopped(sweep("adamw"), 0)))
    assert "adamw: halving stopped the learning rate 1e-4 at step 250." in alone
    near = "3e-2, next to the best rate, was stopped early and may be better."
    assert f"muon: {near}" in told
    advice = recommendation(halved())
    assert "forgiving" not in str(advice), "how forgiving muon is, is not known"
    assert near in advice.first.why and advice.first.row.name == "muon"
    lost = replace(halved(), sweeps=halved().sweeps[3:4])
    assert verdict(lost).endswith("diverged at every learning rate left by halving.")
    assert "stopped rates" not in columns(outcome(sweep("adamw")))[0]


def test_the_page_marks_what_was_stopped():
    text = page_of("halving")
    assert '<td class="gone">stopped at step 250</td>' in text
    assert "stopped at step 250, diverged" in text and "no result" in text
    assert "count as not good in the range of good rates" in text
    assert command(halved()).endswith(" --halving")


def test_the_numbers_mark_what_was_stopped():
    content = json.loads(results(halved()))
    assert content["halving"] and content["sweeps"][0]["stopped"][:3] == [
        250,
        250,
        None,
    ]
    assert content["sweeps"][0]["metric"][0][0][11] is None
    rows = standing_records(halved())
    assert {row["name"]: row["stopped"] for row in rows}["lion"] == 4
    assert ",stopped," in as_csv(rows).splitlines()[0]
    curves = [r for r in curve_records(halved()) if r["optimizer"] == "adamw"]
    first = [r for r in curves if r["learning_rate"] == 1e-4]
    assert {r["stopped_at"] for r in first} == {250}
    assert max(r["step"] for r in first) == 250 and len(first) == 33
    assert max(r["step"] for r in curves) == 1000


def test_loggers_get_no_final_metric_of_what_was_stopped():
    runs = list(_runs(halved()))[:24]
    gone = [run for run in runs if "stopped_at" in run.final]
    assert len(gone) == 15 and all(run.final["stopped_at"] == 250 for run in gone)
    assert not any("final_metric" in run.final for run in gone)
    assert all(run.points[-1][0] == 250 for run in gone)
    assert all("final_metric" in run.final for run in runs if run not in gone)
