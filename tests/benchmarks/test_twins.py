"""int8 and float32 with the same seeds."""

import jax
import pytest

from benchmarks import other_seeds, twins
from steepest.race.suite import SIZES


def test_both_kinds_train_with_the_same_seeds(monkeypatch):
    """Truly, but a tiny model: it learns nothing, and int8 changes little."""
    monkeypatch.setattr(other_seeds, "SIZES", {"small": SIZES["tiny"]})
    with jax.numpy_dtype_promotion("standard"):  # numbers of both kinds in schedules
        losses = other_seeds.trained("muon", twins.both("muon"), [1001, 1002])
    assert [len(x) for x in losses.values()] == [2, 2]
    assert losses["int8"] == pytest.approx(losses["float32"], rel=1e-2)
    assert losses["float32"][0] != losses["float32"][1]
