"""The small suite with the roundings of a GPU."""

import jax
import pytest

from benchmarks import other_seeds, roundings
from steepest.race.suite import SIZES


@pytest.mark.parametrize("name", ["muon", "soap"])
def test_only_the_roundings_differ(name, monkeypatch):
    monkeypatch.setattr(other_seeds, "SIZES", {"small": SIZES["tiny"].but(width=64)})
    with jax.numpy_dtype_promotion("standard"):
        losses = roundings.losses_of(name, [4001, 4002])
    assert [len(x) for x in losses.values()] == [2, 2]
    assert losses["plain"] != losses["rounded"]
    assert losses["plain"] == pytest.approx(losses["rounded"], rel=1e-2)
    assert jax.default_backend() == "cpu"
