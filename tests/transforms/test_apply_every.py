"""Sums of several updates, applied every few steps."""

import jax.numpy as jnp
import numpy as np
import pytest

import steepest


def _run(tx, grads):
    state, found = tx.init(grads[0]), []
    for g in grads:
        u, state = tx.update(g, state)
        found.append(u.tolist())
    return found, state


def test_every_third_step_has_the_sum():
    grads = [jnp.array([float(k)]) for k in range(1, 8)]
    found, state = _run(steepest.apply_every(3), grads)
    assert found == [[0], [0], [6], [0], [0], [15], [0]]
    assert state.count == 1
    assert state.grad_acc.tolist() == [7]


def test_every_step_is_the_identity():
    found, state = _run(steepest.apply_every(), [jnp.array([1.0]), jnp.array([2.0])])
    assert found == [[1], [2]]
    assert state.count == 0


def test_a_sum_does_not_infect_the_next():
    """Infinity times zero would be NaN from then on."""
    grads = [jnp.array([x]) for x in (jnp.inf, 1.0, 2.0, 3.0)]
    found, _ = _run(steepest.apply_every(2), grads)
    np.testing.assert_array_equal(found, [[0], [np.inf], [0], [5]])


@pytest.mark.parametrize("k", [0, -1, 2.5])
def test_the_period_must_be_positive(k):
    with pytest.raises(ValueError, match=f"apply_every: k is {k}, expected"):
        steepest.apply_every(k)
