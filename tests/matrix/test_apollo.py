"""APOLLO: its updates, its projections, its limit, and the size of its state."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steepest
from steepest.matrix._apollo import random_projection

from ..optimizers._refused import INF, NAN, NOT_DTYPES, refuses
from ._difficult import DTYPES, stays_finite
from ._low_rank import low_rank

W = jax.random.normal(jax.random.key(0), (6, 10))
P = {
    "wide": W,
    "tall": 2 * W.T,
    "layers": jnp.stack([W, 3 * W + 1]),
    "head": W[:2],
    "b": W[0],
}
GS = [jax.tree.map(lambda x, t=t: jnp.cos(x + t * t), P) for t in range(6)]
KINDS = [
    (steepest.apollo, {"rank": 3}, {}),
    (steepest.apollo, {"rank": 3, "scale_type": "tensor"}, {"tensor": True}),
    (steepest.apollo, {"rank": 99, "scale": 4.0}, {"scale": 4.0}),
    (steepest.apollo_mini, {}, {"tensor": True, "scale": 128.0}),
]


def _projections(rank, gap, seed=0):
    """For the shorter side of six, in each step."""
    turns = [jnp.array(t // gap) for t in range(len(GS))]
    draw = lambda turn: random_projection(6, rank, seed, turn, jnp.float32)
    return [np.asarray(draw(turn), "float64") for turn in turns]


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("maker, options, kind", KINDS)
def test_a_few_steps_against_a_slow_reference(maker, options, kind, compiled):
    options = {"b2": 0.99, "weight_decay": 0.1, "update_proj_gap": 4, **options}
    tx = maker(0.1, **options, stacked="layers", seed=7)
    update = jax.jit(tx.update) if compiled else tx.update
    p, state = P, tx.init(P)
    for g in GS:
        u, state = update(g, state, p)
        p = steepest.apply_updates(p, u)
    start, gs = jax.tree.map(lambda x: np.asarray(x, "float64"), (P, GS))
    rank = min(options.get("rank", 1), 6)
    projections = _projections(rank, 4, seed=7)
    of = lambda p, gs: low_rank(p, gs, projections, 0.1, 0.1, fira=False, **kind)
    for name in ("wide", "tall"):
        want = of(start[name], [g[name] for g in gs])
        np.testing.assert_allclose(p[name], want, rtol=1e-4, atol=1e-5)
    for k in range(2):
        want = of(start["layers"][k], [g["layers"][k] for g in gs])
        np.testing.assert_allclose(p["layers"][k], want, rtol=1e-4, atol=1e-5)


def test_other_leaves_go_to_adamw():
    tx, adamw = steepest.apollo(0.1), steepest.adamw(0.1, weight_decay=0.0)
    u, _ = tx.update(P, tx.init(P), P)
    v, _ = adamw.update(P, adamw.init(P), P)
    np.testing.assert_allclose(u["b"], v["b"], rtol=1e-6)
    np.testing.assert_allclose(u["head"], v["head"], rtol=1e-6)


def test_projections_are_random_and_the_same_everywhere():
    draw = lambda seed, turn: random_projection(400, 50, seed, turn, jnp.float32)
    x = draw(0, jnp.array(3))
    again = jax.jit(draw, static_argnums=0)(0, jnp.array(3))
    np.testing.assert_allclose(x, again, rtol=1e-6)
    np.testing.assert_allclose(jnp.std(x), 50**-0.5, rtol=0.03)
    np.testing.assert_allclose(jnp.mean(x), 0, atol=0.005)
    for other in (draw(0, jnp.array(4)), draw(1, jnp.array(3))):
        assert abs(np.corrcoef(x.ravel(), other.ravel())[0, 1]) < 0.03


def test_the_step_is_along_the_gradient():
    """Each column is scaled, and with `tensor` the whole matrix."""
    tx = steepest.scale_by_apollo(3)
    u = np.asarray(tx.update(W, tx.init(W))[0])
    ratio = u / np.asarray(W)
    np.testing.assert_allclose(ratio, np.tile(ratio[:1], (6, 1)), rtol=1e-5)
    v = np.asarray(tx.update(W.T, tx.init(W.T))[0])
    np.testing.assert_allclose(v, u.T, rtol=1e-5)
    tx = steepest.scale_by_apollo(3, scale_type="tensor")
    ratio = np.asarray(tx.update(W, tx.init(W))[0] / W)
    np.testing.assert_allclose(ratio, ratio[0, 0], rtol=1e-5)


def test_steps_do_not_depend_on_the_size_of_the_gradient():
    for tx in (steepest.scale_by_apollo(2, eps=0), steepest.scale_by_fira(2, eps=0)):
        u = [tx.update(c * W, tx.init(W))[0] for c in (1e-12, 1.0, 1e12)]
        np.testing.assert_allclose(u[0], u[1], rtol=1e-3)
        np.testing.assert_allclose(u[2], u[1], rtol=1e-3)


def test_the_norm_grows_by_a_percent_at_most():
    tx = steepest.scale_by_apollo(3, b1=0.0, b2=0.0)
    state = tx.init(W)
    _, state = tx.update(W, state)
    first = float(state.norm)
    _, state = tx.update(jnp.cos(W), state._replace(norm=state.norm / 2))
    np.testing.assert_allclose(state.norm, 1.01 * first / 2, rtol=1e-5)
    _, state = tx.update(W, state._replace(norm=state.norm * 9))
    np.testing.assert_allclose(state.norm, first, rtol=0.5)


def test_it_gets_going_again_after_a_gradient_of_zero():
    """The authors' limit of 1.01 times zero would hold it for two thousand steps."""
    tx = steepest.scale_by_apollo(3)
    _, state = tx.update(0 * W, tx.init(W))
    u, _ = tx.update(W, state)
    assert float(jnp.linalg.norm(u)) > 1


def test_bytes():
    """Two arrays of (rank, longer side), and the norm; nothing for the projection."""
    shapes = {"w": jax.ShapeDtypeStruct((256, 1024), jnp.float32)}
    shapes["t"] = jax.ShapeDtypeStruct((3, 1024, 256), jnp.float32)
    for tx, rank in (
        (steepest.apollo(0.01, rank=64, stacked="t"), 64),
        (steepest.apollo_mini(0.01, stacked="t"), 1),
    ):
        t, w = steepest.describe(tx, shapes).lines
        assert w.bytes == 8 * rank * 1024 + 4
        assert t.bytes == 3 * w.bytes


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("maker", [steepest.apollo, steepest.apollo_mini])
def test_everything_stays_finite(maker, dtype):
    stays_finite(maker(0.1, update_proj_gap=20), dtype)


def test_its_moments_may_be_narrow():
    tx = steepest.apollo(0.1, mu_dtype="bfloat16", memory_dtype="float16")
    state = tx.init({"w": W}).inner_states["apollo"].inner_state[0]
    assert (state.mu["w"].dtype, state.nu["w"].dtype) == ("bfloat16", "float16")
    assert state.norm["w"].dtype == "float32"


def test_options_are_checked(as_users_do):
    refuses(
        steepest.scale_by_apollo,
        rank=[0, 1.5, NAN],
        b1=[2.0, NAN],
        b2=[-1.0, "1"],
        eps=[-1.0, NAN],
        mu_dtype=NOT_DTYPES,
        update_proj_gap=[0, 2.5],
        scale=[-1.0, NAN],
        growth=[0.0, NAN],
        seed=[-1, 0.5],
        scale_type=["row", None],
    )
    for maker in (steepest.apollo, steepest.apollo_mini, steepest.fira):
        refuses(maker, 0.1, adam_b1=[2.0], adam_eps=[-1.0], adam_learning_rate=[INF])
