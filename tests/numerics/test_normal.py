"""The normal distribution with a diagonal covariance."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from steepest import multi_normal
from tests.oracles._calls import assert_alike, assert_same, called

KEY = jax.random.key(1)
PARAMS = {
    "vector": (jnp.array([1.0, 2.0]), jnp.array([0.0, -1.0])),
    "matrix": (jnp.ones((3, 2)), jnp.zeros(2)),
    "broadcast": (jnp.zeros(()), jnp.zeros(2)),
}


@pytest.mark.parametrize("name", PARAMS)
def test_as_in_optax(name):
    ours, theirs = (
        multi_normal(*PARAMS[name]),
        called(optax.multi_normal, *PARAMS[name]),
    )
    x = ours.sample((4,), KEY)
    assert_same(x, called(theirs.sample, (4,), KEY))
    assert_same(ours.log_prob(x), called(theirs.log_prob, x))
    assert_alike(ours.log_prob, theirs.log_prob, 1.0)
    assert_same(ours.log_scale, called(lambda: jnp.asarray(theirs.log_scale)))
    assert_same(ours.params, [jnp.asarray(x) for x in theirs.params])


def test_as_in_optax_in_64_bits():
    with jax.enable_x64(True):
        params = [jnp.asarray(x, jnp.float64) for x in PARAMS["vector"]]
        ours, theirs = multi_normal(*params), called(optax.multi_normal, *params)
        x = ours.sample((2,), KEY)
        assert_same(x, called(theirs.sample, (2,), KEY))
        assert_same(ours.log_prob(x), called(theirs.log_prob, x))


def test_half_precision():
    half = jnp.zeros(2, jnp.float16)
    ours, theirs = multi_normal(half, half), called(optax.multi_normal, half, half)
    assert_same(ours.sample((1,), KEY), called(theirs.sample, (1,), KEY))
    assert_same(ours.log_prob(half), called(theirs.log_prob, half))


def test_a_narrow_normal_far_away_is_finite():
    normal = multi_normal(jnp.zeros(1), jnp.array([-20.0]))
    assert jnp.isfinite(normal.log_prob(jnp.ones(1)))


def test_the_score_is_the_derivative():
    loc, log_scale = PARAMS["vector"]
    x = jnp.array([0.5, 0.5])
    score = jax.grad(lambda loc: multi_normal(loc, log_scale).log_prob(x))(loc)
    np.testing.assert_allclose(score, (x - loc) * jnp.exp(-2 * log_scale), rtol=1e-6)


def test_shapes_that_do_not_meet():
    with pytest.raises(ValueError):
        multi_normal(jnp.zeros(3), jnp.zeros(2))


@pytest.mark.parametrize(
    "call, said",
    [
        (lambda n: multi_normal("a", 0.0), ": loc is a str, expected an array of"),
        (
            lambda n: n.sample(3, jax.random.key(0)),
            ".sample: shape is 3, expected a sequence of whole",
        ),
        (
            lambda n: n.sample((3,), 0),
            ".sample: key is a int, expected one random key",
        ),
        (
            lambda n: n.log_prob(jnp.ones(3)),
            ": x has shape (3,) and the mean has shape (2,)",
        ),
        (
            lambda n: n.log_prob("a"),
            ".log_prob: x is a str, expected an array of numbers",
        ),
    ],
    ids=["loc", "shape", "key", "point", "text"],
)
def test_bad_arguments_are_refused(call, said, as_users_do):
    with pytest.raises((TypeError, ValueError)) as caught:
        call(multi_normal(jnp.zeros(2), jnp.zeros(2)))
    assert str(caught.value).startswith(f"multi_normal{said}")
