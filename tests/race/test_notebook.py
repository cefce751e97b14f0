"""A race in a notebook, as frames and as CSV."""

import csv
import io
import math
import sys
from types import SimpleNamespace

import pytest

from steepest.race.report import columns, recommendation
from steepest.race.report._markup import words
from steepest.race.report._records import as_csv, curve_records, standing_records

from .outcomes import digits, EDGES, outcome, sweep


def test_a_notebook_shows_the_recommendation_and_the_table():
    html, race = digits()._repr_html_(), digits()
    advice = recommendation(race)
    assert words(advice.first.why) in html and advice.first.line in html
    assert words(f"Second choice: {advice.second.title}") in html
    assert html.count("<tr") == 1 + len(race.sweeps)
    assert all(words(cell) in html for row in columns(race)[1] for cell in row)
    bad = outcome(sweep("<b>"), problem="<script>")._repr_html_()
    assert "<script>" not in bad and "<td><b>" not in bad


def test_a_result_is_printed_on_one_line():
    """Not with all its arrays."""
    text = repr(digits())
    assert text == "<Outcome of digits, optimizers: 8, recommended: lion at 3e-4>"
    assert repr(EDGES["all diverged"]()).endswith("optimizers: 2, recommended: none>")
    text = repr(digits().sweeps[2])
    assert text == "<Sweep of adamw, learning rates: 8, seeds: 3, steps: 1000>"


@pytest.mark.parametrize("name", ["nothing", "all diverged", "one seed"])
def test_every_race_has_a_cell(name):
    assert EDGES[name]()._repr_html_().startswith("<div>")


def test_frames(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", SimpleNamespace(DataFrame=list))
    race = outcome(sweep("adamw"), sweep("lion", limit=1e-9))
    table = race.to_pandas()
    assert [row["name"] for row in table] == ["adamw", "lion"]
    assert table[0]["breadth_factor"] > 1 and "breadth" not in table[0]
    curves = race.to_pandas("curves")
    s = race.sweeps[0]
    assert len(curves) == 2 * 8 * 3 * 41
    last = curves[40]
    assert (last["learning_rate"], last["seed"], last["step"]) == (1e-4, 0, 1000)
    assert last["loss"] == s.loss[0, 0, -1] and last["metric"] == s.metric[0, 0, -1]
    assert last["seconds"] == s.seconds[-1] / s.runs
    with pytest.raises(Exception, match="table"):
        race.to_pandas("table")


def test_a_frame_needs_pandas(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(
        ModuleNotFoundError, match=r"pandas is not installed\. Run `pip"
    ):
        outcome(sweep()).to_pandas()


def test_csv():
    race = outcome(sweep("sgd(momentum=0.9)"), sweep("a,b", limit=1e-9))
    rows = list(csv.DictReader(io.StringIO(as_csv(standing_records(race)))))
    assert [row["name"] for row in rows] == ["sgd(momentum=0.9)", "a,b"]
    assert float(rows[0]["breadth_low"]) > 0 and rows[1]["metric"] == ""
    curves = list(csv.DictReader(io.StringIO(as_csv(curve_records(race)))))
    assert len(curves) == len(curve_records(race))
    assert not any(math.isnan(float(x or 0)) for row in curves for x in [row["loss"]])
