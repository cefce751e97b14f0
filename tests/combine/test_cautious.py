"""Cautious optimizers: against the paper, and which updates count as agreeing."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steepest

W = jax.random.normal(jax.random.key(0), (5, 3))
P = {"w": W, "b": W[0], "none": None}
GS = [jax.tree.map(lambda x, t=t: jnp.cos(3 * x + 2 * t), P) for t in range(6)]

ways = pytest.mark.parametrize("compiled", [True, False], ids=["compiled", "eager"])


def _run(tx, p=P, gs=GS, *, compiled=True):
    update = jax.jit(tx.update) if compiled else tx.update
    state = tx.init(p)
    for g in gs:
        u, state = update(g, state, p)
        p = steepest.apply_updates(p, u)
    return p, state


def _paper(gs, p, rate, decay):
    """Cautious AdamW, line for line, in float64."""
    m = v = 0 * p
    for t, g in enumerate(gs, 1):
        m, v = 0.9 * m + 0.1 * g, 0.99 * v + 0.01 * g * g
        u = m / (1 - 0.9**t) / (np.sqrt(v / (1 - 0.99**t)) + 1e-8)
        mask = (m * g > 0).astype(float)
        u = u * mask / max(mask.mean(), 1e-3)
        p = p - rate * (u + decay * p)
    return p


@ways
def test_cautious_adamw_is_that_of_the_paper(compiled):
    tx = steepest.chain(
        steepest.cautious(steepest.scale_by_adam(b2=0.99), descent=False),
        steepest.add_decayed_weights(0.1),
        steepest.scale_by_learning_rate(0.05),
    )
    p, _ = _run(tx, compiled=compiled)
    for name in ("w", "b"):
        column = [np.asarray(g[name], float) for g in GS]
        want = _paper(column, np.asarray(P[name], float), 0.05, 0.1)
        np.testing.assert_allclose(p[name], want, rtol=2e-5, atol=1e-6)
    assert p["none"] is None


@ways
def test_an_optimizer_is_masked_like_its_direction(compiled):
    inside = steepest.chain(
        steepest.cautious(steepest.scale_by_adam(), descent=False),
        steepest.scale_by_learning_rate(0.1),
    )
    around = steepest.cautious(steepest.adam(0.1))
    a, _ = _run(inside, compiled=compiled)
    b, _ = _run(around, compiled=compiled)
    jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, rtol=1e-5), a, b)


def test_some_entries_are_masked_and_the_mean_is_kept():
    """A mask of half the entries doubles the others."""
    tx = steepest.cautious(steepest.sgd(1.0, momentum=0.9))
    p = jnp.zeros(4)
    _, state = tx.update(jnp.ones(4), tx.init(p), p)
    g = jnp.array([0.5, 0.5, -0.1, -0.1])
    u, _ = tx.update(g, state, p)
    np.testing.assert_allclose(u, [-2.8, -2.8, 0, 0], rtol=1e-6)


def test_a_direction_and_a_whole_optimizer_are_told_apart():
    rate = steepest.scale_by_learning_rate(0.1)
    for direction in (
        steepest.scale_by_adam(),
        steepest.scale_by_lion(),
        steepest.chain(steepest.scale_by_adam(), steepest.scale_by_trust_ratio()),
    ):
        steepest.cautious(direction, descent=False)
        steepest.cautious(steepest.chain(direction, rate))
        with pytest.raises(ValueError, match="descent is True"):
            steepest.cautious(direction)
        with pytest.raises(ValueError, match="descent is False"):
            steepest.cautious(steepest.chain(direction, rate), descent=False)
        with pytest.raises(ValueError, match="descent is True"):
            steepest.cautious(steepest.guard(direction))
    # These may go either way.
    steepest.cautious(steepest.chain(steepest.scale_by_adam(), steepest.scale(-0.1)))
    steepest.cautious(steepest.scale_by_schedule(lambda t: -0.1))
    steepest.cautious(steepest.identity(), descent=False)


def test_tiny_numbers_still_agree():
    """Their product underflows; so does that of the mask in float16."""
    g = jnp.full(4, 1e-30)
    u, _ = steepest.cautious(steepest.sgd(1e-5)).update(g, _run(steepest.sgd(1.0))[1])
    np.testing.assert_allclose(u, -1e-35, rtol=1e-5)


def test_the_floor_bounds_the_factor():
    p = jnp.zeros(10_000)
    shift = steepest.stateless(lambda g, p: -jnp.abs(g))
    for floor, factor in ((1e-3, 1e3), (1e-2, 1e2)):
        tx = steepest.cautious(shift, floor=floor)
        g = jnp.full(10_000, -1.0).at[0].set(1.0)
        u, _ = tx.update(g, tx.init(p), p)
        np.testing.assert_allclose([u[0], u[1]], [-factor, 0], rtol=1e-5)


def test_nothing_agrees_and_nothing_moves():
    tx = steepest.cautious(steepest.sgd(0.1), descent=True)
    up = steepest.cautious(steepest.scale(0.1))
    g = jnp.ones(3)
    assert float(jnp.abs(up.update(g, up.init(g))[0]).max()) == 0
    assert float(jnp.abs(tx.update(0 * g, tx.init(g))[0]).max()) == 0


def test_a_nan_is_not_hidden():
    g = jnp.array([jnp.nan, 1.0])
    tx = steepest.cautious(steepest.adam(0.1))
    u, _ = tx.update(g, tx.init(g))
    assert np.isnan(u[0])


def test_complex_entries_agree_if_the_angle_is_below_90_degrees():
    turn = steepest.stateless(lambda g, p: g * jnp.array([1j, 1 + 1j, -1, 1 - 0.5j]))
    g = jnp.array([1.0, 1j, 1.0, 2 + 1j]).astype("complex64")
    tx = steepest.cautious(turn, descent=False)
    u, _ = tx.update(g, tx.init(g))
    assert (np.asarray(u) != 0).tolist() == [False, True, False, True]


def test_the_state_is_that_of_the_inner_transformation():
    inner = steepest.adamw(0.1)
    tx = steepest.cautious(inner)
    assert jax.tree.structure(tx.init(P)) == jax.tree.structure(inner.init(P))
    _, state = _run(tx, gs=GS[:1])
    _, want = _run(inner, gs=GS[:1])
    jax.tree.map(np.testing.assert_array_equal, state, want)


def test_it_can_be_read_described_and_written():
    tx = steepest.cautious(steepest.adam(steepest.linear_schedule(0.1, 0.0, 10)))
    _, state = _run(tx)
    rate = steepest.read(state, "learning_rate", tx)
    np.testing.assert_allclose(rate, 0.05, rtol=1e-5)
    (line, *_) = steepest.describe(tx, P).lines
    assert "cautious(scale_by_adam" in str(steepest.describe(tx, P)), line
    again = steepest.from_config(steepest.to_config(tx))
    assert again == tx


def test_extra_arguments_are_passed_on():
    tx = steepest.cautious(steepest.contrib.momo(1.0))
    p = jnp.ones(3)
    u, _ = tx.update(p, tx.init(p), p, value=jnp.array(1.5))
    assert np.all(np.isfinite(u)) and np.any(u != 0)


def test_it_can_be_masked():
    tx = steepest.masked(steepest.cautious(steepest.adam(0.1)), {"w": True, "b": False})
    p = {k: P[k] for k in ("w", "b")}
    g = {k: GS[0][k] for k in ("w", "b")}
    u, _ = tx.update(g, tx.init(p), p)
    np.testing.assert_array_equal(u["b"], g["b"])


@pytest.mark.parametrize("floor", [0.0, -1.0, float("inf"), float("nan")])
def test_bad_floors(floor, as_users_do):
    with pytest.raises(ValueError, match="cautious: floor is"):
        steepest.cautious(steepest.sgd(0.1), floor=floor)
