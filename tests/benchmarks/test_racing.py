"""The race of ten million params runs, at a tiny size, and splits its runs."""

import jax
import pytest

from benchmarks import machine, racing, report
from benchmarks.rows import Record


def test_runs_that_do_not_fit_take_turns(capsys, tmp_path):
    options = ["--tiny", "--steps", "3", "--seeds", "2", "--at-once", "4"]
    options += ["--json", str(tmp_path / "racing.json")]
    with jax.numpy_dtype_promotion("standard"):  # as users have it
        outcome = racing.main(options)
    names = ["adamw", "muon(stacked='^layers/')"]
    assert [sweep.name for sweep in outcome.sweeps] == names
    assert {(sweep.runs, sweep.at_once) for sweep in outcome.sweeps} == {(12, 4)}
    adamw, muon = outcome.sweeps
    assert muon.bytes_per_param < 7 < adamw.bytes_per_param  # most are matrices
    out = capsys.readouterr().out
    assert "12 runs, 4 at once" in out and "Use " in out
    record = Record.load(tmp_path / "racing.json")
    assert record.quick and "racing" in report.SECTIONS
    text = report.guide(report.GUIDES[0].read_text(), {"racing": record})
    lines = [line for line in text.splitlines() if line.startswith("| `muon(")]
    cells = [cell.strip() for cell in lines[0].split("|")]
    assert cells[3:5] == ["12", "4"] and cells[6] == "3"
    assert cells[9] == f"{muon.bytes_per_param:.2f} bytes"
    best = float(cells[10].removesuffix(" bits per byte"))
    assert best == pytest.approx(muon.metric[..., -1].mean(axis=1).min(), abs=0.01)


def test_a_machine_without_a_package_is_described(monkeypatch):
    monkeypatch.setattr(machine, "version", _absent)
    monkeypatch.setattr(machine, "find_spec", lambda name: None)
    assert machine.describe()["optax"] == "not installed"


def _absent(name):
    raise machine.PackageNotFoundError(name)
