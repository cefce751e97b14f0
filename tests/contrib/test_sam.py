"""Sharpness-aware minimization."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import steepest
from steepest.contrib import normalize, NormalizeState, sam

P = {"w": jnp.array([1.0, -2.0]), "b": jnp.array(0.5), "none": None}
CLIMB = steepest.chain(normalize(), steepest.sgd(0.05))
close = lambda a, b: jax.tree.map(
    lambda x, y: np.testing.assert_allclose(x, y, rtol=1e-5, atol=1e-7), a, b
)


def _grad(p):
    return jax.tree.map(lambda x: jnp.sin(3 * x) + x, p)


def _by_hand(down, up, p, rounds, period, reset):
    """Climb, take the gradient, and descend from the starting point."""
    down_state, up_state = down.init(p), up.init(p)
    for _ in range(rounds):
        worst = p
        for _ in range(period - 1):
            u, up_state = up.update(_grad(worst), up_state, worst)
            worst = jax.tree.map(lambda x, u: x - u, worst, u)
        u, down_state = down.update(_grad(worst), down_state, p)
        p = steepest.apply_updates(p, u)
        up_state = up.init(p) if reset else up_state
    return p


@pytest.mark.parametrize("period", [1, 2, 3])
@pytest.mark.parametrize("reset", [True, False], ids=["reset", "remember"])
@pytest.mark.parametrize("mode", ["step by step", "opaque"])
def test_as_the_paper_says(mode, reset, period):
    """With a period of 1 it is the plain optimizer; Optax returns to old params."""
    down, up = steepest.adamw(0.1), steepest.chain(CLIMB, steepest.trace(0.9))
    tx = sam(down, up, period, reset, opaque_mode=mode == "opaque")
    want = _by_hand(down, up, P, 3, period, reset)
    p, state = P, tx.init(P)
    opaque = {"grad_fn": lambda p, i: _grad(p)} if mode == "opaque" else {}
    for _ in range(3 if opaque else 3 * period):
        u, state = tx.update(_grad(p), state, p, **opaque)
        p = steepest.apply_updates(p, u)
    close(p, want)
    assert state.steps_since_sync == 0
    assert (state.cache is None) == (mode == "opaque")


@pytest.mark.parametrize(
    "down",
    [steepest.sgd(0.1, 0.9), steepest.adam(0.1), optax.sgd(0.1)],
    ids=["sgd", "adam", "of another library"],
)
def test_under_scan(down):
    tx = sam(down, CLIMB)

    def step(carry, _):
        p, state = carry
        u, state = tx.update(_grad(p), state, p)
        return (steepest.apply_updates(p, u), state), None

    (p, _), _ = jax.lax.scan(step, (P, tx.init(P)), None, length=4)
    close(p, _by_hand(down, CLIMB, P, 2, 2, True))


def test_what_grad_fn_sees():
    seen = []
    tx = sam(steepest.sgd(0.1), steepest.sgd(1.0), 3, opaque_mode=True)
    look = lambda p, i: seen.append((float(p), i)) or p
    tx.update(jnp.array(2.0), tx.init(jnp.array(1.0)), jnp.array(1.0), grad_fn=look)
    assert seen == [(3.0, 0), (6.0, 1)]


def test_devices_share_their_gradients():
    tx = sam(steepest.sgd(1.0), CLIMB, opaque_mode=True, batch_axis_name="i")
    p = jnp.array(1.0)
    each = lambda g: tx.update(g, tx.init(p), p, grad_fn=lambda p, i: g)[0]
    u = jax.vmap(each, axis_name="i")(jnp.array([1.0, 3.0]))
    np.testing.assert_allclose(u, [-2.0, -2.0])


def test_states_with_keys_and_counts():
    """Optax multiplies states by 0 and 1, which is not possible for keys."""
    noisy = steepest.chain(steepest.add_noise(0.1, 0.1, 0), steepest.sgd(0.1))
    tx = sam(noisy, noisy)
    state = tx.init(P)
    _, new = tx.update(P, state, P)
    assert new.opt_state[0].rng_key == state.opt_state[0].rng_key
    assert new.adv_state[0].rng_key != state.adv_state[0].rng_key


def test_normalize():
    assert NormalizeState is steepest.EmptyState
    tx = normalize()
    u, state = tx.update(P, tx.init(P))
    length = np.sqrt(sum(np.sum(x**2) for x in jax.tree.leaves(u)))
    np.testing.assert_allclose(length, 1, rtol=1e-6)
    assert isinstance(state, NormalizeState)


def test_normalizing_zeros_gives_zeros():
    """In Optax 0 / 0 is NaN, and so is SAM at a minimum."""
    zero = jax.tree.map(jnp.zeros_like, P)
    tx = sam(steepest.sgd(0.1), CLIMB)
    for u in (
        normalize().update(zero, normalize().init(zero))[0],
        tx.update(zero, tx.init(P), P)[0],
    ):
        assert not any(np.any(x != 0) for x in jax.tree.leaves(u))


def test_errors(as_users_do):
    down = steepest.sgd(0.1)
    for bad in (0, -1, 2.5):
        with pytest.raises(ValueError, match=f"sam: sync_period is {bad}"):
            sam(down, down, bad)
    with pytest.raises(TypeError, match="sam: adv_optimizer is a float"):
        sam(down, 0.1)
    tx = sam(down, down)
    with pytest.raises(ValueError, match="sam: `update` needs `params`"):
        tx.update(P, tx.init(P))
    tx = sam(down, down, opaque_mode=True)
    with pytest.raises(ValueError, match="sam: `update` needs `grad_fn`"):
        tx.update(P, tx.init(P), P)
