"""Ranking losses, against Optax."""

import jax.numpy as jnp
import numpy as np
import pytest

from steepest import losses

from .agree import agree, finite

rng = np.random.default_rng(0)
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
