"""Scion: the norm of each leaf, and the steepest step in it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steepest
from steepest.matrix._lmo import NORMS

from ..optimizers._refused import INF, NAN, NOT_DTYPES, NOT_FLAGS, refuses
from ..unusual import ODD
from ._reference import gradients, in_numpy, matrix, momentum, polar, run, updates

P = {
    "embed": matrix(0, 7, 4),
    "mlp": {"kernel": matrix(1, 4, 9), "bias": matrix(2, 9)},
    "layers": {"kernel": matrix(3, 2, 4, 9), "norm": matrix(4, 2, 9)},
    "head": matrix(5, 4, 7),
    "s": jnp.array(2.0),
}


def _rms(x, axis):
    return np.sqrt((x**2).mean(axis, keepdims=True))


# The table of the paper, for matrices of shape (in, out).
LMOS = {
    "spectral": lambda m: (m.shape[1] / m.shape[0]) ** 0.5 * polar(m),
    "sign": np.sign,
    "sign/in": lambda m: np.sign(m) / m.shape[0],
    "colnorm": lambda m: m / _rms(m, 1),
    "colnorm/in": lambda m: m / _rms(m, 1) / m.shape[0],
    "rownorm": lambda m: m / np.linalg.norm(m, axis=0) / m.shape[0] ** 0.5,
    "rms": lambda m: m / _rms(m, None),
}
assert set(LMOS) == set(NORMS)


def _scion(norm, gs, p, radius, *, constrained, rate=0.01):
    for m in momentum(gs, 0.9, nesterov=False):
        p = ((1 - rate) * p if constrained else p) - rate * radius * LMOS[norm](m)
    return p


@pytest.mark.parametrize("compiled", [True, False], ids=["compiled", "eager"])
@pytest.mark.parametrize("constrained", [True, False])
def test_a_few_steps_against_a_slow_reference(compiled, constrained):
    tx = steepest.scion(0.01, constrained=constrained, stacked="layers")
    gs = gradients(P, 4)
    found, _ = run(tx, P, gs, compiled=compiled)
    p, gs = in_numpy((P, gs))

    def near(found, norm, radius, of):
        want = _scion(norm, [of(g) for g in gs], of(p), radius, constrained=constrained)
        np.testing.assert_allclose(found, want, rtol=1e-4, atol=2e-3)

    near(found["embed"], "sign", 3000, lambda x: x["embed"])
    near(found["head"], "sign/in", 3000, lambda x: x["head"])
    near(found["mlp"]["kernel"], "spectral", 50, lambda x: x["mlp"]["kernel"])
    near(found["mlp"]["bias"], "rms", 50, lambda x: x["mlp"]["bias"])
    near(found["s"], "sign", 50, lambda x: x["s"])
    for k in range(2):
        kernel, norm = (found["layers"][name][k] for name in ("kernel", "norm"))
        near(kernel, "spectral", 50, lambda x, k=k: x["layers"]["kernel"][k])
        near(norm, "rms", 50, lambda x, k=k: x["layers"]["norm"][k])


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("words", ["", "in out", "out in"])
def test_every_norm(norm, words):
    """By route and alone, and for matrices of shape (out, in)."""
    g, p = matrix(0, 4, 9), matrix(1, 4, 9)
    turn = (lambda x: x.T) if words == "out in" else (lambda x: x)
    tx = steepest.scion(1.0, 1.0, 1.0, 1.0, routes={"": f"{norm} {words}".strip()})
    found = turn(updates(tx, [turn(g)], turn(p))[0])
    want = LMOS[norm](in_numpy(g))
    np.testing.assert_allclose(found, -want - in_numpy(p), rtol=1e-4, atol=1e-4)
    alone = updates(steepest.scale_by_lmo(norm, alpha=1.0), [g])[0]
    np.testing.assert_allclose(alone, want, rtol=1e-4, atol=1e-4)


# The norms of linear maps of which these are the unit balls.
SIZES = {
    "spectral": lambda u: np.linalg.norm(u, 2) * (u.shape[0] / u.shape[1]) ** 0.5,
    "sign": lambda u: np.abs(u).max(),
    "sign/in": lambda u: np.abs(u).max() * u.shape[0],
    "colnorm": lambda u: _rms(u, 1).max(),
    "colnorm/in": lambda u: _rms(u, 1).max() * u.shape[0],
    "rownorm": lambda u: (np.linalg.norm(u, axis=0) * u.shape[0] ** 0.5).max(),
    "rms": lambda u: _rms(u, None).max(),
}


@pytest.mark.parametrize("norm", NORMS)
def test_no_other_step_of_this_norm_is_steeper(norm):
    g = matrix(0, 4, 9)
    tx = steepest.scale_by_lmo(norm, coefficients="deepseek", steps=14)
    u = in_numpy(updates(tx, [g])[0])
    np.testing.assert_allclose(SIZES[norm](u), 1, rtol=1e-3)
    for k in range(20):
        other = in_numpy(matrix(k, 4, 9)) + k * u / 4
        other = other / SIZES[norm](other)
        assert (in_numpy(g) * other).sum() < (in_numpy(g) * u).sum() * 1.001


def test_it_says_which_norm_each_leaf_has():
    lines = steepest.describe(steepest.scion(0.1, stacked="layers"), P).lines
    found = {line.path: (line.groups[0], line.why) for line in lines}
    assert found["['embed']"] == ("sign", "embeds: 'embed' in its path")
    assert found["['head']"] == ("sign/in", "a head: 'head' in its path")
    assert found["['mlp']['bias']"] == ("rms", "a vector")
    kernel = "['layers']['kernel']"
    assert found[kernel] == ("spectral", "a matrix in each layer")
    assert found["['layers']['norm']"] == ("rms of each layer", "a vector")
    assert found["['s']"] == ("rms", "a number")


def _norms(p, **options):
    lines = steepest.describe(steepest.scion(0.1, **options), p).lines
    return {line.path.strip("[]'"): line.groups[0] for line in lines}


def test_the_norms_of_unusual_leaves():
    p = {
        "tall": jnp.zeros((20_000, 8)),
        "wide": jnp.zeros((8, 20_000)),
        "column": jnp.zeros((8, 1)),
        "router": jnp.zeros((8, 4)),
        "cls": jnp.zeros((1, 1, 8)),
        "pos_embedding": jnp.zeros((1, 5, 8)),
        "layer_norm": jnp.zeros((3, 4, 8)),
    }
    norms = ["sign", "sign/in", "spectral", "spectral", "rms", "sign", "rms"]
    assert _norms(p) == dict(zip(p, norms, strict=True))


def test_routes_choose_norms_and_axes():
    p = {"conv": jnp.ones((2, 2, 3, 4)), "embed": jnp.ones((5, 3)), "b": jnp.ones(3)}
    routes = {"conv": "in in in out", "embed": "colnorm", "b$": "sign"}
    assert _norms(p, routes=routes) == dict(
        zip(p, ["in in in out", "colnorm", "sign"], strict=True)
    )
    routes = {"conv": "sign/in out in in in", "embed": "spectral out in"}
    found = _norms(p, routes=routes)
    assert found["conv"] == "sign/in out in in in" and found["embed"] == "out in"


def test_params_stay_in_the_ball():
    p = {"kernel": matrix(0, 4, 9), "embed": matrix(1, 7, 4), "bias": matrix(2, 9)}
    tx = steepest.scion(0.2, radius=2.0, sign_radius=3.0, rms_radius=1.0)
    p, _ = run(tx, p, [jax.tree.map(jnp.sign, p)] * 60)
    assert np.linalg.norm(p["kernel"], 2) <= 2.0 * 1.13 * (9 / 4) ** 0.5
    np.testing.assert_allclose(jnp.abs(p["embed"]), 3.0, rtol=1e-3)
    np.testing.assert_allclose(_rms(p["bias"], None), 1.0, rtol=1e-3)


def test_there_is_one_array_per_leaf():
    arrays = [x for x in jax.tree.leaves(steepest.scion(0.1, stacked="layers").init(P))]
    assert sum(x.size for x in arrays) == sum(x.size for x in jax.tree.leaves(P))


@pytest.mark.usefixtures("as_users_do")
def test_impossible_arguments_are_refused():
    refuses(
        steepest.scion,
        0.1,
        radius=[-1.0, INF, "1"],
        sign_radius=[-1.0, INF, "1"],
        rms_radius=[-1.0, INF, "1"],
        constrained=NOT_FLAGS,
        alpha=[1.5, "1"],
        eps=[-1.0, NAN],
        mu_dtype=NOT_DTYPES,
        dtype=NOT_DTYPES,
        coefficients=["best", (1.0, 2.0)],
        steps=[0, 1.5],
    )
    refuses(steepest.scale_by_lmo, norm=["nuclear", None, 2])
    for route in ("adam", "in", "in out in", "sign in", 3, ""):
        with pytest.raises(ValueError, match=r"scion: routes\['w'\] is .*expected one"):
            steepest.scion(0.1, routes={"w": route})
    with pytest.raises(TypeError, match="scion: routes is a list, expected a dict"):
        steepest.scion(0.1, routes=["w"])
    with pytest.raises(ODD, match=r"leaf 'a/w' has 3 axes. Say in `routes` what they"):
        steepest.scion(0.1).init({"a": {"w": jnp.ones((2, 3, 4))}})
    with pytest.raises(ODD, match=r"has shape \(2,\), expected 2 axes or more for the"):
        tx = steepest.scale_by_lmo()
        tx.update(jnp.ones(2), tx.init(jnp.ones(2)))


def test_initial_params_are_on_the_surface_of_the_ball():
    """Flax's heads have three axes; routers, norms and zeros are special."""
    p = P | {"query": matrix(6, 4, 2, 5), "zero": jnp.zeros((4, 9))}
    p["half"], p["column"] = matrix(7, 6, 6).astype("bfloat16"), matrix(8, 5, 4)
    routes = {"query": "in out out", "column": "colnorm"}
    found = steepest.scion_init(p, 50.0, 3000.0, stacked="layers", routes=routes)
    singular = lambda x: np.linalg.svd(np.asarray(x, "float32"), compute_uv=False)
    wide = 50 * (9 / 4) ** 0.5
    np.testing.assert_allclose(singular(found["mlp"]["kernel"]), wide, rtol=1e-4)
    np.testing.assert_allclose(singular(found["layers"]["kernel"]), wide, rtol=1e-4)
    heads = singular(found["query"].reshape(4, 10))
    np.testing.assert_allclose(heads, 50 * (10 / 4) ** 0.5, rtol=1e-4)
    np.testing.assert_allclose(singular(found["half"]), 50, rtol=1e-2)
    assert found["half"].dtype == jnp.bfloat16
    np.testing.assert_array_equal(found["embed"], 3000 * np.sign(p["embed"]))
    np.testing.assert_allclose(found["head"], 750 * np.sign(p["head"]), rtol=1e-6)
    np.testing.assert_allclose(_rms(np.asarray(found["column"]), 1), 50, rtol=1e-5)
    for unchanged in ("bias", "norm"):
        of = "mlp" if unchanged == "bias" else "layers"
        np.testing.assert_array_equal(found[of][unchanged], p[of][unchanged])
    assert not found["zero"].any() and found["s"] == p["s"]


def test_params_stay_in_the_ball_from_the_start():
    p = steepest.scion_init({"kernel": matrix(1, 4, 9)})
    tx = steepest.scion(0.3, steps=12)
    for g in gradients(p, 3):
        updates, _ = tx.update(g, tx.init(p), p)
        p = steepest.apply_updates(p, updates)
    assert np.linalg.norm(p["kernel"], 2) <= 50 * (9 / 4) ** 0.5 * 1.01
