"""Steps send no more than the stored table says."""

import json

import pytest

from benchmarks.collectives import collectives, FILE, measured, optimizers, PAGE, page

KEPT = json.loads(FILE.read_text())
# Few of them, since each is compiled for eight devices.
CASES = [
    ("adamw", "both", "steepest"),
    ("muon", "rows", "steepest"),
    ("muon", "both", "reshard"),
    ("normuon", "rows", "reshard"),
    ("sm3", "both", "steepest"),
    ("contrib.prodigy", "columns", "steepest"),
]


@pytest.mark.parametrize("name, layout, who", CASES)
def test_no_operation_is_added(name, layout, who):
    lib, tx = optimizers(name, layout)[who]
    for operation, (count, size) in measured(lib, tx, layout).items():
        kept = KEPT[name][layout][who].get(operation, [0, 0])
        assert count <= kept[0] and size <= kept[1], operation


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
