"""`make_step`: one compilation, donated buffers. For copies, see the laws."""

import jax
import jax.numpy as jnp
import pytest

import steepest


def _params():
    return {"w": jnp.ones((64, 32)), "b": jnp.ones((32,))}


def test_old_buffers_are_given_up():
    tx, p = steepest.adam(0.1), _params()
    state, grads = tx.init(p), _params()
    steepest.make_step(tx)(p, state, grads)
    assert all(x.is_deleted() for x in jax.tree.leaves((p, state[0].mu)))
    assert not any(x.is_deleted() for x in jax.tree.leaves(grads))


def test_one_compile_over_many_steps(compiles):
    tx, p = steepest.adamw(steepest.cosine_decay_schedule(0.1, 100)), _params()
    step, state = steepest.make_step(tx), tx.init(p)
    p, state = step(p, state, _params())
    with compiles(0):
        for _ in range(4):
            p, state = step(p, state, _params())


def test_extra_arguments_reach_the_transformation():
    def update(updates, state, params=None, *, value, **extra_args):
        return jax.tree.map(lambda u: value * u, updates), state

    tx = steepest.GradientTransformationExtraArgs(steepest.init_empty_state, update)
    p, _ = steepest.make_step(tx)(_params(), tx.init(None), _params(), value=2.0)
    assert p["b"][0] == 3.0


def test_inside_another_jit():
    tx = steepest.sgd(0.1)
    step = steepest.make_step(tx)
    p, _ = jax.jit(lambda p: step(p, tx.init(p), p))(_params())
    assert p["b"][0] == jnp.float32(0.9)


def test_both_params_of_lookahead_are_donated(compiles):
    """They start equal, but in separate buffers."""
    tx = steepest.lookahead(steepest.adam(0.1), 2, 0.5)
    both = steepest.LookaheadParams.init_synced(_params())
    step, state = steepest.make_step(tx), tx.init(both)
    both, state = step(both, state, _params())
    with compiles(0):
        for _ in range(2):
            both, state = step(both, state, _params())


def test_what_is_no_array_is_named():
    tx = steepest.sgd(0.1)
    step, state = steepest.make_step(tx), tx.init(_params())
    with pytest.raises(
        TypeError, match=r"^make_step: grads\['w'\] is a str, expected an arr"
    ):
        step(_params(), state, {"w": "a", "b": jnp.ones(32)})
    with pytest.raises(
        TypeError, match=r"^make_step: value_fn is a function, expected an arr"
    ):
        step(_params(), state, _params(), value_fn=lambda p: 0.0)
