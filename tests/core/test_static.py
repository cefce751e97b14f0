"""Constants of a program are equal only if they are indistinguishable."""

import pickle

import jax.numpy as jnp
import numpy as np
import pytest

from steepest.core import Static


@pytest.mark.parametrize(
    "a, b",
    [(1, 1.0), (True, 1), (0.0, -0.0), ("1", 1), ((1,), (1.0,)), (None, False)],
    ids=repr,
)
def test_values_that_are_equal_in_python_may_be_two_programs(a, b):
    assert Static([a]) != Static([b])


@pytest.mark.parametrize(
    "make",
    [
        lambda: 0.1,
        lambda: float("nan"),
        lambda: np.arange(3),
        lambda: (1, (2.0, "x")),
        lambda: jnp.dtype("bfloat16"),
        lambda: len,
    ],
    ids=["float", "nan", "numpy", "tuple", "dtype", "function"],
)
def test_twins_are_equal_and_hash_alike(make):
    one, other = Static([make()]), Static([make()])
    assert one == other
    assert hash(one) == hash(other)
    assert pickle.loads(pickle.dumps(one)) == one


def test_incomparable_values_are_equal_only_to_themselves():
    class Odd:
        __hash__ = None

        def __eq__(self, other):
            raise ValueError

    odd = Odd()
    assert Static([odd]) == Static([odd])
    assert Static([odd]) != Static([Odd()])
    assert Static([[1]]) != Static([[1]])
