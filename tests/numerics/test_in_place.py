"""The kernel that replaces some arrays of many, interpreted."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from steepest.numerics import _in_place, can_replace, replaced

# Two turns: the first is of stack 0 and of one member of stack 2.
WINDOWS = [[(0, 0, 2), (2, 1, 2)], [(1, 0, 1), (2, 0, 1), (2, 2, 3)]]


def _stacks():
    rng = np.random.default_rng(0)
    return [jnp.asarray(rng.standard_normal((n, 32, 64)), "float32") for n in (2, 1, 3)]


@pytest.mark.parametrize("turn", [0, 1, 2, 7])
def test_only_the_members_of_the_turn_change(turn):
    stacks, values = _stacks(), 100 + jnp.arange(3.0)[:, None, None]
    values = jnp.broadcast_to(values, (3, 32, 64))
    new = replaced(WINDOWS, jnp.int32(turn), values, stacks, interpret=True)
    expected = [np.array(x) for x in stacks]
    window = WINDOWS[turn] if turn < len(WINDOWS) else []
    members = [(j, k) for j, a, b in window for k in range(a, b)]
    for i, (j, k) in enumerate(members):
        expected[j][k] = values[i]
    for x, y in zip(new, expected, strict=True):
        np.testing.assert_array_equal(x, y)


def test_under_vmap_each_has_its_own_turn():
    stacks, values = _stacks(), jnp.ones((3, 32, 64))
    run = lambda turn: replaced(WINDOWS, turn, values, stacks, interpret=True)
    many = jax.vmap(run)(jnp.arange(3))
    for turn in range(3):
        for x, y in zip(many, run(jnp.int32(turn)), strict=True):
            np.testing.assert_array_equal(x[turn], y)


def test_small_arrays_are_left_to_xla(monkeypatch):
    assert not can_replace([jnp.ones((2, 64, 64))])  # no GPU
    monkeypatch.setattr(_in_place, "has_kernels", lambda: True)
    assert can_replace([jnp.ones((2, 64, 64))])
    assert not can_replace([jnp.ones((2, 16, 16))])
    assert not can_replace([jnp.ones((2, 63, 65))])
