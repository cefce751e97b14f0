"""The benchmark of memory in few bits counts what it says it counts."""

import jax
import pytest

from benchmarks import memory, report, sections
from benchmarks.gpu import PARTS
from benchmarks.rows import Record
from benchmarks.trees import TINY, TREES

TREE = TINY["billion"]


def _rows(name, cases, more=None):
    with jax.numpy_dtype_promotion("standard"):  # for Optax
        rows = memory.contest(TREE, name, cases[name], more or {})
        return {row.quantity: row for row in rows}


def test_the_billion():
    assert TREES["billion"].params == TREES["wide billion"].params == 2**30
    assert PARTS["memory"][1] == "billion" and PARTS["memory-muon"][1] == "wide billion"


@pytest.mark.parametrize(
    "name, weights, state",
    [("adamw, float32", 4, 8), ("lion, int8", 4, 1)],
)
def test_bytes_and_bandwidth(name, weights, state):
    rows = _rows(name, memory.ELEMENTWISE)
    per_param = lambda quantity: rows[quantity].best("steepest") / TREE.params
    assert per_param("weights") == weights
    # One float32 scale for each row of 64, and a counter.
    assert state <= per_param("state") <= state * 17 / 16 + 0.01
    moved = 3 * weights + 2 * per_param("state")
    steps, rates = (rows[k].times["steepest"] for k in ("step", "bandwidth"))
    for seconds, rate in zip(steps, rates, strict=True):
        assert rate * seconds == pytest.approx(moved * TREE.params)
    assert "copy" in rows["bandwidth"].times and "copy" not in rows["step"].times


def test_peers_take_part_in_float32():
    made = lambda tree: (lambda: {"step": 1e-3}, {})
    with jax.numpy_dtype_promotion("standard"):
        rows = memory.of_few_bits(TREE, {"torch": made})
        step, bandwidth = next(rows), next(rows)
        rows.close()
    assert step.times.keys() == {"steepest", "optax", "torch"}
    assert bandwidth.best("torch") == pytest.approx(28e3 * TREE.params, rel=1e-3)


def test_a_case_that_fails_does_not_lose_the_others(monkeypatch, capsys):
    def out_of_memory():
        raise RuntimeError("out of memory")

    cases = {"first": ("float32", out_of_memory), **memory.MUON}
    monkeypatch.setattr(memory, "MUON", cases)
    rows = list(memory.of_muon(TREE, {}, ["first", "muon, float32"]))
    assert {row.optimizer for row in rows} == {"muon, float32"}
    assert "first: out of memory" in capsys.readouterr().err


def test_half_of_the_weights_is_in_the_state():
    rows = _rows("muon, int8, 24-bit weights", memory.MUON)
    assert rows["weights"].best("steepest") == 2 * TREE.params
    assert 2 <= rows["state"].best("steepest") / TREE.params < 2.1
    record = Record({"device": "a"}, "b", {"billion": TREE.describe()})
    record.rows = list(rows.values())
    assert "| muon, int8, 24-bit weights | steepest |" in report.body({"gpu": record})
    assert " 2.00 |  2.06 |" in sections.memory(record.rows, {"billion": TREE.params})
