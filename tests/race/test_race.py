"""The whole race: participants, files, and a killed process."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest

from steepest.race import race, standings, Watch

from .small import LINE


class Told(Watch):
    """Records its calls, and stops after a number of evaluations."""

    def __init__(self, most=10**9):
        self.heard, self.most = [], most

    def begins(self, names, runs, steps):
        self.heard.append(("begins", list(names), runs, steps))

    def compiles(self, name):
        self.heard.append(("compiles", name))

    def evaluates(self, sweep):
        self.heard.append(("evaluates", sweep.name))

    def ends(self, sweep):
        self.heard.append(("ends", sweep.name, sweep.steps[-1]))

    def fails(self, name, why):
        self.heard.append(("fails", name, why))

    def stopped(self):
        return sum(what[0] == "evaluates" for what in self.heard) >= self.most


def _numbers(outcome):
    return {
        s.name: (s.steps, s.loss.tolist(), s.metric.tolist()) for s in outcome.sweeps
    }


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("race") / "line"
    told = Told()
    return race(LINE, seeds=2, folder=folder, watch=told), folder, told


def test_everyone_has_a_turn_and_the_watch_is_told(whole):
    outcome, _, told = whole
    assert [s.name for s in outcome.sweeps] == ["sgd", "adam"] and not outcome.missing
    assert told.heard[0] == ("begins", ["sgd", "adam"], 6, 12)
    assert told.heard[1] == ("compiles", "sgd")
    assert told.heard[-1] == ("ends", "adam", 12)
    assert outcome.sweeps[0].diverged[-1].all()  # at 1e30: shown, not dropped
    assert (outcome.problem, outcome.measure, outcome.target) == ("line", "loss", 0.5)


def test_finished_runs_are_not_repeated(whole):
    outcome, folder, _ = whole
    told = Told()
    again = race(LINE, folder=folder, resume=True, watch=told)
    assert [what[0] for what in told.heard] == ["begins", "ends", "ends"]
    assert repr(_numbers(again)) == repr(_numbers(outcome))  # NaN equals NaN
    assert [s.seconds for s in again.sweeps] == [s.seconds for s in outcome.sweeps]


def test_a_stopped_race_goes_on_to_the_same_end(whole, tmp_path):
    outcome, _, _ = whole
    part = race(LINE, seeds=2, folder=tmp_path, watch=Told(most=5))
    assert [(s.name, s.finished) for s in part.sweeps] == [("sgd", False)]
    assert part.missing == (("adam", "the race ended before its turn"),)
    result = race(LINE, folder=tmp_path, resume=True)
    assert repr(_numbers(result)) == repr(_numbers(outcome))


OTHER = {
    "`loss`": {"loss": lambda p, batch: 3 * LINE.loss(p, batch)},
    "`data`": {"data": LINE.data * 2},
    "`metric`": {"metric": lambda p, data: 3 * LINE.metric(p, data)},
    "`init`": {"init": lambda key: {**LINE.init(key), "b": jnp.array(3.0)}},
}


@pytest.mark.parametrize("part", OTHER)
def test_results_of_other_code_are_not_put_into_one_table(whole, part):
    """Neither next to a new row nor alone, and no file changes."""
    _, folder, _ = whole
    files = {p: p.read_bytes() for p in folder.rglob("*") if p.is_file()}
    changed = replace(LINE, **OTHER[part])
    for names in (["sgd", "adam", "lion"], None):
        with pytest.raises(ValueError, match=f"Changed since .* was written: {part}"):
            race(changed, names, folder=folder, resume=True)
    assert files == {p: p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def test_a_run_file_of_other_rates_is_not_taken_over(whole, tmp_path):
    """From a folder where everything else is the same."""
    _, folder, _ = whole
    race(LINE, ["sgd"], seeds=2, learning_rates=[0.1, 0.2, 0.3], folder=tmp_path / "a")
    shutil.copytree(folder, tmp_path / "b")
    shutil.copy(tmp_path / "a/runs/sgd.json", tmp_path / "b/runs/sgd.json")
    with pytest.raises(ValueError, match=r"b/runs/sgd\.json belongs to another race"):
        race(LINE, folder=tmp_path / "b", resume=True)


def test_a_new_optimizer_joins_the_same_race(whole, tmp_path):
    outcome, folder, _ = whole
    shutil.copytree(folder, tmp_path / "more")
    names = ["sgd", "adam", "lion"]
    result = race(LINE, names, folder=tmp_path / "more", resume=True)
    old = {key: repr(x) for key, x in _numbers(outcome).items()}
    new = {key: repr(x) for key, x in _numbers(result).items()}
    assert [*new] == names and old.items() <= new.items()


def test_optimizers_that_cannot_run_are_named():
    """A rule that is not a gradient has no loss for a line search."""
    local = replace(LINE, adjust=lambda params, batch: params)
    names = ["lbfgs", "lookahead(sgd)"]
    outcome = race(local, names, seeds=1, learning_rates=[0.1])
    assert [s.name for s in outcome.sweeps] == ["lookahead(sgd)"]
    ((name, why),) = outcome.missing
    assert name == "lbfgs" and "value" in why


@pytest.mark.parametrize("value, message", [(np.nan, "NaN"), (np.inf, "infinite")])
def test_a_loss_that_starts_as_nan_has_not_diverged(value, message):
    """No learning rate would help, so the error comes before all of them are tried."""
    wrong = replace(LINE, loss=lambda p, batch: value * np.float32(1) + 0 * p["b"])
    with pytest.raises(
        ValueError, match=f"^race: the loss .* 'line' is {message} at the"
    ):
        race(wrong, ["sgd"], seeds=2)


def test_time_is_shared_out():
    """Without time nobody runs; with a little, each gets at least one evaluation."""
    outcome = race(LINE, seeds=1, time_budget=1e-9)
    assert [name for name, _ in outcome.missing] == ["sgd", "adam"]


def test_a_schedule_stands_for_the_learning_rate():
    flat = race(LINE, ["sgd"], seeds=1, learning_rates=[0.1], schedule="0 * rate")
    loss = flat.sweeps[0].metric[0, 0]
    np.testing.assert_allclose(loss, loss[0])


def test_an_unknown_name_is_found_before_anything_runs(tmp_path):
    with pytest.raises(ValueError, match="adamw"):
        race(LINE, ["sgd", "adamww"], folder=tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_the_race_has_a_winner():
    """A short one on digits: better than guessing, at the known best rate."""
    rates = [1e-5, 1e-2]
    (row,) = standings(
        race("digits", ["adam"], learning_rates=rates, seeds=1, steps=60)
    )
    assert row.rate == 1e-2 and row.metric > 0.6


# The results of the optimizer HELD are never written: there is time to kill its race.
PROBLEM = """
import os, sys, time
import jax, jax.numpy as jnp
from steepest.race import Problem
jax.config.update("jax_enable_compilation_cache", False)

def wait(event, args):
    if event == "os.rename" and str(args[1]).endswith(f"/{os.environ['HELD']}.json"):
        time.sleep(600)

sys.addaudithook(wait)
valley = Problem(
    init=lambda key: jax.random.normal(key, (2,)),
    loss=lambda x, _: (1 - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2,
    steps=40_000,
    learning_rates=(1e-3, 1e-2, 1e-1),
    optimizers=("sgd", "adam", "lion"),
)
"""


def _command(folder, *more, held="none"):
    options = ["--out", folder, "--json", "-", *more]
    command = [sys.executable, "-m", "steepest.race", "race", "valley:valley", *options]
    return subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=folder.parent,
        env={**os.environ, "HELD": held},
    )


def _results(process):
    out, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors
    result = json.loads(out)
    clocks = "step_seconds", "step_spread", "seconds_to_target", "seconds_spread"
    del result["recommendation"]  # times decide between equals
    for row in result["standings"]:
        for clock in clocks:
            del row[clock]
    for row in result["sweeps"]:
        del row["seconds"], row["compiling"]
    return result


def test_a_killed_race_resumes_to_the_same_table(tmp_path):
    """`kill -9` in the middle of the second optimizer, and again in the third."""
    (tmp_path / "valley.py").write_text(PROBLEM)
    whole = _command(tmp_path / "whole")
    killed = tmp_path / "killed"
    for name in ("adam", "lion"):
        resumed = ["--resume"] if killed.exists() else []
        process = _command(killed, *resumed, held=name)
        while not (killed / "runs" / f"{name}.begun").exists():
            assert process.poll() is None, process.communicate()
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        assert process.returncode == -signal.SIGKILL
        assert (killed / "runs" / "sgd.json").exists()
        assert not (killed / "runs" / f"{name}.json").exists()
    expected = _results(whole)
    assert _results(_command(killed, "--resume")) == expected
    assert [len(row["steps"]) for row in expected["sweeps"]] == [41, 41, 41]
