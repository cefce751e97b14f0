"""What the suite concludes from its results, and the page of them."""

from math import inf

import numpy as np
import pytest
from scipy import stats

from benchmarks import quality
from steepest.race.report._numbers import rate as rate_text
from steepest.race.suite import judged, page, pictures, Record, summary, table_of
from steepest.race.suite._bars import BARS
from steepest.race.suite._members import Result
from steepest.race.suite._protocol import Member, MORE, NARROWING, Request
from steepest.race.suite._record import Ran
from steepest.race.suite._statistics import paired, slope_of

from .suites import ran, record_of, REST, TINY

BASE = np.array([1.50, 1.52, 1.49, 1.51, 1.50])
NOISE = np.array([1.0, -1.0, 0.5, -0.5, 0.0])  # mean 0, standard error 0.354
MUON = BASE - 0.05


def test_differences_are_those_of_scipy():
    a, b = BASE, BASE - 0.02 + 0.003 * NOISE
    test, expected = paired([*a], [*b]), stats.ttest_rel(a, b)
    assert test.t == pytest.approx(expected.statistic)
    assert test.p == pytest.approx(expected.pvalue)
    assert test.error == pytest.approx(stats.sem(a - b))
    assert paired([*a], [*b[:4], inf]) is None
    more = paired([*a, 9.0], [*b])  # a seed that only one of them has
    assert more == test


def test_planned_comparisons_are_corrected_together():
    losses = {
        "adamw": BASE,
        "muon": BASE - 0.01 + 0.004 * NOISE,
        "lion": BASE + 0.002 * NOISE[::-1],
        "adamw int8": BASE + 0.001 * NOISE,
    }
    table = table_of(record_of(losses))
    lion = table.line("lion")
    tests = [table.line("muon").adamw, lion.adamw, lion.muon]
    first, second, third = sorted(tests, key=lambda test: test.p)
    expected = [3 * first.p, max(3 * first.p, 2 * second.p)]
    expected.append(max(*expected, third.p))
    found = [test.corrected for test in (first, second, third)]
    assert found == pytest.approx([min(p, 1) for p in expected])
    assert table.line("adamw int8").adamw.corrected is None  # a twin is not a claim
    assert table.line("adamw").muon.corrected is None  # that pair is there already


def test_losses_become_steps():
    """AdamW gains 0.01 per step, so a lead of 0.05 is five steps."""
    shorter, longer = TINY.lengths
    lengths = [BASE + 0.01 * (TINY.steps - n) for n in (shorter, longer)]
    record = record_of({"adamw": BASE, "muon": MUON}, lengths)
    assert slope_of(record) == pytest.approx(0.01)
    table = table_of(record)
    assert table.line("muon").steps == pytest.approx((TINY.steps + 5) / TINY.steps)
    assert slope_of(record_of({"adamw": BASE})) is None


def test_a_diverged_run_counts_as_infinite():
    losses = [*BASE[:4], inf]
    table = table_of(record_of({"adamw": BASE, "muon": MUON, "lion": losses}))
    line = table.line("lion")
    assert line.mean == inf and line.adamw is None and table.lines[-1] is line
    assert (line.diverged, line.runs) == (1, 6)
    assert "diverged" in summary(record_of({"adamw": BASE, "lion": losses}))


@pytest.mark.parametrize("rate, arrow", [(1e-3, " ↓"), (2e-3, ""), (4e-3, " ↑")])
def test_a_rate_at_the_edge_of_stage_2_has_an_arrow(rate, arrow):
    record = record_of({"adamw": BASE})
    arm = record.arms["adamw"]
    arm.entry["tuned"] = (rate, 0.1)
    tried = tuple(Member(x, 0.1, 201) for x in (1e-3, 2e-3, 4e-3))
    request = Request(NARROWING, TINY.steps, tried, REST)
    arm.ran.append(Ran.of(request, Result([1.0] * 3, [[1.0]] * 3, 1.0)))
    (row,) = (x for x in summary(record).splitlines() if x.startswith("| adamw "))
    assert row.split("|")[2].strip() == f"{rate_text(rate)}{arrow}"


def test_remarks_stand_below_the_bars():
    record = record_of({"adamw": BASE})
    text = page({"small": record}, {"small": "- **Found**: nothing."})
    assert text.index("| verdict") < text.index("**Found**") < text.index("## What is")
    assert "**Found**" not in page({"small": record})


def test_twins_are_compared_over_all_of_their_seeds():
    """Of a mean loss, only the seeds count that all arms have."""
    record = record_of({"adamw": BASE, "adamw int8": BASE + 1e-3 * NOISE})
    for name, extra in (("adamw", 0.0), ("adamw int8", 1e-3)):
        record.arms[name].ran.append(ran(BASE + 1.0 + extra, MORE))
    line = table_of(record).line("adamw int8")
    expected = stats.ttest_1samp([*1e-3 * NOISE, *[1e-3] * 5], 0)
    assert line.adamw.t == pytest.approx(expected.statistic)
    assert line.mean == pytest.approx(np.mean(BASE + 1e-3 * NOISE))
    (bar,) = (x for x in judged(table_of(record)) if x.claim.startswith("adamw int8"))
    assert "standard errors, 0.00 sigma" in bar.measured


def test_time_and_memory_are_those_of_one_run():
    line = table_of(record_of({"adamw": BASE})).line("adamw")
    assert line.step_seconds == pytest.approx(0.002)
    assert line.slowest == pytest.approx(0.003)
    assert line.bytes_per_param == 8 and line.floor == 0


LENGTHS = [BASE + 0.04, BASE - 0.04]  # of three steps, four, and five
GOOD = {
    "adamw": BASE,
    "optax adamw": BASE + 1e-4 * NOISE,
    "muon": BASE - 0.04 + 1e-3 * NOISE,
    "soap": BASE - 0.038,
    "soap every step": BASE - 0.039,
    "normuon": BASE - 0.041,
    "muon_h": BASE - 0.039,
    "soap_muon": BASE - 0.042,
    "lion": BASE + 0.01,
    "adamw int8": BASE + 1e-3 * NOISE,
    "lion int8": BASE + 0.01 + 1e-3 * NOISE,
    "muon int8": BASE - 0.04 + 2e-3 * NOISE,
}
BAD = {
    "adamw is within": {"optax adamw": BASE + 0.01},
    "muon is ahead": {"muon": BASE - 0.001 + 0.01 * NOISE},
    "adamw needs": {"muon": BASE - 0.2},
    "soap is within": {"soap": BASE - 0.05},
    "soap every": {"soap every step": BASE - 0.03},
    "normuon": {"normuon": BASE - 0.03},
    "muon_h": {"muon_h": BASE - 0.03},
    "soap_muon": {"soap_muon": BASE - 0.03},
    "lion is within 0.02": {"lion": BASE + 0.03},
    "adamw int8": {"adamw int8": BASE + 0.01 + 1e-3 * NOISE},
    "lion int8": {"lion int8": BASE + 0.02 + 1e-3 * NOISE},
    "muon int8": {"muon int8": BASE - 0.03 + 2e-3 * NOISE},
}


def _verdicts(losses):
    table = table_of(record_of(losses, LENGTHS))
    return {bar.claim: bar.verdict for bar in judged(table)}


def test_all_bars_can_pass():
    assert set(_verdicts(GOOD).values()) == {"pass"}


@pytest.mark.parametrize("claim", BAD)
def test_every_bar_can_fail(claim):
    (name,) = (x for x, _ in BARS if x.startswith(claim))
    assert _verdicts(GOOD | BAD[claim])[name] == "FAIL"


def test_every_bar_is_tested_and_none_passes_without_results():
    assert len(BAD) == len(BARS)
    table = table_of(record_of({"adamw": BASE}))
    assert {bar.verdict for bar in judged(table)} == {"not measured"}


def test_a_failed_bar_and_a_missing_arm_are_on_the_page():
    losses = GOOD | BAD["lion is within 0.02"]
    del losses["soap"]
    record = record_of(losses, LENGTHS, soap="the time budget was used up")
    record.arms["psgd"] = record_of({"adamw": BASE}).arms["adamw"]
    record.arms["psgd"].ran.clear()
    record.arms["psgd"].entry = {
        "tuned": None,
        "void": "the best learning rate is the lowest one tried, 0.01",
        "programs": 5,
        "edge": "",
    }
    text = page({"small": record})
    assert "**FAIL**" in text and "failed: 2" in text  # and that of lion int8
    assert "soap is missing: the time budget was used up" in text
    assert "psgd is void: the best learning rate" in text
    assert "quality-small.svg" in text
    assert all(len(line) < 400 for line in text.splitlines())
    (picture,) = pictures({"small": record}).values()
    assert picture.startswith("<svg") and "soap every step" in picture


def test_arms_with_more_seeds_than_others_have_a_picture():
    record = record_of({"adamw": BASE, "muon": BASE - 0.1, "lion": BASE + 0.1})
    record.arms["adamw"].ran.append(ran(BASE, MORE))
    (picture,) = pictures({"full": record}).values()
    dots = [part for part in picture.split("<") if 'class="dot"' in part]
    assert len(dots) == 5 + 5 + 10  # those that AdamW has, too


def test_an_empty_suite_has_a_page():
    record = record_of({}, adamw="the suite was stopped")
    assert "adamw is missing: the suite was stopped" in page({"full": record})
    assert pictures({"full": record})


def test_the_page_matches_the_saved_results():
    """If this fails, run `python -m benchmarks.quality page`."""
    for name, text in quality.written().items():
        assert (quality.DOCS / name).read_text("utf-8") == text, name


@pytest.mark.parametrize("path", quality.FILES.values(), ids=lambda path: path.name)
def test_saved_results_are_complete_and_without_paths(path):
    if not path.exists():
        pytest.skip(f"no {path.name} yet")
    text, record = path.read_text(), Record.load(path)
    assert "/home/" not in text and "/work/" not in text
    assert record.arms["adamw"].tuned is not None
