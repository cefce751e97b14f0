"""Which optimizer each leaf gets, and why."""

import jax
import jax.numpy as jnp
import pytest

from steepest.matrix._groups import Sorting


def _places(shapes, **options):
    """path -> (label, reason), for a dict from paths to shapes."""
    tree = {}
    for path, shape in shapes.items():
        *above, last = path.split("/")
        node = tree
        for key in above:
            node = node.setdefault(key, {})
        node[last] = jax.ShapeDtypeStruct(shape, jnp.float32)
    sorting = Sorting("muon", options.pop("stacked", None), options.pop("routes", None))
    paths = [
        "/".join(key.key for key in path)
        for path, _ in jax.tree_util.tree_leaves_with_path(tree)
    ]
    return dict(zip(paths, sorting.places(tree), strict=True))


MATRICES = """
h/0/attn/c_attn/kernel  blocks_3/mlp/up_proj/value  MultiHeadAttention_0/kernel
layers/2/attention/output/dense/kernel  w1  decoder/0/self_attention/heads/weight
gate_proj/weight  multi_head/query  posterior/kernel  token_mixer/kernel  out/kernel
""".split()
ADAMS = {
    "an embedding": """wte wpe embed/kernel Embed_0/embedding tok_embeddings/weight
        model/embed_tokens/weight pos_emb/value patch_embed/kernel embedder/input
        tokens positions""",
    "a head": """lm_head/kernel head head_0/kernel LMHead_0/kernel unembed/W
        params/output/kernel decoder/logits_dense/kernel classifier/w""",
    "a norm": "ln_1/weight ln_f/weight ln2 LayerNorm_0/stack input_layernorm/weight",
    "a bias or a scale": """attn/query/bias layers/scale q_bias layers/b b2
        layers/bias/value layers/offset""",
    "a router": "moe/router/kernel",
}


@pytest.mark.parametrize("path", MATRICES)
def test_hidden_matrices(path):
    place = _places({path: (8, 16)})[path]
    assert (place.label, place.decays, place.why) == ("muon", True, "a matrix")


@pytest.mark.parametrize("what", ADAMS)
def test_what_paths_say(what):
    for path in ADAMS[what].split():
        place = _places({path: (8, 16)})[path]
        assert place.label == "adam", path
        assert "in its path" in place.why
        assert place.decays == (what not in ("a norm", "a bias or a scale"))


@pytest.mark.parametrize(
    "shape, label, why",
    [
        ((), "adam", "a number"),
        ((8,), "adam", "a vector"),
        ((8, 1), "adam", "a side of 1"),
        ((0, 8), "adam", "a side of 0"),
        ((8192, 28672), "muon", "a matrix"),
        ((50257, 768), "adam", "a vocabulary: one side is 65 times the other"),
        ((4096, 16), "muon", "a matrix"),
        ((3, 8, 8), "adam", "3 axes, and no match in `routes` or `stacked`"),
    ],
    ids=str,
)
def test_what_shapes_say(shape, label, why):
    place = _places({"w": shape})["w"]
    assert (place.label, place.why) == (label, why)
    assert place.decays == (len(shape) > 1)


def test_stacked_layers_are_seen_one_by_one():
    found = _places(
        {
            "layers/kernel": (4, 8, 8),
            "layers/b_k": (4, 8),
            "layers/s": (4,),
            "w": (4, 8),
        }
        | {"layers/conv": (4, 3, 3, 8, 8)},
        stacked="^layers/",
    )
    assert {path: place.label for path, place in found.items()} == {
        "layers/kernel": "muon",
        "layers/b_k": "adam",
        "layers/s": "adam",
        "layers/conv": "adam",
        "w": "muon",
    }
    assert found["layers/kernel"].why == "a matrix in each layer"
    assert (found["layers/b_k"].why, found["layers/b_k"].decays) == ("a vector", False)


def test_routes_come_first_and_in_their_order():
    shapes = {"embed": (8, 8), "conv/kernel": (3, 3, 4, 8), "conv/bias": (8,)}
    routes = {"kernel": "in in in out", "conv": "adam", "embed": "muon"}
    found = _places({**shapes, "x": (8, 8)}, routes={**routes, "x": "out in"})
    assert {path: place.label for path, place in found.items()} == {
        "embed": "muon",
        "conv/kernel": "in in in out",
        "conv/bias": "adam",
        "x": "out in",
    }
    assert found["embed"].why == "routes: 'embed'"


def test_words_are_for_leaves_with_so_many_axes():
    """The bias of a layer that is declared a convolution is still a vector."""
    shapes = {"q/kernel": (4, 8, 2, 4), "q/bias": (4, 2, 4)}
    found = _places(shapes, routes={"^q/": "in out out"}, stacked="q")
    assert [found[path].label for path in shapes] == ["in out out", "adam"]


def test_places_are_remembered_for_a_structure_and_its_shapes():
    sorting = Sorting("muon", None, None)
    one, other = ({"w": jnp.ones(shape)} for shape in ((2, 3), (3,)))
    assert sorting.places(one) is sorting.places(one)
    assert sorting(one) == {"w": "muon"}
    assert sorting(other) == {"w": "adam"}
    assert sorting.decaying({"w": None, "v": jnp.ones((2, 2))}) == {
        "w": None,
        "v": True,
    }


@pytest.mark.parametrize(
    "options, said",
    [
        ((None, ["conv"]), "muon: routes is a list, expected a dict, such as"),
        (
            (None, {"conv": "in"}),
            r"muon: routes\['conv'\] is 'in', expected 'muon', 'adam'",
        ),
        ((None, {"conv": "in out in"}), "is 'in out in', expected 'muon', 'adam'"),
        ((None, {"conv": "in out up"}), "is 'in out up'"),
        ((None, {"conv": 2}), "is 2, expected 'muon'"),
        ((None, {"(": "adam"}), r"muon: the pattern '\(' is invalid"),
        (("[", None), r"muon: the pattern '\[' is invalid"),
        ((3, None), "muon: a pattern is 3, a int, expected a regular expression"),
    ],
    ids=["list", "one word", "mixed", "unknown", "number", "route", "stack", "three"],
)
def test_what_is_refused(options, said, as_users_do):
    with pytest.raises((TypeError, ValueError), match=said):
        Sorting("muon", *options)
