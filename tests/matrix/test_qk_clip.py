"""QK-Clip: the logits of attention heads are at most the threshold."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steepest

from ..optimizers._refused import NAN, refuses
from ..oracles._calls import loose
from ..unusual import ODD
from ._reference import matrix

ROUTES = {"(query|key)/kernel": "in head out"}


def _layer(seed, heads=3, keys=3):
    return {
        "query": {"kernel": 9 * matrix(seed, 8, heads, 4)},
        "key": {"kernel": 9 * matrix(seed + 1, 8, keys, 4)},
        "value": {"kernel": matrix(seed + 2, 8, keys, 4)},
    }


def _logits(layer, x):
    """The largest logit of each head."""
    q = jnp.einsum("ni,iho->nho", x, layer["query"]["kernel"])
    k = jnp.einsum("ni,iho->nho", x, layer["key"]["kernel"])
    k = jnp.repeat(k, q.shape[1] // k.shape[1], 1)
    return jnp.einsum("nho,mho->hnm", q, k).max((1, 2)) / 2


def _after(tx, p, g, **extra):
    u, _ = jax.jit(tx.update)(g, tx.init(p), p, **extra)
    return steepest.apply_updates(p, u)


def test_the_logits_are_at_most_the_threshold():
    """After a step, for the same activations."""
    x, p = matrix(9, 16, 8), {"attn": _layer(0)}
    g = jax.tree.map(jnp.cos, p)
    moved = _after(steepest.sgd(0.1), p, g)
    seen = _logits(moved["attn"], x)
    tau = float(jnp.median(seen))
    tx = steepest.chain(steepest.sgd(0.1), steepest.qk_clip(tau, routes=ROUTES))
    found = _after(tx, p, g, max_logits={"attn": seen})
    want = jnp.minimum(seen, tau)
    np.testing.assert_allclose(_logits(found["attn"], x), want, rtol=1e-4)
    quiet = np.flatnonzero(seen <= tau)
    for name in ("query", "key"):
        kernel, same = (t["attn"][name]["kernel"] for t in (found, moved))
        np.testing.assert_array_equal(kernel[:, quiet], same[:, quiet])
    np.testing.assert_array_equal(
        found["attn"]["value"]["kernel"], moved["attn"]["value"]["kernel"]
    )


@pytest.mark.parametrize("power", [0.5, 1.0])
def test_it_is_the_formula(power):
    p, u = (
        {"q": matrix(0, 8, 2, 4), "b": matrix(1, 8)},
        {"q": matrix(2, 8, 2, 4), "b": matrix(3, 8)},
    )
    tx = steepest.qk_clip(100.0, routes={"q": "in head out"}, power=power)
    seen = jnp.array([400.0, 50.0])
    found, state = tx.update(u, tx.init(p), p, max_logits={"": seen})
    assert jax.tree.leaves(state) == []
    factor = np.array([0.25**power, 1.0])[None, :, None]
    want = factor * (p["q"] + u["q"]) - p["q"]
    np.testing.assert_allclose(found["q"], want, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(found["q"][:, 1], u["q"][:, 1])
    np.testing.assert_array_equal(found["b"], u["b"])


def test_queries_that_share_a_key():
    """The largest logit of a group counts for its key."""
    x, p = matrix(9, 16, 8), {"attn": _layer(0, heads=6, keys=2)}
    seen = _logits(p["attn"], x)
    tau = float(jnp.median(seen))
    tx = steepest.qk_clip(tau, routes=ROUTES)
    still = jax.tree.map(jnp.zeros_like, p)
    found = _after(tx, p, still, max_logits={"attn": seen})
    assert jnp.all(_logits(found["attn"], x) <= tau * 1.0001)
    ratio = found["attn"]["key"]["kernel"] / p["attn"]["key"]["kernel"]
    want = jnp.sqrt(jnp.minimum(1, tau / seen.reshape(2, 3).max(1)))
    np.testing.assert_allclose(ratio[0, :, 0], want, rtol=1e-5)


def test_one_axis_may_hold_heads_and_their_elements():
    """As in Equinox and torch: (heads * size, in)."""
    w = matrix(0, 12, 8)
    p = {"q_proj": {"weight": w}, "k_proj": {"weight": w[:4]}}
    routes = {"(q|k)_proj/weight": "head*4 in"}
    seen = jnp.array([100.0, 400.0, 900.0])
    tx = steepest.qk_clip(100.0, routes=routes)
    still = jax.tree.map(jnp.zeros_like, p)
    found = _after(tx, p, still, max_logits=seen)
    factor = np.repeat([1, 1 / 2, 1 / 3], 4)[:, None]
    np.testing.assert_allclose(found["q_proj"]["weight"], factor * w, rtol=1e-5)
    np.testing.assert_allclose(found["k_proj"]["weight"], w[:4] / 3, rtol=1e-5)


def test_scanned_layers():
    """Params and logits have an axis of layers in front."""
    p = {"layers": {"query": {"kernel": matrix(0, 2, 8, 3, 4)}}}
    seen = jnp.array([[400.0, 1.0, 1.0], [1.0, 1.0, 900.0]])
    tx = steepest.qk_clip(100.0, routes={"query/kernel": "in head out"})
    still = jax.tree.map(jnp.zeros_like, p)
    found = _after(tx, p, still, max_logits={"layers": {"max_logits": (seen,)}})
    ratio = found["layers"]["query"]["kernel"] / p["layers"]["query"]["kernel"]
    want = [[1 / 2, 1, 1], [1, 1, 1 / 3]]
    np.testing.assert_allclose(ratio[:, 0, :, 0], want, rtol=1e-5)


@pytest.mark.parametrize("collection", [False, True])
def test_trees_that_flax_sows(collection):
    layers = {"layers_0": {"attn": _layer(0)}, "layers_1": {"attn": _layer(3)}}
    p = {"params": layers} if collection else layers
    seen = {
        "layers_0": {"attn": {"max_logits": (jnp.array([1.0, 1.0, 400.0]),)}},
        "layers_1": {"attn": {"max_logits": (jnp.array([400.0, 1.0, 1.0]),)}},
    }
    tx = steepest.chain(
        steepest.muon(0.0, weight_decay=0.0),
        steepest.qk_clip(routes=ROUTES),
    )
    found = _after(tx, p, p, max_logits=seen)
    found = found["params"] if collection else found
    for name, head in {"layers_0": 2, "layers_1": 0}.items():
        ratio = (
            found[name]["attn"]["key"]["kernel"] / layers[name]["attn"]["key"]["kernel"]
        )
        want = np.where(np.arange(3) == head, 0.5, 1)
        np.testing.assert_allclose(ratio[0, :, 0], want, rtol=1e-5)
    flat = {f"{k}/attn": x["attn"]["max_logits"][0] for k, x in seen.items()}
    again = _after(tx, p, p, max_logits=flat)
    again = again["params"] if collection else again
    jax.tree.map(np.testing.assert_array_equal, again, found)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("scan", [False, True])
def test_a_model_of_flax(scan):
    """The logits were far above the threshold, and are near it after a step."""
    nn = pytest.importorskip("flax.linen")

    class Attention(nn.Module):
        @nn.compact
        def __call__(self, x, _=None):
            q, k = (nn.DenseGeneral((2, 4), name=name)(x) for name in ("query", "key"))
            logits = jnp.einsum("bqhd,bkhd->bhqk", q, k)
            self.sow("intermediates", "max_logits", logits.max((0, 2, 3)))
            y = jnp.einsum("bhqk,bkhd->bqhd", nn.softmax(logits), k)
            return x + nn.DenseGeneral(8, (-2, -1), name="out")(y), None

    class Model(nn.Module):
        @nn.compact
        def __call__(self, x):
            if scan:
                axes = {"params": 0, "intermediates": 0}
                rngs = {"params": True}
                layers = nn.scan(Attention, axes, split_rngs=rngs, length=3)
                return layers(name="layers")(x)[0]
            for k in range(3):
                x, _ = Attention(name=f"layers_{k}")(x)
            return x

    with loose():
        model, x = Model(), 40 * matrix(0, 2, 5, 8)
        p = model.init(jax.random.key(1), x)["params"]
        routes = {"(query|key)/kernel": "in head out", "(query|key)/bias": "head out"}
        tx = steepest.chain(steepest.sgd(0.0), steepest.qk_clip(100.0, routes=routes))

        def seen(p):
            return model.apply({"params": p}, x, mutable="intermediates")[1]

        for _ in range(3):  # each layer sees what the layers before it have become
            logits = seen(p)["intermediates"]
            u, _ = tx.update(p, tx.init(p), p, max_logits=logits)
            p = steepest.apply_updates(p, u)
        top = max(float(x.max()) for x in jax.tree.leaves(seen(p)))
        assert 50 < top < 130


@pytest.mark.parametrize("value", [NAN, float("inf"), -float("inf"), 0.0, -5.0])
def test_values_that_mean_nothing_change_nothing(value):
    p = {"q": matrix(0, 8, 1, 4)}
    tx = steepest.qk_clip(100.0, routes={"q": "in head out"})
    u, _ = tx.update(p, tx.init(p), p, max_logits=jnp.array([value]))
    np.testing.assert_array_equal(u["q"], p["q"])


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_dtypes_and_missing_gradients(dtype):
    p = {"q": matrix(0, 8, 1, 4).astype(dtype), "k": matrix(1, 8, 1, 4).astype(dtype)}
    tx = steepest.qk_clip(100.0, routes={"q|k": "in head out"})
    u, _ = tx.update({**p, "k": None}, tx.init(p), p, max_logits=jnp.array([400.0]))
    assert u["k"] is None and u["q"].dtype == dtype
    np.testing.assert_allclose(
        np.asarray(u["q"], "float32"), np.zeros(u["q"].shape), atol=1e-2
    )


def test_the_threshold_can_be_traced():
    p = {"q": matrix(0, 8, 1, 4)}

    @jax.jit
    def first(tau):
        tx = steepest.qk_clip(tau, routes={"q": "in head out"})
        return tx.update(p, tx.init(p), p, max_logits=jnp.array([400.0]))[0]

    np.testing.assert_allclose(first(100.0)["q"], 0 * p["q"], atol=1e-6)


@pytest.mark.usefixtures("as_users_do")
def test_mistakes_are_errors():
    refuses(steepest.qk_clip, name="qk_clip", routes=[None, [], {}])
    wrong = [0.0, -1.0, NAN, "1"]
    make = lambda **k: steepest.qk_clip(routes=ROUTES, **k)
    refuses(make, name="qk_clip", threshold=wrong, power=[-1.0, NAN, "1"])
    for words in ("in out", "head head", "head*x in", "head*0 in", 3, ""):
        with pytest.raises(
            ValueError, match=r"qk_clip: routes\['q'\] is .*one of them"
        ):
            steepest.qk_clip(routes={"q": words})
    p = {"attn": _layer(0)}
    tx = steepest.qk_clip(routes=ROUTES)
    seen = jnp.ones(3)
    with pytest.raises(ODD, match="qk_clip: `update` needs `max_logits`"):
        tx.update(p, tx.init(p), p)
    with pytest.raises(ODD, match="qk_clip: `update` needs `params`"):
        tx.update(p, tx.init(p), max_logits=seen)
    with pytest.raises(
        ODD, match=r"max_logits has 0 arrays for the leaf 'attn/key/ker"
    ):
        tx.update(p, tx.init(p), p, max_logits={"other": seen})
    with pytest.raises(
        ODD, match=r"max_logits has 2 arrays for the leaf 'attn/key/ker"
    ):
        tx.update(p, tx.init(p), p, max_logits={"attn": {"a": seen, "b": seen}})
    for shape in ((2,), (), (2, 3), (0,)):
        with pytest.raises(ODD, match=r"has shape \(8, 3, 4\), and its max_logits has"):
            tx.update(p, tx.init(p), p, max_logits={"attn": jnp.ones(shape)})
    two = steepest.qk_clip(routes={**ROUTES, "wq": "in head out"})
    with pytest.raises(ODD, match="the pattern 'wq' in routes matches no leaf"):
        two.update(p, two.init(p), p, max_logits={"attn": seen})
