"""Kron: its updates, its fits, and its random numbers."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steepest
from steepest.matrix._kron import probe

from ..optimizers._refused import INF, NAN, NOT_DTYPES, NOT_FLAGS, refuses
from . import _white


class Reference:
    """The slow reference, for one matrix, in float64."""

    def __init__(self, shape, longest):
        self.q = [np.eye(d) if 1 < d <= longest else np.ones(d) for d in shape]
        self.fitted = [shape[0] > 1, shape[1] > 1 or shape[0] == 1]
        self.mu, self.t = 0.0, 0

    def full(self):
        return [q if q.ndim == 2 else np.diag(q) for q in self.q]

    def update(self, g):
        self.mu = 0.9 * self.mu + 0.1 * g
        rows, columns = self.full()
        v = probe(0, jnp.asarray(self.t), g.shape, jnp.float32)
        v = np.asarray(v, np.float64)
        self.t += 1
        mean = self.mu / (1 - 0.9**self.t)
        noisy = mean + (1e-9 + 1.19e-7**0.5 * abs(mean).mean()) * v
        a = rows @ noisy @ columns.T
        b = np.linalg.inv(rows).T @ v @ np.linalg.inv(columns)
        for side, (x, y) in enumerate(((a, b), (a.T, b.T))):
            if not self.fitted[side]:
                continue
            found, wanted, q = x @ x.T, y @ y.T, self.q[side]
            both = found + wanted
            if q.ndim == 1:
                step = np.diag(found - wanted) / np.diag(both).max()
                self.q[side] = q - 0.1 * step * q
                continue
            z = both @ both[np.argmax((both**2).sum(1))]
            norm = np.linalg.norm(both @ z) / np.linalg.norm(z)
            self.q[side] = q - 0.1 * np.triu(found - wanted) @ q / norm
        rows, columns = self.full()
        u = rows.T @ rows @ mean @ columns.T @ columns
        return u * min(1, 1.1 / np.sqrt((u**2).mean()))


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "jit"])
@pytest.mark.parametrize("longest", [8192, 4])
def test_a_few_steps_against_a_slow_reference(compiled, longest):
    gs = _white.gradients(6)
    tx = {
        name: steepest.scale_by_kron(
            longest=longest,
            words=("in", "in", "out") if name == "conv" else ("in", "out"),
        )
        for name in gs[0]
    }
    both = steepest.partition(tx, {name: name for name in tx})
    found, _ = _white.updates(both, gs, compiled)
    for name in gs[0]:
        for k, first in enumerate(_white.matrices(gs[0][name])):
            one = Reference(first.shape, longest)
            for g, u in zip(gs, found, strict=True):
                want = one.update(_white.matrices(g[name])[k])
                got = _white.matrices(u[name])[k]
                np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-3)


def test_a_vector_has_one_diagonal_factor():
    tx = steepest.scale_by_kron()
    gs = [g["square"][0] for g in _white.gradients(6)]
    found, state = _white.updates(tx, gs)
    assert state.factors[0] is None and state.factors[1].shape == (5,)
    one = Reference((1, 5), 1)
    for g, u in zip(gs, found, strict=True):
        want = one.update(np.asarray(g, np.float64)[None])[0]
        np.testing.assert_allclose(u, want, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("m, n, size", [(64, 64, 12), (32, 128, 21)])
def test_bytes_per_param(m, n, size):
    """The mean and two factors, and a count."""
    state = steepest.scale_by_kron().init(jnp.ones((m, n)))
    assert sum(x.nbytes for x in jax.tree.leaves(state)) == size * m * n + 4


def test_factors_stay_triangular():
    _, state = _white.updates(steepest.scale_by_kron(), _white.gradients(5))
    for q in jax.tree.leaves(state.factors):
        np.testing.assert_array_equal(q, jnp.triu(q))
        assert jnp.all(jnp.diagonal(q, axis1=-2, axis2=-1) > 0)


def test_random_numbers_depend_on_seed_and_step():
    gs = [g["square"] for g in _white.gradients(1)] * 4
    first, again, other = (
        _white.updates(steepest.scale_by_kron(seed=seed), gs)[0][-1]
        for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(first, again)
    assert jnp.any(first != other)
    draws = [probe(0, jnp.asarray(t), (2, 2), jnp.float32) for t in range(2)]
    assert jnp.all(draws[0] != draws[1])


def test_matrices_of_a_stack_are_separate():
    gs = [g["layers"] for g in _white.gradients(5)]
    tx = steepest.scale_by_kron()
    together, _ = _white.updates(tx, gs)
    for k in range(2):
        alone, _ = _white.updates(tx, [g[k] for g in gs])
        for u, v in zip(together, alone, strict=True):
            np.testing.assert_allclose(u[k], v, rtol=1e-4, atol=1e-5)


def test_updates_are_white():
    """Later than with PSGD: the steps of the fits are small."""
    tx = steepest.scale_by_kron(rolled=True, frequency=1)
    assert _white.error_of_mean_covariance(tx, 16, 1000, 3000) < 0.15


def test_a_tenth_of_the_steps_of_adam():
    """Adam needs more than 4000: see the test of PSGD."""

    def make(rate):
        rate = steepest.scale_by_learning_rate(rate)
        return steepest.chain(steepest.scale_by_kron(), rate)

    assert _white.loss_of_quadratic(make, [0.1, 0.3], 400) < 1e-6


def test_zeros_for_a_long_time():
    """The factors whiten the noise of `damping`: they do not grow further."""
    tx = steepest.scale_by_kron(rolled=True, frequency=1)

    @jax.jit
    def run(state, gs):
        step = lambda state, g: tx.update(g, state)[::-1]
        return jax.lax.scan(step, state, gs)

    state, us = run(tx.init(jnp.zeros((4, 4))), jnp.zeros((2000, 4, 4)))
    assert not jnp.any(us)
    for q in state.factors:
        assert 1e1 < jnp.max(jnp.abs(q)) < 1e3


def test_the_recipe_scales_and_decays():
    g = {"w": jnp.ones((4, 4)), "b": jnp.ones(4)}
    tx = steepest.kron(0.1, weight_decay=0.5, rms=0.3)
    white, _ = _white.updates(steepest.scale_by_kron(), [g["w"]])
    u = _white.updates(tx, [g])[0][0]
    want = -0.1 * (0.3 * white[0] + 0.5 * g["w"])
    np.testing.assert_allclose(u["w"], want, rtol=1e-5)
    np.testing.assert_allclose(u["b"], -0.1, rtol=1e-4)


@pytest.mark.usefixtures("as_users_do")
def test_impossible_arguments_are_refused():
    refuses(
        steepest.kron,
        0.1,
        rms=[INF, NAN, "1"],
        adam_b1=[1.5],
        adam_eps=[-1.0],
        b1=[1.5, "1"],
        fit_rate=[0.0, 1.0, -1.0, None],
        damping=[0.0, -1.0, INF, NAN],
        longest=[0, 1.5],
        frequency=[0, 1.5],
        seed=[-1, 0.5],
        rolled=NOT_FLAGS,
        mu_dtype=NOT_DTYPES,
    )
