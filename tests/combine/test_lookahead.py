"""Lookahead alone: synchronization, reset and errors."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import steepest

P = {"w": jnp.array([1.0, -2.0]), "b": None}
G = {"w": jnp.array([1.0, 1.0]), "b": None}


def _steps(tx, both, count, library=steepest):
    state, rows = tx.init(both), []
    for _ in range(count):
        u, state = tx.update(G, state, both)
        both = library.apply_updates(both, u)
        rows.append((both, state))
    return rows


def test_fast_is_set_to_slow_when_they_synchronize():
    tx = steepest.lookahead(steepest.sgd(0.1), 3, 0.5)
    rows = _steps(tx, steepest.LookaheadParams.init_synced(P), 4)
    (one, _), (two, _), (three, met), (four, _) = rows
    np.testing.assert_array_equal(one.slow["w"], P["w"])
    np.testing.assert_allclose(two.fast["w"], P["w"] - 0.2, rtol=1e-6)
    np.testing.assert_allclose(three.slow["w"], P["w"] - 0.15, rtol=1e-6)
    np.testing.assert_array_equal(three.fast["w"], three.slow["w"])
    np.testing.assert_array_equal(four.slow["w"], three.slow["w"])
    assert met.steps_since_sync == 0
    assert three.fast["b"] is None


@pytest.mark.parametrize("period", [1, 2, 5])
@pytest.mark.parametrize("reset", [False, True])
def test_same_as_optax(period, reset):
    """Fast and slow params and the fast optimizer's state, step by step."""
    both = steepest.LookaheadParams.init_synced(P)
    ours = _steps(steepest.lookahead(steepest.adam(0.1), period, 0.3, reset), both, 11)
    both = optax.LookaheadParams.init_synced(P)
    with jax.numpy_dtype_promotion("standard"):
        tx = optax.lookahead(optax.adam(0.1), period, 0.3, reset)
        theirs = _steps(tx, both, 11, optax)
    for a, b in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def test_a_slow_step_size_of_one_is_the_fast_optimizer():
    tx = steepest.sgd(0.1, 0.9)
    look = steepest.lookahead(tx, 2, 1.0)
    both, _ = _steps(look, steepest.LookaheadParams.init_synced(P), 5)[-1]
    p, state = P, tx.init(P)
    for _ in range(5):
        u, state = tx.update(G, state, p)
        p = steepest.apply_updates(p, u)
    np.testing.assert_allclose(both.fast["w"], p["w"], rtol=1e-6)


def test_a_reset_forgets_counts_too_and_keeps_dtypes():
    tx = steepest.lookahead(steepest.adam(0.1, mu_dtype="bfloat16"), 2, 0.5, True)
    (_, before), (_, after) = _steps(tx, steepest.LookaheadParams.init_synced(P), 2)
    assert before.fast_state[0].count == 1
    assert after.fast_state[0].count == 0
    assert after.fast_state[0].count.dtype == jnp.int32
    assert after.fast_state[0].mu["w"].dtype == jnp.bfloat16
    assert not after.fast_state[0].mu["w"].any()


def test_a_reset_starts_from_the_synchronized_params():
    """An optimizer that stores its initial params gets the new ones."""
    home = steepest.GradientTransformation(
        lambda p: p, lambda u, s, p=None: (jax.tree.map(lambda x: -x, u), s)
    )
    tx = steepest.lookahead(home, 2, 0.5, reset_state=True)
    both, state = _steps(tx, steepest.LookaheadParams.init_synced(P), 2)[-1]
    np.testing.assert_array_equal(state.fast_state["w"], both.slow["w"])


def test_extra_arguments_reach_the_fast_optimizer():
    def update(updates, state, params=None, *, value, **extra_args):
        return jax.tree.map(lambda u: value * u, updates), state

    fast = steepest.GradientTransformationExtraArgs(steepest.init_empty_state, update)
    tx = steepest.lookahead(fast, 5, 0.5)
    both = steepest.LookaheadParams.init_synced(P)
    u, _ = tx.update(G, tx.init(both), both, value=7.0)
    np.testing.assert_array_equal(u.fast["w"], [7.0, 7.0])


def test_plain_params_are_taken_as_fast_with_a_warning():
    tx = steepest.lookahead(steepest.adam(0.1), 5, 0.5)
    with pytest.warns(UserWarning, match="lookahead: `init` got a dict"):
        state = tx.init(P)
    want = tx.init(steepest.LookaheadParams.init_synced(P))
    assert jax.tree.structure(state) == jax.tree.structure(want)


def test_init_synced_of_shapes():
    shapes = jax.eval_shape(lambda: P)
    both = steepest.LookaheadParams.init_synced(shapes)
    assert both.slow["w"].shape == (2,)


@pytest.mark.parametrize("period", [0, -1, 1.5])
@pytest.mark.usefixtures("as_users_do")
def test_a_period_below_one_is_refused(period):
    with pytest.raises(ValueError, match=f"lookahead: sync_period is {period}"):
        steepest.lookahead(steepest.sgd(0.1), period, 0.5)


@pytest.mark.usefixtures("as_users_do")
def test_bad_arguments_are_refused():
    tx = steepest.lookahead(steepest.sgd(0.1), 2, 0.5)
    both = steepest.LookaheadParams.init_synced(P)
    with pytest.raises(ValueError, match="lookahead: `update` needs `params`"):
        tx.update(G, tx.init(both))
    with pytest.raises(TypeError, match="lookahead: `update` got a dict as `params`"):
        tx.update(G, tx.init(both), P)
    with pytest.raises(TypeError, match="lookahead: fast_optimizer is a function"):
        steepest.lookahead(steepest.sgd, 2, 0.5)
