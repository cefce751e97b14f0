"""Moving averages of updates."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steepest

from ..unusual import ODD

biases = pytest.mark.parametrize("debias", [True, False])


def _run(tx, grads):
    state, found = tx.init(grads[0]), []
    for g in grads:
        u, state = tx.update(g, state)
        found.append(u)
    return found, state


@biases
def test_of_a_constant(debias):
    """With bias correction it is the constant from the first step."""
    found, state = _run(steepest.ema(0.9, debias), [jnp.array([2.0])] * 3)
    share = 1 - 0.9 ** np.arange(1, 4)
    want = np.full(3, 2.0) if debias else 2 * share
    np.testing.assert_allclose(jnp.stack(found)[:, 0], want, rtol=1e-6)
    np.testing.assert_allclose(state.ema, [2 * share[-1]], rtol=1e-6)
    assert state.count == 3


@biases
def test_without_decay_it_is_the_identity(debias):
    found, _ = _run(steepest.ema(0.0, debias), [jnp.array([2.0]), jnp.array([-1.0])])
    assert found[1].tolist() == [-1.0]


@pytest.mark.parametrize("own", [jnp.bfloat16, jnp.float32])
@pytest.mark.parametrize("kept", [None, jnp.bfloat16, "float32"], ids=str)
def test_the_accumulator_has_a_dtype_of_its_own(own, kept):
    found, state = _run(steepest.ema(0.5, True, kept), [jnp.ones(2, own)] * 3)
    assert state.ema.dtype == (kept or own)
    assert found[-1].dtype == own
    np.testing.assert_array_equal(found[-1], jnp.ones(2, own))


def test_the_mean_of_integers_is_none():
    """So it is stored as a float from the start."""
    found, state = _run(steepest.ema(0.5), [jnp.array([1]), jnp.array([2])])
    assert state.ema.dtype == jnp.float32
    np.testing.assert_allclose(found[-1], [(0.25 * 1 + 0.5 * 2) / 0.75], rtol=1e-6)


def test_the_decay_may_be_mapped_over():
    last = lambda decay: _run(steepest.ema(decay, False), [jnp.array(1.0)])[0][0]
    np.testing.assert_allclose(jax.vmap(last)(jnp.array([0.0, 0.75])), [1, 0.25])


def test_a_decay_that_does_not_decay_is_refused():
    with pytest.raises(ODD, match=r"ema: decay is 1.5, .* number in \[0, 1\]"):
        steepest.ema(1.5)


@pytest.mark.parametrize(
    "options, said",
    [
        ({"debias": "no"}, "ema: debias is 'no', expected True or False"),
        (
            {"accumulator_dtype": "float33"},
            "ema: accumulator_dtype is 'float33', expected a",
        ),
        (
            {"accumulator_dtype": jnp.int8},
            "ema: accumulator_dtype is .*int8.*, expected a dt",
        ),
    ],
    ids=str,
)
def test_impossible_options(as_users_do, options, said):
    with pytest.raises(TypeError, match=said):
        steepest.ema(0.9, **options)
