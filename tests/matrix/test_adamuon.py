"""AdaMuon: the polar factor of signs, divided by its root mean square."""

import jax.numpy as jnp
import numpy as np
import pytest

import steepest

from ..optimizers._refused import INF, NAN, NOT_DTYPES, NOT_FLAGS, refuses
from ._reference import gradients, in_numpy, matrix, momentum, polar, run, updates


def _adamuon(gs, p, *, rate=0.1, decay=0.1, scale="rms", nesterov=True):
    """The paper, for a matrix of shape (in, out)."""
    nu = 0 * p
    for m in momentum(gs, 0.95, nesterov):
        o = polar(np.sign(m))
        nu = 0.95 * nu + 0.05 * o**2
        x = o / (np.sqrt(nu) + 1e-8)
        size = 0.2 * p.size**0.5
        if scale != "rms":
            c = (p.shape[1] / p.shape[0]) ** 0.5
            size = np.linalg.norm(o) * (max(1, c) if scale == "original" else c)
        p = p - rate * (size * x / np.linalg.norm(x) + decay * p)
    return p


@pytest.mark.parametrize("compiled", [True, False], ids=["compiled", "eager"])
@pytest.mark.parametrize("nesterov", [True, False])
@pytest.mark.parametrize("scale", ["rms", "original", "spectral"])
def test_a_few_steps_against_a_slow_reference(compiled, nesterov, scale):
    p = {"wide": matrix(0, 4, 9), "tall": matrix(1, 9, 4)}
    tx = steepest.adamuon(0.1, scale=scale, nesterov=nesterov)
    gs = gradients(p, 5)
    found, _ = run(tx, p, gs, compiled=compiled)
    p, gs = in_numpy((p, gs))
    for name, x in p.items():
        column = [g[name] for g in gs]
        want = _adamuon(column, x, scale=scale, nesterov=nesterov)
        np.testing.assert_allclose(found[name], want, rtol=2e-4, atol=2e-4)


def test_the_first_step_has_elements_of_equal_size():
    """`o / sqrt((1 - b2) o^2)` is a sign."""
    u = updates(steepest.adamuon(1.0, weight_decay=0.0), [matrix(0, 4, 9)])[0]
    np.testing.assert_allclose(jnp.abs(u), 0.2, rtol=1e-4)


def test_only_signs_of_the_gradient_matter_in_the_first_step():
    g = matrix(0, 4, 9)
    tx = steepest.adamuon(0.1)
    found = updates(tx, [jnp.sign(g) * jnp.exp(3 * matrix(1, 4, 9))], g)[0]
    np.testing.assert_allclose(found, updates(tx, [g], g)[0], rtol=1e-4)


def test_the_direction_alone():
    """`scale_by_adamuon` has the norm of the polar factor."""
    g = matrix(0, 4, 9)
    u = updates(steepest.scale_by_adamuon(), [g])[0]
    o = updates(steepest.scale_by_polar(nesterov=False), [jnp.sign(g)])[0]
    np.testing.assert_allclose(jnp.linalg.norm(u), jnp.linalg.norm(o), rtol=1e-5)
    state = steepest.scale_by_adamuon().init(g.astype("bfloat16"))
    assert isinstance(state[1], steepest.ScaleByAdaMuonState)
    assert state[0].mu.dtype == jnp.bfloat16 and state[1].nu.dtype == jnp.float32


@pytest.mark.usefixtures("as_users_do")
def test_impossible_arguments_are_refused():
    refuses(
        steepest.adamuon,
        0.1,
        rms=[-1.0, INF, NAN, "1"],
        scale=["best", None, []],
        adam_b1=[1.5, -0.1],
        beta=[1.5, "1"],
        b2=[1.5, "1"],
        eps=[-1.0, NAN],
        mu_dtype=NOT_DTYPES,
        dtype=NOT_DTYPES,
        nesterov=NOT_FLAGS,
        coefficients=["best", (1.0, 2.0)],
        steps=[0, 1.5],
    )
