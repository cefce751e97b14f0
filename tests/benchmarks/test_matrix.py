"""Rows of the optimizers of matrices."""

from dataclasses import replace

from benchmarks import matrix
from benchmarks.rows import Record, Row


def _row(times, quantity="median"):
    return Row("matrix", "gpt", "muon", quantity, "s", times)


def test_peers_of_an_earlier_run_are_kept_and_marked():
    old = _row({"steepest": [2.0], "torch": [3.0]})
    before = Record({"date": "2026-11-16 17:35"}, "c", rows=[old])
    row = matrix.with_old_peers(_row({"steepest": [1.0]}), before)
    assert row.times == {"steepest": [1.0], "torch": [3.0]}
    assert row.note == "peers measured on 2026-11-16"
    other = _row({"steepest": [1.0]}, "device")
    assert matrix.with_old_peers(other, before) == other


def test_the_notes_of_peers_are_kept_with_the_day_on_which_they_were_measured():
    new = _row({"steepest": [1.0]})
    old = replace(new, times={"torch": [3.0]}, note="torch compiled")
    before = Record({"date": "2026-11-16 17:35"}, "c", rows=[old])
    row = matrix.with_old_peers(new, before)
    assert row.note == "torch compiled, peers measured on 2026-11-16"
    later = Record({"date": "2026-11-17 09:00"}, "c", rows=[row])
    assert matrix.with_old_peers(new, later).note == row.note


def test_peers_are_added_to_known_rows(monkeypatch):
    measured = {"torch": [1.0, 2.0, 6.0]}, "torch compiled"
    monkeypatch.setattr(matrix, "of_torch", lambda *_: measured)
    rows = [_row({"steepest": [1.0]}, x) for x in ("median", "worst", "device")]
    tree = matrix.Tree("gpt", "a model", [])
    new = list(matrix.with_peers(rows, "muon", tree, 0))
    assert [row.times.get("torch") for row in new] == [[2.0], [6.0], None]
    assert {row.note for row in new} == {"torch compiled"}
