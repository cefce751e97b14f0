"""Which matrices share a stack."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.sharding import AbstractMesh

from steepest.core import Matrix, Rule
from steepest.engine.run import stack_sizes, stacks
from steepest.numerics import _xla, Team


class State(NamedTuple):
    mu: Any


def test_large_matrices_come_in_several_stacks(monkeypatch):
    xs = [jnp.ones((4, 8))] * 7 + [None, jnp.ones((8, 4))]
    assert stacks(xs, [None] * 9) == [[0, 1, 2, 3, 4, 5, 6, 8]]
    monkeypatch.setattr(_xla, "MOST", 3 * 4 * 4 * 8)
    assert stacks(xs, [None] * 9) == [[0, 1, 2], [3, 4], [5, 6], [8]]
    monkeypatch.setattr(_xla, "MOST", 1)
    assert len(stacks(xs, [None] * 9)) == 8


def test_what_differs_is_not_stacked():
    xs = [jnp.ones((2, 2)), jnp.ones((2, 3)), jnp.ones((2, 2), jnp.float16)]
    assert stacks(xs, [None] * 3) == [[0], [1], [2]]
    assert stacks(xs[:1] * 2, [jnp.float32, None]) == [[0], [1]]


def test_stacks_of_a_team_are_padded_little(monkeypatch):
    """Nine matrices on eight devices: two stacks, not three."""
    xs = [jnp.ones((4, 8))] * 9
    monkeypatch.setattr(_xla, "MOST", 4 * 4 * 8)
    assert len(stacks(xs, [None] * 9)) == 9
    pieces = stacks(xs, [None] * 9, team=Team(AbstractMesh((8,), ("data",)), ("data",)))
    assert list(map(len, pieces)) == [5, 4]


def test_sizes_of_stacks():
    """Tall and wide matrices share a stack, unless the formula has memory."""
    plain = Rule("plain", lambda g: g, matrix=Matrix(lambda g: g))
    shapes = [(4, 8), None, (8, 4), (3, 8, 4), (2, 2)]
    xs = [x and jax.ShapeDtypeStruct(x, jnp.float32) for x in shapes]
    assert stack_sizes(plain, xs) == [5, 0, 5, 5, 1]
    memory = {"mu": jnp.zeros_like}
    matrix = Matrix(lambda g, mu: (g, mu))
    with_memory = Rule("memory", lambda g: g, State, memory=memory, matrix=matrix)
    assert stack_sizes(with_memory, xs) == [1, 0, 4, 4, 1]
