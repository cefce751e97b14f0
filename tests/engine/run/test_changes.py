"""Some matrices of a stack change, on the device that has them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from steepest.core import Static
from steepest.engine.run._changes import (
    change_in_a_stack,
    change_some,
    formula_of,
    new_values,
)
from steepest.engine.run._formula import Part
from steepest.engine.run._turns import Places, Turns
from steepest.numerics import cond_under_vmap

COUNTS = Part("count", lambda g, n, *, by: (n + by,), ("g", "n"), Static([]), ("by",))
ORDER = [[0, 2, 4], [1, 3, -1]]  # five matrices on two devices
FORMULA = formula_of(COUNTS, ("n",))


def _changed(turns, when, device):
    """How often each matrix of a device has changed after a step."""
    places = Places(turns, (0, 1, 2, 3, 4), 5)
    arrays = jnp.ones((3, 2, 4)), jnp.zeros((3, 2))

    @jax.jit
    def change(arrays, when, device):
        return change_some(
            FORMULA, places, ORDER, arrays, (1.0,), when, device, cond_under_vmap
        )

    (n,) = change(arrays, jnp.asarray(when), jnp.asarray(device))
    return np.asarray(n)[:, 0].tolist()


@pytest.mark.parametrize(
    "when, first, second",
    [
        (0, [1, 0, 0], [1, 0, 0]),  # 0 and 1
        (1, [0, 1, 0], [0, 1, 0]),  # 2 and 3
        (2, [0, 0, 1], [0, 1, 0]),  # 3 and 4
        (3, [0, 0, 0], [0, 0, 0]),
        (4, [1, 0, 0], [1, 0, 0]),
    ],
)
def test_only_the_matrices_whose_turn_it_is(when, first, second):
    turns = Turns(0, 3, 4)
    assert _changed(turns, when, 0) == first
    assert _changed(turns, when, 1) == second


@pytest.mark.parametrize(
    "turn, changed",
    [
        (0, [1, 1, 0, 0, 0]),
        (1, [0, 0, 1, 1, 0]),
        (2, [0, 0, 0, 1, 1]),  # the last two turns have a matrix in common
        (3, [0, 0, 0, 0, 0]),
    ],
)
def test_the_matrices_of_three_leaves_in_one_stack(turn, changed):
    cells = [(jnp.ones((n, 2, 4)), jnp.zeros((n, 2))) for n in (1, 3, 1)]
    turns = Turns(0, 3, 4)
    change = jax.jit(lambda *xs: change_in_a_stack(FORMULA, turns, *xs))
    new = change(cells, (1.0,), jnp.asarray(turn))
    assert [len(n) for (n,) in new] == [1, 3, 1]
    assert np.concatenate([n for (n,) in new])[:, 0].tolist() == changed


def test_all_in_the_same_step():
    assert _changed(None, True, 0) == [1, 1, 1]
    assert _changed(None, False, 0) == [0, 0, 0]
    assert _changed(Turns(0, 1, 1), 7, 1) == [1, 1, 1]


def test_a_large_stack_in_pieces():
    """The pieces have the results of the whole."""
    many = 300
    stack = jnp.ones((many, 64, 64)), jnp.arange(2.0 * many).reshape(many, 2)
    (n,) = new_values(FORMULA, stack, (1.0,))
    np.testing.assert_array_equal(n, stack[1] + 1)
