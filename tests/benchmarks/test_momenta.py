"""Arms of the suite with another momentum."""

import jax
import pytest

from benchmarks import momenta, other_seeds
from steepest.race.suite import ARMS, SIZES
from steepest.race.suite._arms import Numbers

_NUMBERS = Numbers(lambda t: 1e-3, 0.1, lambda t: 1e-3, 0.1, 4)


@pytest.mark.parametrize("name", momenta.ARGUMENTS)
def test_only_the_momentum_changes(name):
    (arm,) = (arm for arm in ARMS if arm.name == name)
    same, other = (momenta.with_momentum(name, x) for x in (0.9, 0.8))
    whole = lambda arm: repr(arm.make(_NUMBERS))
    assert whole(same).replace(f"{momenta.ARGUMENTS[name]}=0.9, ", "") == (
        whole(arm).replace(f"{momenta.ARGUMENTS[name]}=0.9, ", "")
    )
    assert f"{momenta.ARGUMENTS[name]}=0.8" in whole(other)


def test_both_momenta_train_with_the_same_seeds(monkeypatch):
    monkeypatch.setattr(other_seeds, "SIZES", {"small": SIZES["tiny"]})
    kinds = {str(x): momenta.with_momentum("soap", x) for x in (0.95, 0.9)}
    with jax.numpy_dtype_promotion("standard"):
        losses = other_seeds.trained("soap", kinds, [2001, 2002])
    assert [len(x) for x in losses.values()] == [2, 2]
    assert losses["0.9"] != losses["0.95"]
    assert losses["0.9"] == pytest.approx(losses["0.95"], rel=1e-2)
