"""MuonH and AdamH: their groups, and their steps against a slow reference."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steepest
from steepest.numerics import polynomials

W = jax.random.normal(jax.random.key(0), (4, 9))
P = {
    "wide": W,
    "tall": 2 * W.T,
    "layers": jnp.stack([W, 3 * W + 1]),
    "conv": jnp.stack([W, W + 1]).reshape(2, 2, 2, 9),
    "head": W[:2],
    "b": W[0],
}
ROUTES = {"conv": "in in in out"}
GS = [jax.tree.map(lambda x, t=t: jnp.cos(x + t), P) for t in range(4)]

ways = pytest.mark.parametrize("compiled", [True, False], ids=["compiled", "eager"])


def _polar(m):
    u, s, v = np.linalg.svd(m, full_matrices=False)
    s = s / np.sqrt((s**2).sum())
    for a, b, c in polynomials("x", "polar_express"):
        s = a * s + b * s**3 + c * s**5
    return (u * s) @ v


def _muon(gs):
    mu = 0 * gs[0]
    for g in gs:
        mu = 0.95 * mu + 0.05 * g
        yield _polar(0.95 * mu + 0.05 * g)


def _adam(gs):
    m = v = 0 * gs[0]
    for t, g in enumerate(gs, 1):
        m, v = 0.9 * m + 0.1 * g, 0.95 * v + 0.05 * g * g
        yield m / (1 - 0.9**t) / (np.sqrt(v / (1 - 0.95**t)) + 1e-8)


def _held(us, p, rate):
    size = np.linalg.norm(p)
    for u in us:
        w = p - rate * size * u / np.linalg.norm(u)
        p = size * w / np.linalg.norm(w)
    return p


def _run(tx, *, compiled):
    update = jax.jit(tx.update) if compiled else tx.update
    p, state = P, tx.init(P)
    for g in GS:
        u, state = update(g, state, p)
        p = steepest.apply_updates(p, u)
    return p, state


@ways
@pytest.mark.parametrize("name", ["muon_h", "adam_h"])
def test_a_few_steps_against_a_slow_reference(name, compiled):
    make, direction = {
        "muon_h": (steepest.muon_h, _muon),
        "adam_h": (steepest.adam_h, _adam),
    }[name]
    tx = make(0.1, 0.01, stacked="layers", routes=ROUTES, adam_weight_decay=0.2)
    p, _ = _run(tx, compiled=compiled)
    start, gs = jax.tree.map(lambda x: np.asarray(x, "float64"), (P, GS))
    matrices = {
        "wide": lambda x: [x["wide"]],
        "tall": lambda x: [x["tall"]],
        "layers": lambda x: list(x["layers"]),
        "conv": lambda x: [x["conv"].reshape(8, 9)],
    }
    for of in matrices.values():
        for k, one in enumerate(of(start)):
            want = _held(direction([of(g)[k] for g in gs]), one, 0.1)
            found = of(jax.tree.map(np.asarray, p))[k]
            np.testing.assert_allclose(found, want, rtol=1e-4, atol=1e-4)
            size = np.linalg.norm(one)
            np.testing.assert_allclose(np.linalg.norm(found), size, rtol=1e-6)
    for key, decay in (("head", 0.2), ("b", 0.0)):
        want = start[key]
        for u in _adam([g[key] for g in gs]):
            want = want - 0.01 * (u + decay * want)
        np.testing.assert_allclose(p[key], want, rtol=1e-4, atol=1e-5)


def test_what_is_kept():
    """Beside the state of the direction: a count, and a number for each matrix."""
    tx = steepest.muon_h(0.1, 0.01, stacked="layers", routes=ROUTES)
    state = tx.init(P)
    mine = state.inner_states["muon_h"].inner_state
    assert isinstance(mine[0], steepest.ScaleByPolarState)
    assert isinstance(mine[1], steepest.HyperballState)
    assert mine[1].radius["layers"].shape == (2,)
    assert mine[1].radius["wide"].shape == ()
    conv = state.inner_states["in in in out"].inner_state[1]
    assert conv.radius["conv"].shape == ()


def test_groups_are_those_of_muon():
    kinds = {}
    for tx in (
        steepest.muon(0.1, stacked="layers"),
        steepest.muon_h(0.1, 0.1, stacked="layers"),
        steepest.adam_h(0.1, 0.1, stacked="layers"),
    ):
        lines = steepest.describe(tx, P).lines
        kinds[tx.call.name] = [line.groups == ("adam",) for line in lines]
    assert kinds["muon"] == kinds["muon_h"] == kinds["adam_h"]
    assert 0 < sum(kinds["muon"]) < len(P)


def test_both_learning_rates_are_needed():
    """They have different units, so neither is the default of the other."""
    for make in (steepest.muon_h, steepest.adam_h):
        with pytest.raises(TypeError, match="adam_learning_rate"):
            make(0.02)


def test_schedules_and_configs():
    tx = steepest.adam_h(
        steepest.linear_schedule(0.1, 0.0, 10),
        steepest.constant_schedule(0.01),
        radius="now",
    )
    _, state = _run(tx, compiled=True)
    found = {
        one.name: float(one.value)
        for one in steepest.engine.shown(tx, state)
        if "adam_h" in one.groups
    }
    np.testing.assert_allclose(found["learning_rate"], 0.07, rtol=1e-5)
    assert steepest.from_config(steepest.to_config(tx)) == tx
    tx = steepest.muon_h(0.1, 0.01)
    assert steepest.from_config(steepest.to_config(tx)) == tx


def test_a_matrix_of_zeros_warns():
    with pytest.warns(UserWarning, match=r"hyperball: .*\(4, 9\) has a matrix of zero"):
        steepest.muon_h(0.1, 0.1).init({"kernel": 0 * W, "bias": 0 * W[0]})
