"""The page matches the results; nothing is timed here."""

import json

import pytest

from benchmarks import report, sections
from benchmarks.plan import BARS, cells, QUANTITIES
from benchmarks.rows import Bar, Record, Row
from benchmarks.trees import TREES

KEPT = report.files()


def row(ours, theirs, unit="s", **names):
    """A row with both libraries."""
    names = {"tree": "wide", "optimizer": "adamw", "quantity": "step", **names}
    times = {"steepest": ours, "optax": theirs}
    return Row(section="step", unit=unit, times=times, **names)


def test_the_page_matches_the_saved_results():
    """If this fails, run `python -m benchmarks.report`."""
    assert report.PAGE.read_text() == report.page(report.kept())


def test_the_guides_match_the_saved_results():
    """If this fails, run `python -m benchmarks.report`."""
    texts = [path.read_text() for path in report.GUIDES]
    assert texts == [report.guide(text, report.kept()) for text in texts]
    for section in ("memory", "peak", "low bits", "matrix"):
        text = "".join(texts)
        assert f"<!-- results: {section} -->" in text and section in report.SECTIONS


def test_a_guide_gets_the_tables_that_were_measured():
    machine = {"device": "A chip", "jax": "1.2", "date": "2026-11-16 17:35"}
    times = {"steepest": [1.0, 2.0], "float32": [1.0, 1.5]}
    rows = [Row("low bits", "bytes", "lion, int8", "at the end", "bits", times)]
    one, other = ("<!-- results: {} -->\n\nold\n\n<!-- end -->", "b\n")
    text = one.format("peak") + "\na\n" + one.format("low bits") + other
    new = report.guide(text, {"low_bits": Record(machine, "c", rows=rows)})
    assert new.startswith(one.format("peak") + "\na\n") and new.endswith("-->b\n")
    assert "A chip, JAX 1.2, 2026-11-16:\n\n| tree " in new and "lion, int8" in new
    assert new.count("old") == 1
    assert report.guide(new, {"low_bits": Record(machine, "c", rows=rows)}) == new


def test_the_peak_is_shown_with_its_parts():
    numbers = {"weights": 2, "state": 3, "gradients": 2, "peak": 10, "rest": 5}
    rows = [
        Row("peak", "gpt", "adamw", name, "B", {"steepest": [x * 10**9], "optax": [y]})
        for name, x in numbers.items()
        for y in [2 * x * 10**9]
    ]
    table, *_, shares = sections.peak(rows)
    assert "| 10.0 GB |        50% | 2.00 GB | 3.00 GB |   2.00 GB | 3.00 GB |" in table
    assert shares == "- adamw: weights 20%, state 30%, gradients 20%, other 30%"


def test_optimizers_of_matrices_are_shown_with_their_worst_step():
    numbers = {"median": 4e-3, "worst": 5e-3, "in a row": 3.5e-3, "device": 3e-3}
    rows = [
        Row("matrix", "gpt", "muon", name, "s", {"steepest": [x]}, "alone")
        for name, x in numbers.items()
    ]
    head, _, line = sections.matrix(rows).splitlines()
    assert line.count("steepest") == 1 and line.endswith("alone |")
    shown = dict(zip(_words(head), _words(line), strict=True))
    assert shown["median"] == "4.00 ms" and shown["worst"] == "5.00 ms"
    assert shown["worst / median"] == "1.25" and shown["of Muon's"] == "1.00"
    assert shown["in a row"] == "3.50 ms" and shown["on the device"] == "3.00 ms"
    assert "compile" not in shown and "worst / median there" not in shown
    worst = Row("matrix", "gpt", "muon", "device, worst", "s", {"steepest": [3.3e-3]})
    head, _, line = sections.matrix([*rows, worst]).splitlines()
    shown = dict(zip(_words(head), _words(line), strict=True))
    assert shown["worst / median there"] == "1.10"


def _words(line):
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_the_adamw_that_optimizers_of_matrices_are_compared_with_is_shown_once():
    rows = [
        Row("matrix", tree, name, "median", "s", {"steepest": [ours], **adamw})
        for tree, name, ours, theirs in [
            ("gpt", "muon", 4e-3, 2e-3),
            ("gpt", "soap", 12e-3, 1e-3),
            ("gpt-xl", "muon", 70e-3, None),
        ]
        for adamw in [{"optax adamw": [theirs]} if theirs else {}]
    ]
    lines = [_words(line)[:5] for line in sections.matrix(rows).splitlines()[2:]]
    assert lines == [
        ["gpt", "adamw", "optax", "1.00 ms", "0.25"],
        ["gpt", "muon", "steepest", "4.00 ms", "1.00"],
        ["gpt", "soap", "steepest", "12.0 ms", "3.00"],
        ["gpt-xl", "muon", "steepest", "70.0 ms", "1.00"],
    ]


@pytest.mark.parametrize("path", KEPT, ids=lambda path: path.name)
def test_saved_results_are_complete_runs_without_paths(path):
    assert not Record.load(path).quick
    assert "/home/" not in path.read_text() and "/work/" not in path.read_text()


def test_a_ratio_above_one_is_ahead():
    assert row([2.0, 1.0], [3.0, 4.0]).ratio("optax") == 3.0
    assert row([2.0, 1.0], [3.0, 4.0], "B/s").ratio("optax") == 0.5
    assert row([1.0, 1.0, 1.0], [1.0, 2.0, 3.0]).spread("optax") == (1.5, 2.5)


def test_a_few_bytes_make_no_difference():
    assert row([4], [0], "B").ratio("optax") == 1.0
    assert row([0], [10**6], "B").ratio("optax") == float("inf")
    assert row([2 * 10**6], [10**6], "B").ratio("optax") == 0.5


VERDICTS = [
    ([1.0, 1.0], [2.0, 2.0], "met"),
    ([1.0, 1.0], [1.0, 1.0], "missed"),
    ([1.0, 2.0, 1.0], [1.0, 1.0, 9.0], "missed, within the spread"),
]


@pytest.mark.parametrize(
    "ours, theirs, verdict", VERDICTS, ids=[verdict for *_, verdict in VERDICTS]
)
def test_a_target_is_met_or_missed(ours, theirs, verdict):
    assert Bar("wi*", "*", "step", "optax", 1.5).verdict([row(ours, theirs)]) == verdict


def test_a_target_is_compared_with_its_worst_row():
    rows = [row([1.0], [2.0]), row([1.0], [1.0], optimizer="lion")]
    bar = Bar("*", "*", "step", "optax", 1.5)
    assert bar.rows(rows)[0].optimizer == "lion"
    assert bar.verdict(rows) == "missed"
    assert Bar("*", "*", "step", "torch", 1.5).verdict(rows) == "not measured"


def test_save_and_load_round_trip(tmp_path):
    record = Record({"device": "a"}, "b", {"wide": TREES["wide"].describe()})
    record.rows = [row([1.0, 0.123456], [2.0, 3.0])]
    record.bars = [Bar("wide", "adamw", "step", "optax", 1.5)]
    record.save(tmp_path / "run.json")
    loaded = Record.load(tmp_path / "run.json")
    assert loaded.bars == record.bars and loaded.trees == record.trees
    assert loaded.rows[0].times["steepest"] == [1.0, 0.12346]
    assert json.loads((tmp_path / "run.json").read_text())["quick"] is False


def test_the_page_shows_where_steepest_is_behind():
    ahead, behind = row([1.0], [2.0]), row([2.0], [1.0], optimizer="lion")
    record = Record({"device": "a machine"}, "make bench", rows=[ahead, behind])
    record.bars = [Bar("*", "*", "step", "optax", 1.0)]
    text = report.body({"cpu": record})
    assert "0 of 1 met" in text and "1 of 2 comparisons" in text
    assert "**0.50**" in text and " 2.0 |" in text and "wide, lion" in text
    record.quick = True
    assert "Targets" not in report.body({"cpu": record})


def test_every_target_is_measured():
    planned = [
        row([1.0], [1.0], tree=cell.tree, optimizer=cell.optimizer, quantity=quantity)
        for cell in cells()
        for quantity in QUANTITIES[cell.kind]
    ]
    for bar in BARS:
        assert bar.rows(planned), bar


LEAVES = {"gpt2": 148, "gpt2-xl": 580, "xl-narrow": 580, "many": 4804, "giant": 1}
PARAMS = {"gpt2": 124_439_808, "gpt2-xl": 1_557_611_200, "vit": 86_567_656}


def test_trees_are_as_large_as_their_models():
    assert {name: TREES[name].leaves for name in LEAVES} == LEAVES
    assert {name: TREES[name].params for name in PARAMS} == PARAMS
