"""Muon: its updates of matrices and of other leaves."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steepest
from steepest.numerics import polynomials

from ..optimizers._refused import INF, NAN, NOT_DTYPES, NOT_FLAGS, refuses
from ..unusual import ODD

W = jax.random.normal(jax.random.key(0), (4, 9))
P = {
    "wide": W,
    "tall": 2 * W.T,
    "layers": jnp.stack([W, 3 * W + 1]),
    "head": W[:2],
    "b": W[0],
}


def _first(tx, g, p=None):
    return tx.update(g, tx.init(g), g if p is None else p)[0]


def _values(x):
    return np.linalg.svd(np.asarray(x), compute_uv=False)


def _polar(m, name="polar_express"):
    """The slow reference: by SVD."""
    u, s, v = np.linalg.svd(m, full_matrices=False)
    s = s / np.sqrt((s**2).sum())
    for a, b, c in polynomials("x", name):
        s = a * s + b * s**3 + c * s**5
    return (u * s) @ v


def _adamw(gs, p, rate, decay):
    """Three lines of the paper."""
    mu = nu = 0 * p
    for t, g in enumerate(gs, 1):
        mu, nu = 0.9 * mu + 0.1 * g, 0.95 * nu + 0.05 * g * g
        u = mu / (1 - 0.9**t) / (np.sqrt(nu / (1 - 0.95**t)) + 1e-8)
        p = p - rate * (u + decay * p)
    return p


def _muon(gs, p, rate, decay):
    mu = 0 * p
    for g in gs:
        mu = 0.95 * mu + 0.05 * g
        u = 0.2 * max(p.shape) ** 0.5 * _polar(0.95 * mu + 0.05 * g)
        p = p - rate * (u + decay * p)
    return p


def test_a_few_steps_against_a_slow_reference():
    tx = steepest.muon(0.1, stacked="layers")
    gs = [jax.tree.map(lambda x, t=t: jnp.cos(x + t), P) for t in range(3)]

    @jax.jit
    def step(p, state, g):
        u, state = tx.update(g, state, p)
        return steepest.apply_updates(p, u), state

    p, state = P, tx.init(P)
    for g in gs:
        p, state = step(p, state, g)
    start, gs = jax.tree.map(lambda x: np.asarray(x, "float64"), (P, gs))
    column = lambda name: [g[name] for g in gs]
    for name in ("wide", "tall"):
        want = _muon(column(name), start[name], 0.1, 0.1)
        np.testing.assert_allclose(p[name], want, rtol=1e-4, atol=1e-4)
    for k in range(2):
        rows = [g[k] for g in column("layers")]
        want = _muon(rows, start["layers"][k], 0.1, 0.1)
        np.testing.assert_allclose(p["layers"][k], want, rtol=1e-4, atol=1e-4)
    want = _adamw(column("head"), start["head"], 0.1, 0.1)
    np.testing.assert_allclose(p["head"], want, rtol=1e-4)
    want = _adamw(column("b"), start["b"], 0.1, 0.0)
    np.testing.assert_allclose(p["b"], want, rtol=1e-4)


def test_what_is_kept():
    """One array per matrix, two per other leaf, and no separate count."""
    state = steepest.muon(0.1, stacked="layers").init(P)
    mine = state.inner_states["muon"].inner_state[0]
    assert isinstance(mine, steepest.ScaleByPolarState)
    assert mine._fields == ("mu",)
    assert len(jax.tree.leaves(mine)) == 3
    rest = state.inner_states["adam"].inner_state[0]
    assert len(jax.tree.leaves((rest.mu, rest.nu))) == 4


@pytest.mark.parametrize("dtype", [None, "float16", "bfloat16", "float32"])
def test_singular_values_are_in_the_band(dtype):
    """The singular values of the gradient go down to a hundredth of its size."""
    u, _, v = np.linalg.svd(np.asarray(W), full_matrices=False)
    g = jnp.asarray((u * np.geomspace(1, 0.02, 4)) @ v)
    tx = steepest.scale_by_polar(eps=0.0, dtype=dtype)
    slack = 0.1 if dtype == "bfloat16" else 0.01
    for x in (g, g.T, 1e-20 * g[:, :4]):
        values = _values(_first(tx, x))
        assert values.min() > 0.84 - slack and values.max() < 1.13 + slack


def test_more_steps_and_other_polynomials_come_nearer():
    tx = steepest.scale_by_polar(coefficients="deepseek")
    np.testing.assert_allclose(_values(_first(tx, W)), 1, atol=2e-3)
    tx = steepest.scale_by_polar(steps=8)
    np.testing.assert_allclose(_values(_first(tx, W)), 1, atol=1e-4)


def test_without_nesterov_it_is_the_mean():
    g, h = W, jnp.cos(W)
    tx = steepest.scale_by_polar(0.5, nesterov=False, coefficients="deepseek")
    _, state = tx.update(g, tx.init(g))
    u, state = tx.update(h, state)
    np.testing.assert_allclose(state.mu, 0.25 * g + 0.5 * h, rtol=1e-5)
    want = _polar(np.asarray(state.mu, "float64"), "deepseek")
    np.testing.assert_allclose(u, want, atol=1e-4)


@pytest.mark.parametrize("words", ["in out", "out in"])
def test_scales(words):
    """The effect of a step with learning rate 1 on the largest singular value."""

    def top(g, **options):
        tx = steepest.muon(
            1.0, weight_decay=0.0, steps=8, routes={"w": words}, **options
        )
        return float(_values(_first(tx, {"w": g})["w"])[0])

    out_in = 9 / 4 if words == "in out" else 4 / 9
    np.testing.assert_allclose(top(W), 0.2 * 3, rtol=1e-3)
    np.testing.assert_allclose(top(W.T, rms=0.1), 0.1 * 3, rtol=1e-3)
    spectral = top(W, scale="spectral"), top(W.T, scale="spectral")
    np.testing.assert_allclose(spectral, [out_in**0.5, out_in**-0.5], rtol=1e-3)
    original = top(W, scale="original"), top(W.T, scale="original")
    want = [max(1, out_in) ** 0.5, max(1, 1 / out_in) ** 0.5]
    np.testing.assert_allclose(original, want, rtol=1e-3)


def test_updates_are_as_large_as_those_of_adam():
    for g in (W, W.T, jnp.concatenate([W] * 3, 1)):
        u = _first(steepest.muon(0.5, weight_decay=0.0), g)
        rms = float(jnp.sqrt(jnp.mean(u**2)))
        np.testing.assert_allclose(rms, 0.2 * 0.5, rtol=0.1)


def test_tensors_are_matrices_by_their_words():
    """Folded, they are the matrices that they represent."""
    g = jax.random.normal(jax.random.key(1), (2, 3, 2, 5))
    p = {"conv": g, "torch": g, "heads": g, "stack": g}
    words = ["in in in out", "out in in in", "in out out", "muon"]
    tx = steepest.muon(
        0.1, routes=dict(zip(p, words, strict=True)), coefficients="dion"
    )
    assert set(tx.init(p).inner_states) == {"muon", *words[:3], "adam"}
    u = jax.jit(lambda g: _first(tx, g))(p)
    plain = steepest.muon(0.1, coefficients="dion")
    matrices = {
        "conv": [g.reshape(12, 5)],
        "torch": [g.reshape(2, 30)],
        "heads": [x.reshape(3, 10) for x in g],
        "stack": list(g.reshape(6, 2, 5)),
    }
    want = jax.jit(lambda g: _first(plain, g))(matrices)
    for name, found in u.items():
        rows = jnp.stack(want[name]).reshape(g.shape)
        np.testing.assert_allclose(found, rows, rtol=1e-4, atol=1e-6)


def test_it_says_where_each_leaf_goes():
    tx = steepest.chain(steepest.clip(1.0), steepest.muon(0.1, stacked="layers"))
    lines = {line.path: line for line in steepest.describe(tx, P).lines}
    assert lines["['layers']"].groups == ("muon",)
    assert lines["['layers']"].why == "a matrix in each layer"
    assert lines["['head']"].groups == ("adam",)
    assert lines["['head']"].why == "a head: 'head' in its path"
    assert "scale_by_polar" in lines["['wide']"].handled_by
    text = str(steepest.describe(tx, P)).split("\n")
    assert text[0].split()[:5] == ["leaf", "shape", "dtype", "group", "why"]
    assert "adam   a head: 'head' in its path" in text[3]


def test_learning_rates_of_its_own():
    tx = steepest.muon(
        0.1, adam_learning_rate=lambda count: jnp.zeros(()), adam_weight_decay=0.5
    )
    u = _first(tx, {"w": W, "b": W[0], "embed": W})
    assert np.all(u["b"] == 0) and np.all(u["embed"] == 0) and np.any(u["w"] != 0)


def test_decay_has_a_mask():
    zero = jax.tree.map(jnp.zeros_like, P)
    tx = steepest.muon(1.0, stacked="layers")
    u = tx.update(zero, tx.init(P), P)[0]
    for name in ("wide", "tall", "layers", "head"):
        np.testing.assert_allclose(u[name], -0.1 * P[name], rtol=1e-6)
    assert np.all(u["b"] == 0)
    tx = steepest.muon(1.0, weight_decay_mask="wide|b", stacked="layers")
    u = tx.update(zero, tx.init(P), P)[0]
    np.testing.assert_allclose(u["b"], -0.1 * P["b"], rtol=1e-6)
    assert np.all(u["tall"] == 0) and np.all(u["head"] == 0)


def test_its_numbers_can_be_injected():
    make = steepest.inject_hyperparams(steepest.muon)
    tx, plain = make(0.1, stacked="layers"), steepest.muon(0.1, stacked="layers")
    state = tx.init(P)
    numbers = {"learning_rate", "beta", "weight_decay", "eps", "rms"}
    assert set(state.hyperparams) == numbers | {"adam_b1", "adam_b2", "adam_eps"}
    for found, want in zip(
        jax.tree.leaves(tx.update(P, state, P)[0]),
        jax.tree.leaves(_first(plain, P)),
        strict=True,
    ):
        np.testing.assert_allclose(found, want, rtol=1e-5, atol=1e-6)


@pytest.mark.usefixtures("as_users_do")
def test_impossible_arguments_are_refused():
    refuses(
        steepest.muon,
        0.1,
        rms=[-1.0, INF, NAN, "1"],
        scale=["best", None, []],
        adam_b1=[1.5, -0.1],
        adam_b2=[1.5],
        adam_eps=[-1.0],
        beta=[1.5, "1"],
        eps=[-1.0, NAN],
        mu_dtype=NOT_DTYPES,
        dtype=NOT_DTYPES,
        nesterov=NOT_FLAGS,
        coefficients=["best", (1.0, 2.0)],
        steps=[0, 1.5],
    )
    with pytest.raises(ODD, match=r"leaf \['b'\] has shape \(2,\), expected a matr"):
        _first(steepest.scale_by_polar(), {"b": jnp.ones(2)})
    with pytest.raises(TypeError, match="muon: there is no argument `ns_steps`"):
        steepest.muon(0.1, ns_steps=3)
