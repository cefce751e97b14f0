"""Losses of embeddings, against Optax and computed by hand."""

from functools import partial

import jax.numpy as jnp
import numpy as np
import pytest

from steepest import losses

from .agree import agree, finite, same, theirs

rng = np.random.default_rng(0)
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
    # The gradients are sums of terms of about 1 / temperature that nearly cancel.
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
    same(f(e * 1e-4, pairs, 1.0), theirs("ntxent")(e * 1e-4, pairs, 1.0), 1e-5)
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
    # Optax raises signed differences to a power: NaN, or a negative distance.
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
