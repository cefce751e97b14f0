"""NorMuon: equal steps for all output neurons."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steepest

from ..optimizers._refused import INF, NAN, NOT_DTYPES, NOT_FLAGS, refuses
from ..unusual import ODD
from ._reference import gradients, in_numpy, matrix, momentum, polar, run, updates


def _normuon(gs, p, *, rate=0.1, decay=0.1, scale="rms", nesterov=True, axis=0):
    """The paper, for a matrix whose "in" axis is this one."""
    nu = np.zeros(p.shape[1 - axis])
    for m in momentum(gs, 0.95, nesterov):
        o = polar(m)
        nu = 0.95 * nu + 0.05 * (o**2).mean(axis)
        x = o / np.expand_dims(np.sqrt(nu), axis)
        size = 0.2 * p.size**0.5
        if scale != "rms":
            c = (p.shape[1 - axis] / p.shape[axis]) ** 0.5
            size = np.linalg.norm(o) * (max(1, c) if scale == "original" else c)
        p = p - rate * (size * x / np.linalg.norm(x) + decay * p)
    return p, nu


@pytest.mark.parametrize("compiled", [True, False], ids=["compiled", "eager"])
@pytest.mark.parametrize("scale", ["rms", "original", "spectral"])
def test_a_few_steps_against_a_slow_reference(compiled, scale):
    p = {"wide": matrix(0, 4, 9), "tall": matrix(1, 9, 4), "torch": matrix(2, 4, 9)}
    tx = steepest.normuon(0.1, scale=scale, routes={"torch": "out in"})
    gs = gradients(p, 5)
    found, state = run(tx, p, gs, compiled=compiled)
    p, gs = in_numpy((p, gs))
    for name, x in p.items():
        axis = 1 if name == "torch" else 0
        want, nu = _normuon([g[name] for g in gs], x, scale=scale, axis=axis)
        np.testing.assert_allclose(found[name], want, rtol=1e-4, atol=1e-4)
        group = state.inner_states["out in" if name == "torch" else "normuon"]
        np.testing.assert_allclose(group.inner_state[0].nu[name], nu, rtol=1e-4)


def test_without_nesterov_it_is_the_mean():
    p = matrix(0, 4, 9)
    gs = gradients(p, 3)
    found, _ = run(steepest.normuon(0.1, nesterov=False), p, gs)
    want, _ = _normuon(*in_numpy((gs, p)), nesterov=False)
    np.testing.assert_allclose(found, want, rtol=1e-4, atol=1e-4)


def test_output_neurons_move_equally_far():
    """Those of Muon do not, if there are more outputs than inputs."""
    spread = lambda u: float(jnp.std(jnp.linalg.norm(u, axis=0)))
    g = matrix(0, 4, 9)
    u = updates(steepest.normuon(1.0, weight_decay=0.0), [g])[0]
    np.testing.assert_allclose(spread(u), 0, atol=1e-5)
    assert spread(updates(steepest.muon(1.0, weight_decay=0.0), [g])[0]) > 0.01
    np.testing.assert_allclose(jnp.sqrt(jnp.mean(u**2)), 0.2, rtol=1e-5)


def test_the_direction_alone():
    """`scale_by_normuon` has the norm of the polar factor."""
    g = matrix(0, 4, 9)
    u = updates(steepest.scale_by_normuon(), [g])[0]
    o = updates(steepest.scale_by_polar(), [g])[0]
    np.testing.assert_allclose(jnp.linalg.norm(u), jnp.linalg.norm(o), rtol=1e-5)
    state = steepest.scale_by_normuon().init(g)
    assert isinstance(state, steepest.ScaleByNorMuonState)
    assert state.nu.shape == (9,)


def test_there_is_a_number_for_each_output():
    g = matrix(1, 2, 3, 2, 5).astype("float32")
    words = {"conv": "in in in out", "torch": "out in in in", "heads": "in out out"}
    tx = steepest.normuon(0.1, routes=words)
    state = tx.init(dict.fromkeys(words, g))
    shapes = {"conv": (5,), "torch": (2,), "heads": (2, 2, 5)}
    for name, shape in shapes.items():
        nu = state.inner_states[words[name]].inner_state[0].nu[name]
        assert nu.shape == shape and nu.dtype == jnp.float32


def test_the_division_is_in_float32():
    """Also for params in bfloat16: the mean of squares would not move in 8 bits."""
    p = matrix(0, 4, 9).astype("bfloat16")
    tx = steepest.normuon(0.1)
    nu = tx.init(p).inner_states["normuon"].inner_state[0].nu
    assert nu.dtype == jnp.float32
    tx = steepest.normuon(0.1, memory_dtype="bfloat16")
    nu = tx.init(p).inner_states["normuon"].inner_state[0].nu
    assert nu.dtype == jnp.bfloat16


def test_its_numbers_can_be_injected():
    p = {"w": matrix(0, 4, 9), "b": matrix(0, 9)}
    tx = steepest.inject_hyperparams(steepest.normuon)(0.1)
    state = tx.init(p)
    assert {"learning_rate", "beta", "b2", "eps", "rms"} <= set(state.hyperparams)
    found, wanted = updates(tx, [p]), updates(steepest.normuon(0.1), [p])
    for x, y in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-4, atol=1e-6)


@pytest.mark.usefixtures("as_users_do")
def test_impossible_arguments_are_refused():
    refuses(
        steepest.normuon,
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
    with pytest.raises(ODD, match=r"expected a matrix. Use `normuon`, which"):
        tx = steepest.scale_by_normuon()
        tx.update(jnp.ones(2), tx.init(jnp.ones((2, 2))))
