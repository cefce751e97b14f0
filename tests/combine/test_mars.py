"""MARS: against the paper, the first step, and what it keeps."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steepest

W = jax.random.normal(jax.random.key(0), (5, 3))
P = {"w": W, "b": 0.1 * W[0], "none": None}
GS = [jax.tree.map(lambda x, t=t: jnp.cos(3 * x + 2 * t), P) for t in range(6)]

ways = pytest.mark.parametrize("compiled", [True, False], ids=["compiled", "eager"])


def _run(tx, p=P, gs=GS, *, compiled=True):
    update = jax.jit(tx.update) if compiled else tx.update
    state = tx.init(p)
    for g in gs:
        u, state = update(g, state, p)
        p = steepest.apply_updates(p, u)
    return p, state


def _paper(gs, p, rate, decay, gamma=0.025):
    """MARS-AdamW, line for line, in float64."""
    m = v = 0 * p
    last = gs[0]
    for t, g in enumerate(gs, 1):
        c = g + gamma * 0.95 / 0.05 * (g - last)
        c = c / max(1, np.sqrt((c**2).sum()))
        m, v = 0.95 * m + 0.05 * c, 0.99 * v + 0.01 * c * c
        u = m / (1 - 0.95**t) / (np.sqrt(v / (1 - 0.99**t)) + 1e-8)
        p, last = p - rate * (u + decay * p), g
    return p


def _mars_adamw(**options):
    return steepest.chain(
        steepest.mars(steepest.scale_by_adam(0.95, 0.99), **options),
        steepest.add_decayed_weights(0.1),
        steepest.scale_by_learning_rate(0.05),
    )


@ways
def test_mars_adamw_is_that_of_the_paper(compiled):
    p, _ = _run(_mars_adamw(), compiled=compiled)
    for name in ("w", "b"):
        column = [np.asarray(g[name], float) for g in GS]
        want = _paper(column, np.asarray(P[name], float), 0.05, 0.1)
        np.testing.assert_allclose(p[name], want, rtol=2e-5, atol=2e-6)


def test_the_previous_gradient_in_bfloat16():
    p, state = _run(_mars_adamw(g_prev_dtype="bfloat16"))
    assert state[0][0].g_prev["w"].dtype == jnp.bfloat16
    want, _ = _run(_mars_adamw())
    jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, atol=2e-2), p, want)
    kept = _mars_adamw(g_prev_dtype="bfloat16").init(jnp.ones(2, "complex64"))
    assert kept[0][0].g_prev.dtype == jnp.complex64


def test_the_first_step_is_that_of_the_inner_transformation():
    """Not 1.475 times as long, as with a previous gradient of zero."""
    g = 0.1 * W
    tx = steepest.mars(steepest.sgd(1.0))
    u, state = tx.update(g, tx.init(W), W)
    np.testing.assert_allclose(u, -g, rtol=1e-6)
    u, _ = tx.update(1.1 * g, state, W)
    np.testing.assert_allclose(u, -(1.1 + 0.475 * 0.1) * g, rtol=1e-4)


def test_without_gamma_it_only_clips():
    tx = steepest.mars(steepest.sgd(0.1), 0.0, max_norm=None)
    a, _ = _run(tx)
    b, _ = _run(steepest.sgd(0.1))
    jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, rtol=1e-6), a, b)


def test_each_leaf_is_clipped_by_its_own_norm():
    tx = steepest.mars(steepest.sgd(1.0), max_norm=2.0)
    g = {"w": 10 * W, "b": 0.1 * W[0], "s": jnp.array(1e30), "z": jnp.zeros((0, 2))}
    u, _ = tx.update(g, tx.init(g))
    np.testing.assert_allclose(jnp.linalg.norm(u["w"]), 2.0, rtol=1e-5)
    np.testing.assert_allclose(u["b"], -g["b"], rtol=1e-6)
    np.testing.assert_allclose(u["s"], -2.0, rtol=1e-5)


def test_a_schedule_for_gamma():
    tx = steepest.mars(
        steepest.sgd(1.0), lambda t: 0.1 * t.astype(float), max_norm=None
    )
    state, p = tx.init(jnp.zeros(1)), jnp.zeros(1)
    found = []
    for g in (1.0, 2.0, 4.0):
        u, state = tx.update(jnp.array([g]), state, p)
        found.append(-float(u[0]))
    s = 0.1 * 0.95 / 0.05
    np.testing.assert_allclose(found, [1, 2 + s, 4 + 2 * s * 2], rtol=1e-5)


@pytest.mark.parametrize(("dtype", "size"), [(None, 12), ("bfloat16", 10)])
def test_bytes_for_each_param(dtype, size):
    state = _mars_adamw(g_prev_dtype=dtype).init(jnp.zeros((100, 100)))
    assert sum(x.nbytes for x in jax.tree.leaves(state) if x.ndim) == size * 100**2


def test_it_joins_the_pass_of_its_neighbours():
    """It is a rule: one segment with Adam, the decay and the learning rate."""
    assert len(_mars_adamw().info._segments) == 1


def test_it_can_be_read_described_and_written():
    tx = steepest.mars(steepest.adam(steepest.linear_schedule(0.1, 0.0, 10)))
    _, state = _run(tx)
    rate = steepest.read(state, "learning_rate", tx)
    np.testing.assert_allclose(rate, 0.05, rtol=1e-5)
    assert "mars" in str(steepest.describe(tx, P))
    assert steepest.from_config(steepest.to_config(tx)) == tx


def test_a_skipped_step_keeps_the_previous_gradient():
    tx = steepest.guard(_mars_adamw())
    _, state = _run(tx, gs=GS[:2])
    bad = jax.tree.map(lambda x: x * jnp.nan, GS[2])
    _, after = jax.jit(tx.update)(bad, state, P)
    jax.tree.map(np.testing.assert_array_equal, after.inner_state, state.inner_state)


@pytest.mark.parametrize("b1", [0.0, 1.0, -0.5, float("nan")])
def test_bad_decay_rates(b1, as_users_do):
    with pytest.raises(ValueError, match="mars: b1 is"):
        steepest.mars(steepest.sgd(0.1), b1=b1)


@pytest.mark.parametrize("max_norm", [0.0, -1.0, float("nan")])
def test_bad_norms(max_norm, as_users_do):
    with pytest.raises(ValueError, match="mars: max_norm is"):
        steepest.mars(steepest.sgd(0.1), max_norm=max_norm)
