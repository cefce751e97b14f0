"""A sequence of turns that has no rhythm in common with others."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from steepest.numerics import irregular_turn


@pytest.mark.parametrize("k", [1, 2, 3, 4, 7, 10, 60])
@pytest.mark.parametrize("rhythm", [1, 2, 3, 4, 7, 10])
def test_every_turn_comes_in_every_rhythm(k, rhythm):
    count = jnp.arange(0, 400 * k * rhythm, rhythm, dtype=jnp.int32)
    turns = np.asarray(jax.vmap(lambda t: irregular_turn(t, k))(count))
    assert turns.dtype == np.int32
    many = np.bincount(turns, minlength=k)
    assert len(many) == k and 390 <= many.min() <= many.max() <= 410
    gaps = [
        np.diff(np.flatnonzero(turns == turn)).max(initial=1) for turn in (0, k - 1)
    ]
    assert max(gaps) <= 5 * k


def test_the_period_may_be_traced_and_large():
    some = jax.jit(jax.vmap(irregular_turn, (0, None)))
    count = jnp.arange(5, dtype=jnp.int32)
    turns = some(count, jnp.array(10**6))
    assert turns[0] == 0 and jnp.all((turns >= 0) & (turns < 10**6))
    np.testing.assert_array_equal(
        some(count, jnp.array(10))[3], irregular_turn(count[3], 10)
    )
