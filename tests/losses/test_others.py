"""Smoothing, ranking, Fenchel-Young and embeddings, against Optax and closed forms."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from steepest import losses

from .agree import agree, finite, same, theirs

rng = np.random.default_rng(0)
HOT = np.eye(3)[np.array([[0, 1], [2, 0]])]

SMOOTH = {
    "plain": (0.1, {}),
    "all of it": (1.0, {}),
    "first axis": (0.1, {"axis": 0}),
    "two axes": (0.2, {"axis": (1, -1)}),
    "all axes": (0.2, {"axis": None}),
    "no axis": (0.2, {"axis": ()}),
    "array": (np.array([0.1, 0.2, 0.3]), {}),
    "mask": (0.3, {"where": np.array([True, True, False])}),
    "mask of all": (0.3, {"where": np.arange(12).reshape(2, 2, 3) % 5 > 0}),
    "float mask": (0.3, {"where": np.array([1.0, 1.0, 0.0])}),
}


@pytest.mark.parametrize("alpha, options", SMOOTH.values(), ids=SMOOTH)
def test_smooth_labels(alpha, options):
    agree("smooth_labels", HOT, alpha, **options)


def test_smooth_labels_counts_classes_as_broadcast():
    # Optax counts the entries of the mask itself: here 1 and 0 classes.
    ours = losses.smooth_labels(
        jnp.asarray(HOT[0]), 0.3, where=jnp.array([[True], [False]])
    )
    np.testing.assert_allclose(ours, [[0.8, 0.1, 0.1], [0.0, 0.7, 0.0]], rtol=1e-6)
    finite(
        lambda a: losses.smooth_labels(jnp.ones(3), a, where=jnp.zeros(3, bool)), 0.1
    )


def test_smooth_labels_dtypes_and_refusals():
    half = jnp.asarray(HOT, jnp.bfloat16)
    assert losses.smooth_labels(half, 0.1).dtype == jnp.bfloat16
    assert losses.smooth_labels(half, jnp.float32(0.1)).dtype == jnp.float32
    with pytest.raises(TypeError, match="labels has dtype int32"):
        losses.smooth_labels(jnp.arange(3), 0.1)
    with pytest.raises(ValueError, match="alpha has shape"):
        losses.smooth_labels(jnp.asarray(HOT), jnp.ones(2))
    with pytest.raises(ValueError, match="axis"):
        losses.smooth_labels(jnp.ones(()), 0.1)
    assert losses.smooth_labels(jnp.ones((2, 0)), 0.1).shape == (2, 0)


S = rng.normal(size=(4, 3))
R = np.array([[1.0, 0.0, 2.0], [0.0, 1.0, 0.0], [0.0, 0.0, 0.0], [3.0, 1.0, 1.0]])
ITEMS = np.array([[1, 1, 0], [1, 1, 1], [1, 0, 1], [0, 0, 0]], bool)
RANKING = {
    "plain": {},
    "one by one": {"reduce_fn": None},
    "sum": {"reduce_fn": jnp.sum},
    "items": {"where": ITEMS},
    "items one by one": {"where": ITEMS, "reduce_fn": None},
    "items max": {
        "where": ITEMS,
        "reduce_fn": lambda x, where: jnp.where(where, x, 0).max(),
    },
    "items broadcast": {"where": ITEMS[0]},
    "no items": {"where": np.zeros((4, 3), bool)},
    "weights": {"weights": np.array([[1.0, 2.0, 3.0]]), "where": ITEMS},
    "weights of lists": {"weights": np.array([[1.0], [2.0], [0.0], [3.0]])},
}


@pytest.mark.parametrize("options", RANKING.values(), ids=RANKING)
def test_ranking(options):
    agree("ranking_softmax_loss", S, R, **options)


def test_ranking_shapes():
    agree("ranking_softmax_loss", S[0], R[0])
    agree("ranking_softmax_loss", S, R[0])
    agree("ranking_softmax_loss", S.reshape(2, 2, 3), R.reshape(2, 2, 3))
    agree("ranking_softmax_loss", S, R.astype(int))
    assert losses.ranking_softmax_loss(jnp.ones((0, 3)), jnp.ones((0, 3))) == 0


def test_ranking_of_what_cannot_be_chosen_or_seen():
    f = losses.ranking_softmax_loss
    x = jnp.asarray(S, jnp.float32)
    finite(lambda x: f(x, jnp.asarray(R)), x.at[1, 0].set(-jnp.inf))
    finite(lambda x: f(x, jnp.asarray(R), where=ITEMS), x.at[0, 2].set(jnp.nan))


def test_ranking_dtypes_and_refusals():
    f, half = losses.ranking_softmax_loss, jnp.asarray(S, jnp.bfloat16)
    assert f(half, jnp.asarray(R, jnp.float32)).dtype == jnp.bfloat16
    assert f(half, half, weights=jnp.ones((4, 3))).dtype == jnp.float32
    with pytest.raises(TypeError, match="logits has dtype int32"):
        f(jnp.arange(3), jnp.arange(3))
    with pytest.raises(ValueError, match="where has dtype"):
        f(half, half, where=jnp.ones((4, 3)))
    with pytest.raises(ValueError, match="weights has shape"):
        f(half, half, weights=jnp.ones(4))
    with pytest.raises(TypeError, match="broadcast"):
        f(half, half[:, :2])


def test_fenchel_young():
    s, t = jnp.asarray(S, jnp.float32), jax.nn.one_hot(jnp.array([0, 2, 1, 1]), 3)
    loss = losses.make_fenchel_young_loss(jax.nn.logsumexp)
    entropy = losses.softmax_cross_entropy
    same(loss(s, t), entropy(s, t), 1e-6, 1e-6)
    slope = jax.grad(lambda s: loss(s, t).sum())(s)
    same(slope, jax.nn.softmax(s) - t, 1e-5, 1e-6)
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        other = theirs("make_fenchel_young_loss")(jax.nn.logsumexp)
        for pair in ((s, t), (s[0], t[0]), (s, t[0]), (s[0], t)):
            same(loss(*pair), other(*pair), 1e-6, 1e-6)
    half = s.astype(jnp.bfloat16), t.astype(jnp.bfloat16)
    assert loss(*half).dtype == jnp.bfloat16
    assert loss(half[0], t).dtype == jnp.float32


def test_fenchel_young_hands_the_rest_to_the_maximum():
    s, t = jnp.array([1.0, 2.0]), jnp.array([0.0, 1.0])
    loss = losses.make_fenchel_young_loss(lambda x, a, b=0.0: a * x.max() + b)
    assert loss(s, t, 2.0, b=1.0) == 3
    assert loss(jnp.stack([s, s]), t, 2.0).shape == (2,)


def test_fenchel_young_refusals():
    loss = losses.make_fenchel_young_loss(jax.nn.logsumexp)
    with pytest.raises(ValueError, match="same size"):
        loss(jnp.ones(3), jnp.ones(2))
    with pytest.raises(ValueError, match="dimension"):
        loss(jnp.ones(()), jnp.ones(()))
    with pytest.raises(ValueError, match="does not match"):
        losses.make_fenchel_young_loss(lambda x: x)(jnp.ones(3), jnp.ones(3))


E_ = rng.normal(size=(6, 3))
KINDS = {
    "pairs": np.array([0, 0, 1, 1, 2, 2]),
    "three": np.array([0, 0, 0, 1, 1, 2]),
    "one kind": np.zeros(6, int),
    "real labels": np.array([0.5, 0.5, 1.0, 1.0, 2.0, 2.0]),
}


@pytest.mark.parametrize("labels", KINDS.values(), ids=KINDS)
@pytest.mark.parametrize("temperature", [0.07, 1])
def test_ntxent(labels, temperature):
    # The slopes are sums of numbers of about 1 / temperature that nearly cancel.
    agree("ntxent", E_, labels, temperature=temperature)


def test_ntxent_by_hand():
    labels = KINDS["three"]
    e = E_ / np.linalg.norm(E_, axis=1, keepdims=True)
    s = e @ e.T / 0.3
    terms = [
        np.logaddexp.reduce([s[i, j], *s[i, labels != labels[i]]]) - s[i, j]
        for i in range(6)
        for j in range(6)
        if i != j and labels[i] == labels[j]
    ]
    ours = losses.ntxent(jnp.asarray(E_), jnp.asarray(labels), 0.3)
    assert np.isclose(ours, np.mean(terms), rtol=1e-5)


def test_ntxent_at_the_edges():
    f, e = losses.ntxent, jnp.asarray(E_, jnp.float32)
    pairs, alone = jnp.asarray(KINDS["pairs"]), jnp.arange(6)
    assert f(e, alone) == 0
    finite(lambda e: f(e, alone), e)
    finite(lambda e: f(e, pairs), e.at[0].set(0.0))
    finite(lambda e: f(e, jnp.zeros(6, int), 1e-3), e)
    same(f(e * 1e25, pairs), f(e, pairs), 1e-5)
    agree("ntxent", E_ * 1e-4, KINDS["pairs"], temperature=1.0, wrt=())
    assert f(e.astype(jnp.bfloat16), pairs).dtype == jnp.bfloat16
    with pytest.raises(ValueError, match="ntxent: embeddings have shape"):
        f(e, pairs[:3])
    with pytest.raises(TypeError, match="embeddings has dtype int32"):
        f(jnp.ones((6, 3), int), pairs)
    with pytest.raises(ValueError, match="temperature is 0"):
        f(e, pairs, 0.0)


A, B, C = rng.normal(size=(3, 4, 2, 3))
TRIPLETS = {
    "plain": {},
    "first axis": {"axis": 0},
    "two axes": {"axis": (0, 2), "margin": 3.0},
    "all axes": {"axis": None, "margin": 9},
    "degree 4": {"norm_degree": 4, "margin": 5.0},
    "margins": {"margin": np.array([1.0, 2.0]), "eps": 0.3},
}


@pytest.mark.parametrize("options", TRIPLETS.values(), ids=TRIPLETS)
def test_triplets(options):
    agree("triplet_margin_loss", A, B[0], C[:, :1], wrt=(0, 1, 2), **options)


@pytest.mark.parametrize("degree", [1, 1.5, 3])
def test_triplets_of_other_norms(degree):
    # Optax raises differences to a power with their sign: NaN, or a negative length.
    norm = lambda x: (np.abs(x) ** degree).sum(-1) ** (1 / degree)
    ours = losses.triplet_margin_loss(
        *(jnp.asarray(x) for x in (A, B, C)), norm_degree=degree, margin=2.0, eps=0.0
    )
    expected = np.maximum(norm(A - B) - norm(A - C) + 2, 0)
    np.testing.assert_allclose(ours, expected, rtol=1e-5, atol=1e-6)


def test_triplets_at_the_edges():
    f = losses.triplet_margin_loss
    a = jnp.asarray(A, jnp.float32)
    for degree in (1, 2, 3):
        finite(partial(f, norm_degree=degree, eps=0.0), a, a, a)
    half = [jnp.asarray(x, jnp.bfloat16) for x in (A, B, C)]
    assert f(*half).dtype == jnp.bfloat16
    assert f(*half, margin=jnp.float32(1)).dtype == jnp.float32
    with pytest.raises(TypeError, match="negatives has dtype int32"):
        f(a, a, jnp.ones((3,), int))
    with pytest.raises(ValueError, match="norm_degree is 0"):
        f(a, a, a, norm_degree=0)
    with pytest.raises(TypeError, match="broadcast"):
        f(a, a, jnp.ones(2))
