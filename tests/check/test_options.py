"""Arguments that select an option, and states: which are accepted, and the errors."""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
import pytest

from steepest.check import choice, dtype, flag, rate_given, state_of
from steepest.core import only_real


class _State(NamedTuple):
    count: int
    mu: int


class _Other(NamedTuple):
    mu: int


def test_accepted_options():
    assert choice("me", ("a", "b"), x="b") == ["b"]
    assert flag("me", x=True, y=np.bool_(False)) == [True, False]
    given = [None, "bfloat16", float, jnp.float16, np.dtype("complex64")]
    for x in given:
        assert dtype("me", x=x) == [x]
    assert state_of("me", _State, _State(1, 2)) == (1, 2)
    assert rate_given("me", 0.1) == 0.1
    assert only_real(jnp.ones(3)) is None


@pytest.mark.parametrize("bad", ["c", None, [], 1.0], ids=str)
def test_unknown_choices(bad):
    with pytest.raises(ValueError, match=r"me: x is .*, expected one of: a, b"):
        choice("me", ("a", "b"), x=bad)


@pytest.mark.parametrize("bad", ["yes", None, 2, 0.5], ids=str)
def test_values_that_are_not_flags(bad):
    with pytest.raises(TypeError, match=r"me: x is .*, expected True or False"):
        flag("me", x=bad)


@pytest.mark.parametrize("bad", ["float33", jnp.int8, 0.5, bool, []], ids=str)
def test_dtypes_that_are_not_real(bad):
    with pytest.raises(
        TypeError, match=r"me: x is .*, expected a dtype of real numbers"
    ):
        dtype("me", x=bad)


@pytest.mark.parametrize("bad", [None, (), _Other(1), {"mu": 1}], ids=str)
def test_the_state_of_another_transformation(bad):
    """Every tuple has a method `count`, which is not a field."""
    said = f"me: the state is a {type(bad).__name__}, expected a _State"
    with pytest.raises(TypeError, match=said):
        state_of("me", _State, bad)
