"""Divergences, against Optax and SciPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special

from steepest import losses

from .agree import agree, finite, half

rng = np.random.default_rng(0)
LOG_P = scipy.special.log_softmax(rng.normal(size=(4, 2, 3)), -1)
T = scipy.special.softmax(rng.normal(size=(4, 2, 3)), -1)
NAMES = [
    "kl_divergence",
    "kl_divergence_with_log_targets",
    "convex_kl_divergence",
    "generalized_kl_divergence",
]
OPTIONS = {
    "last": {},
    "first": {"axis": 0},
    "two axes": {"axis": (0, 2)},
    "all axes": {"axis": None},
    "no axis": {"axis": ()},
    "mask": {"where": np.array([True, False, True])},
    "mask of rows": {"where": np.array([[True], [False]]), "axis": (1, 2)},
}


def targets(name, t=T):
    with np.errstate(divide="ignore"):
        return np.log(t) if "log" in name else t


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_options(options):
    agree("convex_kl_divergence", LOG_P, T, wrt=(0, 1), **options)


@pytest.mark.parametrize("name", NAMES)
def test_as_optax(name):
    t = targets(name)
    agree(name, LOG_P, t, wrt=(0, 1), axis=(0, 2), where=np.array([True, False, True]))
    agree(name, LOG_P[0, 0], t, wrt=(0, 1))


@pytest.mark.parametrize("name", NAMES)
def test_nothing_times_the_logarithm_of_nothing_is_nothing(name):
    f = getattr(losses, name)
    log_p = jnp.array([-0.1, -jnp.inf, -2.0])
    t = jnp.asarray(targets(name, np.array([1.0, 0.0, 0.0])))
    extra = np.exp(-0.1) + np.exp(-2.0) - 1 if "kl" != name[:2] else 0
    assert np.isclose(f(log_p, t), 0.1 + extra, rtol=1e-6)
    finite(f, log_p, t)
    assert f(log_p, jnp.asarray(targets(name, np.array([0.5, 0.5, 0.0])))) == jnp.inf


@pytest.mark.parametrize("name", NAMES)
def test_what_is_masked_is_not_seen(name):
    log_p = jnp.array([jnp.nan, -1.0, -1.0])
    t = jnp.asarray(targets(name, np.array([0.2, 0.3, 0.5])))
    where = jnp.array([False, True, True])
    finite(lambda *a: getattr(losses, name)(*a, where=where), log_p, t)
    assert getattr(losses, name)(log_p, t, where=jnp.zeros(3, bool)) == 0


def test_against_scipy():
    log_p, t = jnp.asarray(LOG_P), jnp.asarray(T)
    expected = scipy.special.rel_entr(T, np.exp(LOG_P)).sum(-1)
    np.testing.assert_allclose(losses.kl_divergence(log_p, t), expected, rtol=1e-5)
    expected = scipy.special.kl_div(T, np.exp(LOG_P)).sum(0)
    ours = losses.convex_kl_divergence(log_p, t, axis=0)
    np.testing.assert_allclose(ours, expected, rtol=1e-5)


@pytest.mark.parametrize("name", NAMES)
def test_half_precision(name):
    given = LOG_P, targets(name)
    for pair in ("bfloat16 bfloat16", "float16 float16", "bfloat16 float32"):
        half(
            name, *(jnp.asarray(a, d) for a, d in zip(given, pair.split(), strict=True))
        )


@pytest.mark.parametrize("name", NAMES)
def test_refusals(name):
    f = getattr(losses, name)
    with pytest.raises(TypeError, match=f"{name}: log_predictions has dtype int32"):
        f(jnp.arange(3), jnp.ones(3))
    with pytest.raises(TypeError, match=f"{name}: (log_)?targets has dtype int32"):
        f(jnp.ones(3), jnp.arange(3))
    with pytest.raises(TypeError, match="broadcast"):
        f(jnp.ones(3), jnp.ones(2))
    with pytest.raises(ValueError, match="where has dtype float32"):
        f(jnp.ones(3), jnp.ones(3), where=jnp.ones(3))
    with pytest.raises(ValueError, match="axis is 5"):
        f(jnp.ones(3), jnp.ones(3), axis=5)


def test_in_jit_and_of_nothing():
    f = jax.jit(losses.kl_divergence)
    assert f(jnp.zeros((2, 0)), jnp.zeros((2, 0))).shape == (2,)
