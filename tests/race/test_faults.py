"""Whatever happens to the disk, a race gives the same results, or an error.

`python -m tests.race.faults` tests every bit of every file, and prints a table.
"""

import shutil
import subprocess
import sys
from collections import Counter

import jaxtyping
import pytest

from steepest.race import race
from steepest.race.terminal import _run
from steepest.race.terminal._command import main

from . import faults
from .faulty import Disk, FAULTS, Killed, on, outcome, PROBLEM, raced, without_training

ENDS = {
    "kill": {("killed", "equal")},
    "disk full": {("refused", "equal")},
    "I/O error": {("refused", "equal"), ("equal", "equal")},
    "permission": {("refused", "equal"), ("equal", "equal")},
    "short": {("equal", "equal")},
}


@pytest.fixture(scope="module")
def quick():
    """No training and no runtime type checks: there are thousands of races."""
    jaxtyping.config.update("jaxtyping_disable", True)
    with without_training():
        yield
    jaxtyping.config.update("jaxtyping_disable", False)


def test_every_operation_may_fail(tmp_path, quick):
    """Killed, full, broken or forbidden; then the race resumes to the same results."""
    counts = Counter()
    for kind, fault, name, now, later in faults.faults(tmp_path):
        assert (now[0], later[0]) in ENDS[fault], (kind, fault, name, now, later)
        counts[kind, fault] += 1
    assert len(counts) == 2 * len(ENDS) and counts.total() > 500


# Harmless damage: missing files are created again, and so are reports.
HARMLESS = {"missing", "hard link"}


def test_every_file_may_be_damaged(tmp_path, quick):
    """A few hundred bits, cuts, links and swaps, the same ones every time."""
    counts = Counter()
    for how, file, result in faults.damage(tmp_path, 1 / 199):
        ours = file in faults.FILES
        never_read = file in faults.OTHERS and how in ("a bit", "cut")
        harmless = never_read or (how in HARMLESS and (how, file) != LOST)
        assert result[0] == ("equal" if harmless else "refused"), (how, file, result)
        counts["ours" if ours else "others"] += 1
    assert counts["ours"] > 700


LOST = "missing", "race.json"  # without it, the runs cannot be identified


def test_a_fault_is_noticed(tmp_path, quick):
    """The disk counts every operation: none reaches the real one uncounted."""
    asked, expected = faults.operations(tmp_path / "race")
    assert {"open", "write", "fsync", "replace", "mkdir", "flock"} <= {*asked}
    with pytest.raises(Killed):
        raced(tmp_path / "race", Disk(asked.index("replace")))
    assert [p.name for p in tmp_path.rglob(".steepest-*.new")]
    assert outcome(lambda: "other", expected) == ("WRONG", "other numbers")


@pytest.mark.parametrize("fault", ["disk full", "permission"])
def test_the_command_says_it_in_a_line(tmp_path, quick, fault, monkeypatch, capsys):
    """At every operation, from the folder to the report; nothing is printed twice."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(_run, "load", lambda name: PROBLEM)
    command = ["race", "quadratic"]
    with on(Disk()) as disk:
        assert main(command) == 0
    assert disk.asked[0] == "mkdir"
    for at, name in enumerate(disk.asked):
        if name not in FAULTS[fault]:
            continue
        capsys.readouterr()
        with on(Disk(at, fault)):
            code = main(command)
        err = capsys.readouterr().err
        if code or err:
            assert code == 2 and err.count("\n") == 1, (at, name, err)
            assert err.startswith("error: race: cannot ")
        else:
            assert fault == "permission" and name in ("unlink", "flock", "close")
        shutil.rmtree("races", ignore_errors=True)


CHILD = """
import os, sys
from pathlib import Path
from tests.race.faulty import Disk, raced
raced(Path(sys.argv[2]), Disk(int(sys.argv[1]), die=lambda: os._exit(9)))
"""


def _numbers(outcome):
    return [
        (s.name, s.steps, s.loss.tolist(), s.metric.tolist()) for s in outcome.sweeps
    ]


def test_real_processes_are_killed(tmp_path):
    """With real training: before `race.json` exists, and during the runs."""
    children = {}
    for at in (8, 45):
        command = [sys.executable, "-c", CHILD, str(at), str(tmp_path / str(at))]
        children[at] = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    whole = race(PROBLEM)
    for at, child in children.items():
        _, errors = child.communicate(timeout=100)
        assert child.returncode == 9, errors
        folder = tmp_path / str(at)
        assert (folder / "race.json").exists() == (at > 20)
        assert not (folder / "runs/adam.json").exists()
        result = race(PROBLEM, folder=folder, resume=True)
        assert _numbers(result) == _numbers(whole)
