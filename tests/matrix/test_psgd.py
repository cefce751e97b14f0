"""PSGD: its updates, its fits, and what it does with difficult gradients."""

from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steepest
from steepest.matrix._whitening import is_due

from ..optimizers._refused import INF, NAN, NOT_DTYPES, NOT_FLAGS, refuses
from . import _white

EXACT = mock.patch(
    "steepest.numerics._spectral._power_method", lambda a: jnp.linalg.norm(a, 2)
)
# Not the usual number, so that no program without `EXACT` is in a cache.
ODD = 1.01e-9


class Reference:
    """The slow reference, for one matrix, in float64 and with the noise as an array."""

    def __init__(self, shape, skew, rate, whiten):
        m, n = shape
        dense = lambda d, other: 1 < d <= skew * other and other > 1
        self.q = [np.eye(m) if dense(m, n) else np.ones(m)]
        self.q += [np.eye(n) if dense(n, m) else np.ones(n)]
        self.fitted = [m > 1, n > 1 or m == 1]
        self.bounds, self.mu, self.t = [0.0, 0.0], 0.0, 0
        self.rate, self.whiten = rate, whiten

    def p(self):
        full = [q if q.ndim == 2 else np.diag(q) for q in self.q]
        return [q.T @ q for q in full]

    def fit(self, x):
        rows, columns = self.p()
        noise = ODD + 1.2e-7 * np.sqrt((x**2).mean())
        # All matrices with one element that is not zero: their covariances add up to
        # that of white noise.
        units = noise * np.eye(x.size).reshape(x.size, *x.shape)
        white = [rows @ y @ columns for y in (x, *units)]
        for side in (0, 1):
            if not self.fitted[side]:
                continue
            turned = [y if side == 0 else y.T for y in white]
            found, wanted = sum(y @ y.T for y in turned), x.shape[1 - side]
            q = self.q[side]
            if q.ndim == 1:
                found = np.diag(np.diag(found))
            norm = np.linalg.norm(found, 2) + wanted
            self.bounds[side] = max(0.9 * self.bounds[side] + 0.1 * norm, norm)
            step = self.rate / self.bounds[side] * (found - wanted * np.eye(len(q)))
            if q.ndim == 1:
                self.q[side] = q - np.diag(step) * q
                continue
            q = q - step @ q
            r = q.T - q
            r /= np.linalg.norm(r, 2) + 1e-300
            slope, curvature = np.trace(r @ q), np.trace(r @ r @ q)
            a = min(-slope / curvature, 1 / 8) if curvature < 0 else 1 / 8
            self.q[side] = q + a * (r @ q + a / 2 * r @ r @ q)

    def update(self, g):
        beta = min(self.t / (self.t + 1), 0.9)
        self.mu, self.t = beta * self.mu + (1 - beta) * g, self.t + 1
        self.fit(self.mu if self.whiten == "momentum" else g)
        rows, columns = self.p()
        u = rows @ self.mu @ columns
        u = u * min(1, 2 / np.sqrt((u**2).mean()))
        return np.clip(u, -10, 10)


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "jit"])
@pytest.mark.parametrize("skew, whiten", [(1.0, "momentum"), (INF, "gradient")])
def test_a_few_steps_against_a_slow_reference(compiled, skew, whiten):
    gs = _white.gradients(6, {**_white.SHAPES, "vector": (4,)})
    tx = {
        name: steepest.scale_by_psgd(
            frequency=1,
            fit_rate=0.5,
            damping=ODD,
            max_skew=skew,
            whiten=whiten,
            words=("in", "in", "out") if name == "conv" else ("in", "out"),
        )
        for name in gs[0]
    }
    with EXACT:
        both = steepest.partition(tx, {name: name for name in tx})
        found, _ = _white.updates(both, gs, compiled)
    for name in gs[0]:
        for k, first in enumerate(_white.matrices(gs[0][name])):
            one = Reference(first.shape, skew, 0.5, whiten)
            for g, u in zip(gs, found, strict=True):
                want = one.update(_white.matrices(g[name])[k])
                got = _white.matrices(u[name])[k]
                np.testing.assert_allclose(got, want, rtol=2e-4, atol=2e-4)


def test_the_step_size_of_the_fits_falls():
    g = jnp.full((2, 2), 1e-20)  # so small that a fit only makes the factors larger
    tx = steepest.scale_by_psgd(frequency=1, max_skew=0.0, damping=1e-30)
    _, state = _white.updates(tx, [g] * 30)
    rates = [0.5 / (1 + k / 25) for k in range(30)]
    np.testing.assert_allclose(
        state.factors[0], np.prod([1 + x for x in rates]), rtol=1e-4
    )
    tx = steepest.scale_by_psgd(frequency=3, max_skew=0.0, damping=1e-30)
    _, state = _white.updates(tx, [g] * 24)  # then a turn comes a step earlier
    np.testing.assert_allclose(
        state.factors[0], np.prod([1 + x for x in rates[:8]]), rtol=1e-4
    )


def test_which_sides_are_dense():
    def shapes(g, **options):
        factors = steepest.scale_by_psgd(**options).init(jnp.ones(g)).factors
        return [None if q is None else q.shape for q in factors]

    assert shapes((3, 7)) == [(3, 3), (7,)]
    assert shapes((7, 3)) == [(7,), (3, 3)]
    assert shapes((3, 3)) == [(3, 3), (3, 3)]
    assert shapes((5, 3, 7)) == [(5, 3, 3), (5, 7)]
    assert shapes((3, 7), max_skew=3.0) == [(3, 3), (7, 7)]
    assert shapes((3, 7), max_skew=INF, longest=5) == [(3, 3), (7,)]
    assert shapes((3, 3), max_skew=0.0) == [(3,), (3,)]
    assert shapes((1, 7)) == shapes((7,)) == [None, (7,)]
    assert shapes((7, 1)) == [(7,), None]
    assert shapes(()) == shapes((1, 1)) == [None, (1,)]
    words = {"words": ("in", "in", "out")}
    assert shapes((2, 2, 5), **words) == [(4, 4), (5,)]


@pytest.mark.parametrize("m, n, size", [(64, 64, 12), (32, 128, 21)])
def test_bytes_per_param(m, n, size):
    """The mean and two dense factors; besides them, a count and two bounds."""
    state = steepest.scale_by_psgd(max_skew=INF).init(jnp.ones((m, n)))
    assert sum(x.nbytes for x in jax.tree.leaves(state)) == size * m * n + 4 + 8
    state = steepest.scale_by_psgd().init(jnp.ones((32, 128)))
    shorter = 4 * (32 * 128 + 32 * 32 + 128)
    assert sum(x.nbytes for x in jax.tree.leaves(state)) == shorter + 4 + 8


@pytest.mark.parametrize("whiten", ["momentum", "gradient"])
def test_updates_are_white(whiten):
    """The covariance of the rows of `u` is about the identity after 300 steps."""
    tx = steepest.scale_by_psgd(whiten=whiten)
    assert _white.error_of_mean_covariance(tx, 16, 300, 3000) < 0.1


def test_a_tenth_of_the_steps_of_adam():
    def make(rate):
        rate = steepest.scale_by_learning_rate(rate)
        return steepest.chain(steepest.scale_by_psgd(frequency=1), rate)

    assert _white.loss_of_quadratic(make, [0.1], 250) < 1e-6
    assert _white.loss_of_quadratic(steepest.adam, [0.1, 0.3, 1.0], 2500) > 1e-6


def test_rotated_gradients_have_rotated_updates():
    left, right = (
        jnp.linalg.qr(jax.random.normal(jax.random.key(k), (d, d)))[0]
        for k, d in enumerate((3, 7))
    )
    gs = [g["wide"] for g in _white.gradients(5)]
    tx = steepest.scale_by_psgd(frequency=1, max_skew=INF, damping=ODD)
    with EXACT:
        plain, _ = _white.updates(tx, gs)
        turned, _ = _white.updates(tx, [left @ g @ right for g in gs])
    for u, v in zip(plain, turned, strict=True):
        np.testing.assert_allclose(left @ u @ right, v, rtol=1e-3, atol=1e-4)


def test_matrices_of_a_stack_are_separate():
    gs = _white.gradients(5)
    stacks = [{"w": g["layers"], "v": g["layers"][0]} for g in gs]
    apart = [{"a": g["layers"][0], "b": 1 * g["layers"][1]} for g in gs]
    tx = steepest.scale_by_psgd(rolled=False)
    together, _ = _white.updates(tx, stacks)
    single = [_white.updates(tx, [{k: g[k]} for g in apart])[0] for k in "ab"]
    for u, a, b in zip(together, *single, strict=True):
        np.testing.assert_allclose(u["w"][0], a["a"], rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(u["w"][1], b["b"], rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(u["v"], a["a"], rtol=1e-4, atol=1e-5)


def test_each_step_in_turns_is_each_step_for_all():
    gs = _white.gradients(4)
    tx, other = (
        steepest.scale_by_psgd(rolled=x, frequency=f)
        for x, f in ((True, 1), (False, 9))
    )
    pairs = (_white.updates(x, gs)[0] for x in (tx, other))
    for found, want in zip(*pairs, strict=True):
        for name in gs[0]:
            np.testing.assert_array_equal(found[name], want[name])


def test_when_fits_are_due():
    due = np.asarray(jax.vmap(lambda t: is_due(t, 20))(jnp.arange(6000)))
    steps = np.flatnonzero(due)
    assert due[:500].all()
    gaps = np.diff(steps)
    assert set(gaps[-50:]) == {20}
    # Half as often after 500 + 1000 log(2) steps.
    near = steps[np.abs(steps - 1193) < 50]
    np.testing.assert_allclose(np.diff(near).mean(), 2, rtol=0.1)
    assert np.asarray(jax.vmap(lambda t: is_due(t, 1))(jnp.arange(600))).all()


def test_zeros_for_a_long_time():
    """The factors whiten the noise of `damping`, and are right again soon after."""
    g = _white.gradients(1)[0]["square"]
    tx = steepest.scale_by_psgd(frequency=1, fit_rate=0.5)

    @jax.jit
    def run(state, gs):
        step = lambda state, g: tx.update(g, state)[::-1]
        return jax.lax.scan(step, state, gs)

    state, us = run(tx.init(g), jnp.zeros((1000, 5, 5)))
    assert not jnp.any(us)
    for q in state.factors:
        np.testing.assert_allclose(jnp.diag(q), 1e9**0.25, rtol=1e-2)
    noise = jax.random.normal(jax.random.key(0), (200, 5, 5))
    state, us = run(state, noise)
    assert jnp.isfinite(us).all() and jnp.max(jnp.abs(us)) <= 10
    rms = float(jnp.sqrt(jnp.mean(us[-50:] ** 2)))
    assert 0.5 < rms < 1.5


@pytest.mark.parametrize("size", [1e6, 1e30])
def test_one_spike_is_soon_forgotten(size):
    tx = steepest.scale_by_psgd(b1=0.0, frequency=1, fit_rate=0.5)
    noise = jax.random.normal(jax.random.key(0), (300, 6, 6)).at[100].multiply(size)

    @jax.jit
    def run(gs):
        step = lambda state, g: tx.update(g, state)[::-1]
        return jax.lax.scan(step, tx.init(gs[0]), gs)[1]

    us = run(noise)
    rms = jnp.sqrt(jnp.mean(us**2, axis=(1, 2)))
    assert jnp.max(rms) <= 2.0001 and jnp.max(jnp.abs(us)) <= 10
    assert jnp.min(rms[200:]) > 0.3


def test_the_size_of_the_gradients_matters_little():
    """Updates have about the same size after a few fits."""
    for size in (1e-6, 1e-3, 1e3):
        gs = [size * g["square"] for g in _white.gradients(60)]
        u = _white.updates(steepest.scale_by_psgd(frequency=1), gs)[0][-1]
        assert 0.3 < float(jnp.sqrt(jnp.mean(u**2))) <= 2


def test_the_recipe_scales_and_decays():
    g = {"w": jnp.ones((4, 4)), "b": jnp.ones(4)}
    tx = steepest.psgd(0.1, weight_decay=0.5, rms=0.3)
    white, _ = _white.updates(steepest.scale_by_psgd(), [g["w"]])
    u = _white.updates(tx, [g])[0][0]
    want = -0.1 * (0.3 * white[0] + 0.5 * g["w"])
    np.testing.assert_allclose(u["w"], want, rtol=1e-5)
    np.testing.assert_allclose(u["b"], -0.1, rtol=1e-4)
    groups = {x.path: x.groups for x in steepest.describe(tx, g).lines}
    assert groups == {"['w']": ("psgd",), "['b']": ("adam",)}


def test_its_numbers_can_be_injected():
    g = {"w": _white.gradients(1)[0]["square"]}
    tx = steepest.inject_hyperparams(steepest.psgd)(0.1)
    names = {"learning_rate", "b1", "weight_decay", "fit_rate", "first_fit_rate"}
    names |= {"damping", "rms", "adam_b1", "adam_b2", "adam_eps"}
    assert set(tx.init(g).hyperparams) == names
    found, want = (_white.updates(x, [g])[0][0] for x in (tx, steepest.psgd(0.1)))
    np.testing.assert_allclose(found["w"], want["w"], rtol=1e-4)


@pytest.mark.usefixtures("as_users_do")
def test_impossible_arguments_are_refused():
    refuses(
        steepest.psgd,
        0.1,
        rms=[INF, NAN, "1"],
        adam_b1=[1.5],
        adam_eps=[-1.0],
        b1=[1.5, "1"],
        fit_rate=[0.0, 1.0, -1.0, None],
        first_fit_rate=[0.0, 1.0],
        damping=[0.0, -1.0, INF, NAN],
        max_skew=[-1.0, NAN, "1"],
        longest=[0, 1.5],
        frequency=[0, 1.5],
        rolled=NOT_FLAGS,
        mu_dtype=NOT_DTYPES,
        whiten=["mu", None],
    )
    tx = steepest.scale_by_psgd(words=("in", "in", "out"))
    with pytest.raises(ValueError, match=r"has shape \(2, 3\), expected a matrix"):
        tx.update(jnp.ones((2, 3)), tx.init(jnp.ones((2, 3, 4))))


@pytest.mark.parametrize("recipe", [steepest.psgd, steepest.kron])
def test_factors_are_never_narrow(recipe):
    tx = recipe(0.1, memory_dtype="bfloat16")
    state = jax.eval_shape(tx.init, {"w": jnp.ones((4, 6))})
    state = state.inner_states[recipe.__name__].inner_state[0]
    assert state.mu["w"].dtype == jnp.bfloat16
    factors = jax.tree.leaves(state._replace(mu=None, count=None))
    assert factors and all(x.dtype == jnp.float32 for x in factors)
