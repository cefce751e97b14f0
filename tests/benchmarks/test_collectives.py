"""Steps send no more than the stored table says."""

import json

import pytest

import steepest
from benchmarks.collectives import (
    collectives,
    FILE,
    measured,
    NAMES,
    optimizers,
    OURS,
    PAGE,
    page,
)

KEPT = json.loads(FILE.read_text())
LAYOUT = "both"
# So wide that a number for each column is more than 1 KB.
FEW = {"layer0": (64, 4096), "embed": (4096, 64), "b": (4096,)}
SILENT = [name for name in KEPT if not KEPT[name][LAYOUT]["steepest"]]
# What is compiled for eight devices takes a second or more, so other layouts are rare.
CASES = [
    *((name, LAYOUT, "steepest") for name in KEPT if name not in SILENT),
    ("muon", "rows", "steepest"),
    ("contrib.prodigy", "columns", "steepest"),
    ("muon", "both", "reshard"),
    ("normuon", "rows", "reshard"),
    ("soap", "both", "reshard"),
    ("contrib.muon", "columns", "reshard"),
]


@pytest.mark.parametrize("name, layout, who", CASES)
def test_no_operation_is_added(name, layout, who):
    lib, tx = optimizers(name, layout)[who]
    for operation, (count, size) in measured(lib, layout, tx).items():
        kept = KEPT[name][layout][who].get(operation, [0, 0])
        assert count <= kept[0] and size <= kept[1], operation


@pytest.mark.parametrize("start", range(0, len(SILENT), 10))
def test_what_sends_nothing_stays_silent(start):
    """Ten in one program: if any sends something, the program does."""
    names = SILENT[start : start + 10]
    txs = [optimizers(name, LAYOUT)["steepest"][1] for name in names]
    assert measured(steepest, LAYOUT, *txs, shapes=FEW) == {}


def test_every_optimizer_is_in_the_table():
    assert set(KEPT) == {*OURS, *NAMES}


def test_the_page_matches_the_table():
    """If this fails, run `python -m benchmarks.collectives`."""
    assert PAGE.read_text() == page(KEPT)


def test_loops_and_branches_are_counted():
    program = """\
%body (x: f32[512]) -> f32[512] {
  %a = f32[512]{0} all-reduce(%x), to_apply=%add
}

%branch (x: f32[512]) -> f32[512] {
  %b = (f32[512]{0}, bf16[1024]{0}) all-to-all(%x, %y)
}

ENTRY %main (x: f32[512]) -> f32[512] {
  %w = f32[512]{0} while(%x), body=%body, backend_config={"known_trip_count":{"n":"5"}}
  %c = f32[512]{0} conditional(%x), branch_computations={%branch, %other}
  %small = f32[8]{0} all-gather(%x)
}
"""
    assert collectives(program) == {"all-reduce": (5, 10240), "all-to-all": (1, 4096)}
