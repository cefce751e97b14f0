"""The average of the params, and evaluation at it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steepest

P = {"w": jnp.array([[1.0, -2.0], [3.0, 0.5]]), "b": jnp.array([4.0])}


def _steps(tx, p, count):
    """The params after each step, and the last state."""
    state, seen = tx.init(p), []
    for t in range(count):
        g = jax.tree.map(lambda x, t=t: jnp.cos(x + t), p)
        u, state = tx.update(g, state, p)
        p = steepest.apply_updates(p, u)
        seen.append(p)
    return seen, state


@pytest.mark.parametrize("decay", [0.0, 0.5, 0.999])
def test_against_a_slow_reference(decay):
    tx = steepest.chain(steepest.sgd(0.3), steepest.ema_params(decay))
    seen, state = _steps(tx, P, 20)
    found = steepest.ema_eval_params(state, seen[-1])
    for name, x in found.items():
        a = np.zeros(x.shape)
        for p in seen:
            a = decay * a + (1 - decay) * np.asarray(p[name], "float64")
        np.testing.assert_allclose(x, a / (1 - decay**20), rtol=1e-4, atol=1e-6)


def test_before_the_first_step_it_is_the_params():
    tx = steepest.ema_params()
    found = steepest.ema_eval_params(tx.init(P), P)
    np.testing.assert_array_equal(found["w"], P["w"])


def test_updates_are_unchanged():
    plain, averaged = steepest.sgd(0.3), steepest.ema_params()
    seen, _ = _steps(steepest.chain(plain, averaged), P, 3)
    np.testing.assert_array_equal(seen[-1]["w"], _steps(plain, P, 3)[0][-1]["w"])


def test_half_precision_moves_by_less_than_it_could_store():
    p = {"w": jnp.full(3, 100.0, jnp.bfloat16)}
    tx = steepest.ema_params(0.999)
    state = tx.init(p)
    assert state.average["w"].dtype == jnp.float32
    for _ in range(2):
        _, state = tx.update({"w": jnp.zeros(3, jnp.bfloat16)}, state, p)
    p = {"w": jnp.full(3, 101.0, jnp.bfloat16)}
    _, state = tx.update({"w": jnp.zeros(3, jnp.bfloat16)}, state, p)
    np.testing.assert_allclose(state.average["w"], 100 + 1 / 3, rtol=1e-3)
    assert steepest.ema_eval_params(state, p)["w"].dtype == jnp.bfloat16
    narrow = steepest.ema_params(accumulator_dtype="bfloat16").init(p)
    assert narrow.average["w"].dtype == jnp.bfloat16


def test_leaves_without_an_average_are_returned_unchanged():
    mask = {"w": True, "b": False}
    tx = steepest.chain(
        steepest.sgd(0.3), steepest.masked(steepest.ema_params(0.9), mask)
    )
    seen, state = _steps(tx, P, 4)
    found = steepest.ema_eval_params(state, seen[-1])
    np.testing.assert_array_equal(found["b"], seen[-1]["b"])
    assert not np.allclose(found["w"], seen[-1]["w"])


def test_other_params_are_refused():
    state = steepest.ema_params().init(P)
    with pytest.raises(ValueError, match="different structures"):
        steepest.ema_eval_params(state, {"other": P["w"]})
    with pytest.raises(ValueError, match=r"\['b'\] has shape \(2,\)"):
        steepest.ema_eval_params(state, {**P, "b": jnp.ones(2)})
