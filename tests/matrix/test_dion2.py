"""Dion2: the polar factor of the largest rows."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steepest
from steepest.matrix._dion2 import rows_of

from ..optimizers._refused import INF, NAN, NOT_DTYPES, refuses
from ._reference import gradients, in_numpy, matrix, polar, run, updates


def _dion2(gs, p, *, columns, k, rate=0.1, decay=0.1, factor=None):
    """The paper. `columns` tells the selected side of a matrix of shape (in, out)."""
    m = 0 * p
    c = (p.shape[1] / p.shape[0]) ** 0.5 if factor is None else factor
    for g in gs:
        m = m + g
        turned = m.T if columns else m
        chosen = np.sort(np.argsort(-np.abs(turned).sum(1))[:k])
        u = 0 * turned
        u[chosen] = polar(turned[chosen])
        turned[chosen] = 0.95 * turned[chosen]
        m, u = (turned.T, u.T) if columns else (turned, u)
        p = p - rate * (c * u + decay * p)
    return p, m


@pytest.mark.parametrize("compiled", [True, False], ids=["compiled", "eager"])
def test_a_few_steps_against_a_slow_reference(compiled):
    p = {
        "wide": matrix(0, 5, 9),
        "tall": matrix(1, 9, 5),
        "square": matrix(2, 6, 6),
        "layers": matrix(3, 2, 5, 9),
    }
    tx = steepest.dion2(0.1, fraction=0.3, weight_decay=0.1, stacked="layers")
    gs = gradients(p, 8)
    found, state = run(tx, p, gs, compiled=compiled)
    mu = state.inner_states["dion2"].inner_state[0].mu
    p, gs = in_numpy((p, gs))
    for name, columns in {"wide": False, "tall": True, "square": True}.items():
        column = [g[name] for g in gs]
        want, m = _dion2(column, p[name], columns=columns, k=2)
        np.testing.assert_allclose(found[name], want, rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(mu[name], m, rtol=1e-4, atol=1e-5)
    for k in range(2):
        column = [g["layers"][k] for g in gs]
        want, m = _dion2(column, p["layers"][k], columns=False, k=2)
        np.testing.assert_allclose(found["layers"][k], want, rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(mu["layers"][k], m, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("side, columns", [("in", False), ("out", True)])
def test_the_side_can_be_chosen(side, columns):
    p = matrix(0, 5, 9)
    gs = gradients(p, 4)
    tx = steepest.dion2(0.1, fraction=0.4, weight_decay=0.1, side=side)
    found, _ = run(tx, p, gs)
    k = rows_of(9 if columns else 5, 0.4)
    want, _ = _dion2(*in_numpy((gs, p)), columns=columns, k=k)
    np.testing.assert_allclose(found, want, rtol=1e-4, atol=1e-4)
    turned, _ = run(
        steepest.dion2(
            0.1, fraction=0.4, weight_decay=0.1, side=side, routes={"": "out in"}
        ),
        p.T,
        [g.T for g in gs],
    )
    np.testing.assert_allclose(turned.T, found, rtol=1e-4, atol=1e-5)


def test_the_factor_is_that_of_the_whole_shape():
    p = matrix(0, 5, 9)
    for scale, factor in {"rms": 0.2 * 3, "original": (9 / 5) ** 0.5}.items():
        tx = steepest.dion2(0.1, fraction=0.4, weight_decay=0.1, scale=scale)
        gs = gradients(p, 2)
        found, _ = run(tx, p, gs)
        want, _ = _dion2(*in_numpy((gs, p)), columns=False, k=2, factor=factor)
        np.testing.assert_allclose(found, want, rtol=1e-4, atol=1e-4)


def test_all_rows_decay_and_few_move():
    p = matrix(0, 8, 9)
    u = updates(steepest.dion2(1.0, fraction=0.25, weight_decay=0.5), [p], p)[0]
    moved = jnp.any(jnp.abs(u + 0.5 * p) > 1e-6, axis=1)
    assert int(moved.sum()) == 2


def test_rows_that_are_not_used_keep_their_sum():
    g = jnp.ones((4, 6)) * jnp.array([[1.0], [2.0], [3.5], [4.0]])
    tx = steepest.scale_by_dion2(beta=0.5)
    state = tx.init(g)
    used = []
    for _ in range(4):
        u, state = tx.update(g, state)
        used += jnp.flatnonzero(jnp.any(u != 0, axis=1)).tolist()
    assert used == [3, 2, 3, 2]
    np.testing.assert_allclose(state.mu[:, 0], [4.0, 8.0, 5.25, 9.0])


def test_with_all_rows_it_is_muon_on_a_sum():
    """If nothing remains of the sum, it is the polar factor of the gradient."""
    gs = [matrix(k, 4, 9) for k in range(2)]
    found = updates(steepest.scale_by_dion2(beta=0.0, fraction=1.0), gs)
    wanted = updates(steepest.scale_by_polar(beta=0.0), gs)
    for x, y in zip(found, wanted, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "side, fraction, k",
    [(30, 0.1, 3), (4, 0.25, 1), (5, 0.25, 2), (3, 1e-9, 1), (7, 1, 7), (1, 0.25, 1)],
)
def test_the_number_of_rows(side, fraction, k):
    assert rows_of(side, fraction) == k


def test_equal_shapes_share_one_program():
    """Twenty matrices take as many products as one."""
    tx = steepest.dion2(0.1)

    def products(n):
        p = {f"w{k}": matrix(k, 8, 12) for k in range(n)}
        jaxpr = jax.make_jaxpr(tx.update)(p, tx.init(p), p)
        return str(jaxpr).count("dot_general")

    assert products(20) == products(1) > 0


@pytest.mark.usefixtures("as_users_do")
def test_impossible_arguments_are_refused():
    refuses(
        steepest.dion2,
        0.1,
        rms=[-1.0, INF, "1"],
        scale=["best", None],
        beta=[1.5, "1"],
        fraction=[0.0, -1, 1.5, NAN, "1", None, jnp.array(0.5)],
        side=["rows", None],
        eps=[-1.0, NAN],
        mu_dtype=NOT_DTYPES,
        dtype=NOT_DTYPES,
        coefficients=["best", (1.0, 2.0)],
        steps=[0, 1.5],
    )
