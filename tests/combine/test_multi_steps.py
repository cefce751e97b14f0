"""One step for several gradients."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steepest

P = {"w": jnp.array([1.0, 2.0]), "n": None}


def _times(c):
    return {"w": c * P["w"], "n": None}


def _run(ms, gradients):
    state, rows = ms.init(P), []
    for g in gradients:
        u, state = ms.update(g, state, P)
        rows.append(u["w"].tolist())
    return rows, state


def test_the_mean_of_k_gradients_is_one_gradient():
    """Small batches are one large batch."""
    rows, state = _run(
        steepest.MultiSteps(steepest.adam(0.1), 3), [_times(c) for c in (1.0, 2.0, 6.0)]
    )
    adam = steepest.adam(0.1)
    want, inner = adam.update(_times(3.0), adam.init(P), P)
    assert rows[:2] == [[0, 0], [0, 0]]
    np.testing.assert_allclose(rows[2], want["w"], 1e-6)
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, 1e-6),
        inner,
        state.inner_opt_state,
    )
    assert not np.any(state.acc_grads["w"]) and int(state.gradient_step) == 1


def test_has_updated_says_when():
    ms = steepest.MultiSteps(steepest.sgd(1.0), 2)
    state, seen = ms.init(P), []
    seen.append(bool(ms.has_updated(state)))
    for _ in range(4):
        _, state = ms.update(P, state, P)
        seen.append(bool(ms.has_updated(state)))
    assert seen == [False, False, True, False, True]


def test_k_may_change_with_the_steps():
    ms = steepest.MultiSteps(steepest.sgd(1.0), lambda step: step + 1)
    rows, _ = _run(ms, [P] * 6)
    moved = [row != [0, 0] for row in rows]
    assert moved == [True, False, True, False, False, True]


def test_what_is_skipped_does_not_count():
    ms = steepest.MultiSteps(
        steepest.sgd(1.0), 2, should_skip_update_fn=steepest.skip_not_finite
    )
    rows, state = _run(ms, [_times(1.0), _times(jnp.inf), _times(3.0)])
    assert rows == [[0, 0], [0, 0], [-2, -4]]
    assert not state.skip_state["should_skip"]
    assert int(state.skip_state["num_not_finite"]) == 0


def test_long_gradients_and_nan_are_skipped():
    skip = functools.partial(steepest.skip_large_updates, max_squared_norm=20.0)
    assert not skip(_times(1.0), None, None)[0]
    assert skip(_times(2.0), None, None)[0]
    bad, seen = skip(_times(jnp.nan), None, None)
    assert bad and np.isnan(seen["norm_squared"])
    half = jax.tree.map(lambda x: (300 * x).astype(jnp.float16), P)
    assert float(skip(half, None, None)[1]["norm_squared"]) == 450000.0


def test_half_precision_is_accumulated_in_float32():
    """A thousand gradients of 1/1000 are one; in bfloat16 they stop on the way."""
    g = {"w": jnp.full(2, 1e-3, jnp.bfloat16), "n": None}
    ms = steepest.MultiSteps(steepest.sgd(1.0), 1000, use_grad_mean=False)
    step = jax.jit(lambda state, _: (ms.update(g, state)[1], None))
    state, _ = jax.lax.scan(step, ms.init(g), length=999)
    u, _ = ms.update(g, state)
    assert state.acc_grads["w"].dtype == jnp.float32
    assert u["w"].dtype == jnp.bfloat16
    np.testing.assert_allclose(np.float32(u["w"]), -1, 1e-2)


def test_the_accumulator_may_be_as_narrow_as_the_params():
    g = jax.tree.map(lambda x: x.astype(jnp.bfloat16), P)
    ms = steepest.MultiSteps(steepest.sgd(1.0), 2, accumulator_dtype=None)
    _, state = ms.update(g, ms.init(g), g)
    assert state.acc_grads["w"].dtype == jnp.bfloat16


def test_complex_numbers_stay_whole():
    g = jnp.array([1 + 2j])
    ms = steepest.MultiSteps(steepest.sgd(1.0), 2)
    _, state = ms.update(g, ms.init(g), g)
    u, _ = ms.update(g, state, g)
    np.testing.assert_allclose(u, -g, 1e-6)


def test_it_is_a_transformation_as_it_stands():
    ms = steepest.MultiSteps(steepest.sgd(1.0), 1)
    tx = steepest.chain(ms, steepest.scale(2.0))
    u, _ = tx.update(P, tx.init(P), P, value=1.0)
    assert u["w"].tolist() == [-2, -4]
    assert isinstance(
        ms.gradient_transformation(), steepest.GradientTransformationExtraArgs
    )
    assert isinstance(ms.inner_opt, steepest.GradientTransformationExtraArgs)


def test_k_must_be_a_count(as_users_do):
    with pytest.raises(ValueError, match="MultiSteps: every_k_schedule is 0"):
        steepest.MultiSteps(steepest.sgd(1.0), 0)
