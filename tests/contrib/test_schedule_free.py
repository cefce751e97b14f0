"""Schedule-Free: the averages, and how to find them in a state."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import steepest
from steepest.contrib import (
    schedule_free,
    schedule_free_adamw,
    schedule_free_eval_params,
    schedule_free_sgd,
)

from ..unusual import ODD

P = {"w": jnp.array([1.0, -2.0]), "b": jnp.array(0.5), "none": None}


def _run(tx, p, steps=4):
    state = tx.init(p)
    for t in range(steps):
        g = jax.tree.map(lambda x, t=t: jnp.sin(x) + t, p)
        u, state = tx.update(g, state, p)
        p = steepest.apply_updates(p, u)
    return p, state


@pytest.mark.parametrize(
    "base",
    [
        steepest.sgd(0.1),
        steepest.adam(0.1, b1=0.0),
        steepest.chain(steepest.clip_by_global_norm(0.1), steepest.sgd(0.1)),
        optax.sgd(0.1),
    ],
    ids=["sgd", "adam", "clipped", "of another library"],
)
def test_as_the_paper_says(base):
    """All three sequences are stored here."""
    b1, p = 0.8, P
    y, state = _run(schedule_free(base, 0.1, b1), p)
    x, z, here, inner = p, p, p, base.init(p)
    for t in range(4):
        g = jax.tree.map(lambda x, t=t: jnp.sin(x) + t, here)
        u, inner = base.update(g, inner, here)
        z = steepest.apply_updates(z, u)
        x = steepest.incremental_update(z, x, 1 / (t + 1))
        here = steepest.incremental_update(x, z, b1)
    close = lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5)
    jax.tree.map(close, (y, state.z), (here, z))
    jax.tree.map(close, schedule_free_eval_params(state, y), x)


def test_without_b1_it_is_the_optimizer_alone():
    """Optax divides by zero. Without an average, the params are the result."""
    y, state = _run(schedule_free(steepest.sgd(0.1), 0.1, b1=0.0), P)
    want, _ = _run(steepest.sgd(0.1), P)
    close = lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5)
    jax.tree.map(close, y, want)
    jax.tree.map(close, schedule_free_eval_params(state, y), y)


def test_a_learning_rate_of_zero_weighs_nothing():
    _, state = _run(schedule_free(steepest.sgd(0.1), 0.0), P)
    assert state.weight_sum == 0
    assert all(np.isfinite(x).all() for x in jax.tree.leaves(state))


def test_zero_warmup_steps_are_no_warmup():
    """In Optax a warm-up over zero steps keeps the learning rate at zero."""
    y, _ = _run(schedule_free_sgd(0.1, warmup_steps=0), P)
    want, _ = _run(schedule_free_sgd(0.1), P)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-6), y, want)


@pytest.mark.parametrize("inside", ["chain", "masked", "multi", "named", "partition"])
def test_the_average_is_found_in_nested_states(inside):
    """Optax needs the state itself. Leaves without an average do not change."""
    free = schedule_free_sgd(0.1)
    half = {"w": "slow", "b": "fast", "none": "fast"}
    tx = {
        "chain": lambda: steepest.chain(steepest.clip(1.0), free),
        "masked": lambda: steepest.masked(free, {"w": True, "b": False, "none": False}),
        "multi": lambda: steepest.MultiSteps(free, 2).gradient_transformation(),
        "named": lambda: steepest.named_chain(("it", free)),
        "partition": lambda: steepest.partition(
            {"slow": free, "fast": schedule_free_adamw(0.1)}, half
        ),
    }[inside]()
    y, state = _run(tx, P)
    x = schedule_free_eval_params(state, y)
    assert np.abs(x["w"] - y["w"]).max() > 1e-3
    assert (x["b"] == y["b"]) == (inside == "masked")
    assert x["none"] is None


def test_under_jit_and_scan():
    tx = schedule_free_adamw(0.1, warmup_steps=2)
    p = {"w": P["w"], "b": P["b"]}

    def step(carry, t):
        p, state = carry
        g = jax.tree.map(lambda x: jnp.sin(x) + t, p)
        u, state = tx.update(g, state, p)
        return (steepest.apply_updates(p, u), state), None

    found, _ = jax.lax.scan(step, (p, tx.init(p)), jnp.arange(4.0))
    want = _run(tx, p)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, 1e-5), found, want)
    jax.jit(schedule_free_eval_params)(found[1], found[0])


def test_dtypes():
    """`z` in its own dtype; the result in the wider one."""
    p = jnp.ones(3, "bfloat16")
    y, state = _run(schedule_free_sgd(0.1, state_dtype="float32"), p)
    assert (y.dtype, state.z.dtype, state.b1.dtype) == (
        "bfloat16",
        "float32",
        "float32",
    )
    assert schedule_free_eval_params(state, y).dtype == "float32"
    assert schedule_free_eval_params(schedule_free_sgd(0.1).init(p), p).dtype == p.dtype


def test_errors(as_users_do):
    tx = schedule_free_sgd(0.1)
    state = tx.init(P)
    with pytest.raises(
        ValueError, match=r"^schedule_free_sgd: `update` needs `params`"
    ):
        tx.update(P, state)
    with pytest.raises(TypeError, match="state is a tuple without a ScheduleFreeState"):
        schedule_free_eval_params(steepest.adam(0.1).init(P), P)
    with pytest.raises(ValueError, match="Pass the params that were trained"):
        schedule_free_eval_params(state, {"v": P["w"]})
    with pytest.raises(ValueError, match=r"two averages of leaf \['b'\]"):
        schedule_free_eval_params((state, tx.init(P)), P)
    shape = r"leaf \['b'\] has shape \(7,\) in the params and .* in the state's `z`"
    with pytest.raises(ValueError, match=shape):
        schedule_free_eval_params(state, {**P, "b": jnp.ones(7)})
    with pytest.raises(TypeError, match="a ScheduleFreeState"):
        tx.update(P, steepest.sgd(0.1).init(P), P)
    with pytest.raises(TypeError, match="base_optimizer is a float"):
        schedule_free(0.1, 0.1)
    with pytest.raises(TypeError, match="Put the warm-up into the schedule"):
        schedule_free_sgd(lambda t: 0.1, warmup_steps=3)


@pytest.mark.parametrize(
    "options, said",
    [
        ({"b1": 1.5}, r"b1 is 1.5, .* number in \[0, 1\]"),
        ({"warmup_steps": -1}, "warmup_steps is -1"),
        ({"b2": 1.5}, "b2 is 1.5"),
        ({"eps": -1.0}, "eps is -1.0"),
        ({"learning_rate": float("inf")}, "learning_rate is inf"),
        ({"weight_lr_power": float("nan")}, "weight_lr_power is nan"),
    ],
    ids=str,
)
def test_impossible_options(options, said):
    with pytest.raises(ODD, match=f"^schedule_free_adamw: {said}"):
        schedule_free_adamw(**options)
