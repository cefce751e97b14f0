"""The scripts that `make typing` checks."""

import jax
import pytest

from tests.typing import correct
from tools import typecheck


@pytest.fixture(autouse=True)
def _as_jax_comes():
    """JAX's default promotion, as users have it."""
    with jax.numpy_rank_promotion("allow"), jax.numpy_dtype_promotion("standard"):
        yield


def test_the_correct_script_runs():
    losses = correct.train(correct.make(100), 100)
    assert losses[-1] < 0.1 * losses[0]
    assert len(correct.masks()) == 4
    assert 0 < float(correct.line_search()[0]) < 2


def test_there_are_seven_mistakes_each_in_its_own_function():
    found = typecheck.planted((typecheck.FOLDER / "mistakes.py").read_text())
    assert len(found) == len(set(found.values())) == 7
