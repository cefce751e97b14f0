"""The files that a race writes to its folder."""

import json

import pytest

from steepest.race import results, write_report

from .outcomes import digits, EDGES


def _strict(text):
    """JSON that other programs can read: without NaN."""

    def refuse(name):
        raise AssertionError(name)

    return json.loads(text, parse_constant=refuse)


def test_a_page_numbers_and_pictures(tmp_path):
    page = write_report(digits(), tmp_path / "new")
    assert page == tmp_path / "new" / "report.html"
    assert {path.name for path in page.parent.iterdir()} == {
        "report.html",
        "results.json",
        "finals.svg",
        "learning-rates.svg",
        "loss-by-seconds.svg",
        "loss-by-steps.svg",
        "metric-by-seconds.svg",
    }
    assert _strict((page.parent / "results.json").read_text())["problem"] == "digits"


def test_numbers_for_machines():
    outcome = digits()
    result = _strict(results(outcome))
    first, *rest = result["standings"]
    assert first["verdict"] == "best" and first["learning_rate"] == 1e-2
    assert {row["verdict"] for row in rest} >= {"worse", "diverged"}
    broken = next(row for row in rest if row["name"] == "broken")
    assert broken["metric"] is None and broken["diverged"] == 24
    sweep = next(s for s in outcome.sweeps if s.name == "adamw")
    told = next(row for row in result["sweeps"] if row["name"] == "adamw")
    assert told["metric"][3] == sweep.metric[3].tolist()
    assert result["missing"][0]["name"] == "polyak_sgd"


@pytest.mark.parametrize("name", EDGES)
def test_every_race_has_numbers(name):
    assert _strict(results(EDGES[name]()))["sweeps"] is not None
