"""The quantities are measured as described, and only equal steps are compared."""

import jax
import pytest

from benchmarks.measure import Field, QUANTITIES
from benchmarks.optimizers import LIBRARIES, Recipe, RECIPES
from benchmarks.rows import OURS
from benchmarks.timing import race
from benchmarks.trees import matrices, Tree


@pytest.fixture(scope="module")
def field():
    return Field(Tree("small", "one leaf", matrices(1, 4)))


@pytest.mark.parametrize("kind", QUANTITIES)
def test_every_quantity_has_its_row(kind, field, monkeypatch):
    monkeypatch.setattr(jax, "clear_caches", lambda: None)  # the other tests need them
    recipe = RECIPES["sgd+momentum"]
    rows = list(field.rows(kind, "step", "sgd", recipe, rounds=2, seconds=1.0))
    assert tuple(row.quantity for row in rows) == QUANTITIES[kind]
    for row in rows:
        assert {*LIBRARIES} <= {*row.times}
        assert all(len(numbers) == row.rounds for numbers in row.times.values())


def test_steps_that_differ_are_not_compared(field):
    recipe = Recipe(
        lambda lib, rate: lib.sgd(2 * rate if lib.__name__ == OURS else rate)
    )
    with pytest.raises(RuntimeError, match="a step on small differs"):
        list(field.rows("step", "step", "sgd", recipe, rounds=1, seconds=1.0))


def test_contenders_take_turns():
    log = []
    turns = {who: lambda who=who: log.append(who) or {"time": 1.0} for who in "ab"}
    times = race(turns, rounds=2, warmups=1)
    assert "".join(log) == "ba" + "ab" + "ba"
    assert times["time"] == {"a": [1.0, 1.0], "b": [1.0, 1.0]}
