"""The progress display of a race, and how to stop it."""

import io
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace

import pytest
from rich.console import Console

from steepest.race import Problem
from steepest.race.terminal._progress import Bars, Quiet
from steepest.race.terminal._stop import Stop

from .outcomes import sweep

NAMES = ["adamw", "[bold]lion[/]", "muon"]
PROBLEM = Problem(
    init=lambda key: key,
    loss=lambda params, batch: 0.0,
    name="digits",
    measure="accuracy",
    better="higher",
)


def _bars(**how):
    console = Console(
        file=io.StringIO(), width=150, force_terminal=True, color_system=None
    )
    bars = Bars(Stop(), how.pop("problem", PROBLEM), console, **how)
    bars.begins(NAMES, 24, 1000)
    return bars


def _lines(bars):
    console = Console(file=io.StringIO(), width=150, color_system=None)
    console.print(bars.progress.get_renderable())
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


def _shares(bars):
    """How full each bar is; the whole race comes first."""
    return [task.completed / task.total for task in bars.progress.tasks]


def test_there_is_a_bar_for_the_race_and_for_each_optimizer():
    lines = _lines(_bars())
    assert [line.split()[0] for line in lines] == ["digits", *NAMES]
    assert lines[1].endswith("24 runs of 1,000 steps")


def test_bars_move_with_the_steps():
    bars = _bars()
    bars.compiles("adamw")
    assert _lines(bars)[1].endswith("compiling") and not any(_shares(bars))
    bars.evaluates(sweep("adamw", done=0.5, times=40))
    assert _shares(bars) == pytest.approx([1 / 6, 1 / 2, 0, 0], abs=0.02)
    assert "of 1,000 steps, accuracy 0.98" in _lines(bars)[1]
    assert _lines(bars)[1].endswith("at 3e-3")
    bars.ends(sweep("adamw"))
    assert _shares(bars) == pytest.approx([1 / 3, 1, 0, 0])
    assert "steps" not in _lines(bars)[1]


def test_an_optimizer_that_is_over_is_not_waited_for():
    bars = _bars()
    bars.ends(sweep("adamw", done=0.5))
    bars.fails("muon", "TypeError: no\nmore")
    assert _shares(bars) == pytest.approx([2 / 3, 1 / 2, 0, 0], abs=0.03)
    assert _lines(bars)[3].endswith("TypeError: no")


def test_the_best_one_is_named_whatever_best_means():
    for better, best in (("higher", "muon"), ("lower", "adamw")):
        bars = _bars(problem=replace(PROBLEM, better=better))
        bars.evaluates(sweep("adamw", skill=0.9, rates=(1e-3,)))
        bars.evaluates(sweep("muon", skill=0.95, rates=(1e-3,)))
        assert _lines(bars)[0].endswith(f"best {best}")


def test_a_race_that_diverged_is_shown():
    bars = _bars()
    bars.evaluates(sweep("adamw", limit=1e-9))
    assert _lines(bars)[1].endswith("diverged")


def test_time_left_is_what_the_rest_takes(monkeypatch):
    now = 100.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    bars, hurried = _bars(), _bars(budget=50.0)
    assert "left" not in _lines(bars)[0] and "0:50 left" in _lines(hurried)[0]
    for watch in (bars, hurried):
        watch.ends(sweep("adamw"))  # was on disk: its time is unknown
        watch.compiles("muon")
        watch.evaluates(sweep("muon", times=2, done=1.0))
    now = 130.0
    assert "0:30, 0:30 left" in _lines(bars)[0]
    assert "0:30, 0:20 left" in _lines(hurried)[0]


def _until(happened):
    """A thread handles signals, and may need a moment."""
    for _ in range(1000):
        if happened():
            return
        time.sleep(0.01)
    raise AssertionError("nothing happened")


@pytest.mark.parametrize(
    "number", [signal.SIGINT, signal.SIGTERM], ids=lambda n: n.name
)
def test_a_signal_asks_for_an_end(number, capsys):
    before = signal.getsignal(number)
    with Stop() as stop:
        watch = Quiet(stop)
        assert not watch.stopped()
        os.kill(os.getpid(), number)
        _until(watch.stopped)
    assert signal.getsignal(number) is before
    assert "again quits at once" in capsys.readouterr().err


def test_a_second_signal_ends_at_once_whatever_is_computed():
    code = "from steepest.race.terminal._stop import Stop; import threading\n"
    code += "with Stop(): print('ready', flush=True); threading.Event().wait(600)"
    child = subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with child:
        assert child.stdout.readline() == "ready\n"
        child.send_signal(signal.SIGINT)
        assert child.stderr.readline().startswith("stopping at the next evaluation")
        child.send_signal(signal.SIGTERM)
        assert child.wait(timeout=60) == 130


def test_bars_say_that_they_are_stopping():
    bars = _bars()
    with bars.stop:
        os.kill(os.getpid(), signal.SIGTERM)
        _until(bars.stopped)
    assert "stopping at the next evaluation" in _lines(bars)[0]
