"""Fenchel-Young losses, against Optax and cross entropy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from steepest import losses

from .agree import same, theirs

rng = np.random.default_rng(0)
S = rng.normal(size=(4, 3))


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
    with pytest.raises(ValueError, match=r"scores have shape \(\)"):
        loss(jnp.ones(()), jnp.ones(()))
    with pytest.raises(ValueError, match="one number"):
        losses.make_fenchel_young_loss(lambda x: x)(jnp.ones(3), jnp.ones(3))
