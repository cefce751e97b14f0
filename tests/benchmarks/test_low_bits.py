"""The benchmark of training in few bits is paired, and its tables say what it found."""

import jax
import pytest

from benchmarks import low_bits, report, sections
from benchmarks.rows import Record, Row


@pytest.fixture(scope="module")
def rows():
    with jax.numpy_dtype_promotion("standard"):  # for JAX's attention
        model = low_bits.larger(layers=1, width=64, context=8, batch=2)
        return list(low_bits.measured(model, "adamw", ["int8"], seeds=2, steps=2))


def test_runs_are_paired(rows):
    (row,) = rows
    few, wide = row.times["steepest"], row.times["float32"]
    assert row.optimizer == "adamw, int8" and row.tree == "bytes 1 x 64"
    assert len(few) == len(wide) == 2
    assert few != wide and few == pytest.approx(wide, rel=1e-2)
    assert abs(wide[0] - wide[1]) > abs(few[0] - wide[0])


def test_the_model_of_the_race():
    model = low_bits.of_the_race()
    assert model.tree.params == 135_488 and model.factor == 1


VERDICTS = [
    ([3.1, 2.9], "within one error"),
    ([3.2, 3.1], "3.0 errors above"),
    ([2.8, 2.9], "3.0 errors below"),
]


@pytest.mark.parametrize("few, verdict", VERDICTS, ids=[x for _, x in VERDICTS])
def test_verdict(few, verdict):
    times = {"steepest": few, "float32": [3.0, 3.0]}
    row = Row("low bits", "bytes", "adamw, int8", "at the end", "bits", times)
    table = sections.low_bits([row])
    assert f"| {verdict} " in table and "|  3.0000 |" in table
    record = Record({"device": "a"}, "b", rows=[row])
    page = report.body({"low_bits": record})
    assert "Nothing." in page and "All times" not in page
