"""Factors that are whitened by the other side: KL-SOAP and KL-Shampoo."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steepest

from ._difficult import DTYPES, stays_finite
from ._reference import matrix, run, updates
from ._runs import no_gradient_makes_it_infinite, spread, steps_to_solve


def _next_basis(a, q):
    x = a @ q
    order = np.argsort(-(q * x).sum(0))
    new = np.empty_like(q)
    new[:, order] = np.linalg.qr(x[:, order])[0]
    return new


class _Factors:
    """`L`, `R`, their bases and eigenvalues, by the formulas of the paper."""

    def __init__(self, m, n):
        self.l, self.r = np.zeros((m, m)), np.zeros((n, n))
        self.q_l, self.q_r = np.eye(m), np.eye(n)
        self.e_l, self.e_r = np.full(m, 0.1), np.full(n, 0.1)

    def refresh(self):
        """Correct the bases, unless there is nothing in the factors."""
        if self.l.any():
            self.q_l = _next_basis(self.l, self.q_l)
            self.q_r = _next_basis(self.r, self.q_r)

    def add(self, g, beta):
        """Let a gradient enter, whitened by the old factor of the other side."""
        m, n = g.shape
        inverse = lambda q, e: (q / e) @ q.T
        c_l, c_r = inverse(self.q_l, self.e_l), inverse(self.q_r, self.e_r)
        x = self.q_l.T @ g @ self.q_r
        e_l = (x**2 / self.e_r).mean(1)
        e_r = (x.T**2 / self.e_l).mean(1)
        self.l = beta * self.l + (1 - beta) * g @ c_r @ g.T / n
        self.r = beta * self.r + (1 - beta) * g.T @ c_l @ g / m
        self.e_l = beta * self.e_l + (1 - beta) * e_l
        self.e_r = beta * self.e_r + (1 - beta) * e_r
        return x

    def turned(self, x):
        return self.q_l.T @ x @ self.q_r

    def back(self, x):
        return self.q_l @ x @ self.q_r.T


def _kl_shampoo(gs):
    f, mu, us = _Factors(*gs[0].shape), 0, []
    for g in gs:
        mu = 0.9 * mu + 0.1 * g
        f.refresh()
        f.add(g, 0.95)
        us.append(f.back(f.turned(mu) / np.sqrt(np.outer(f.e_l, f.e_r))))
    return us


def _kl_soap(gs):
    f, mu, nu, us = _Factors(*gs[0].shape), 0, 0, []
    most = 0.1 / np.sqrt(0.05 * (1 - 0.9**2 / 0.95))  # of Adam in a fixed basis
    for t, g in enumerate(gs, 1):
        f.refresh()
        x = f.add(g, 0.95)
        mu, nu = 0.9 * mu + 0.1 * g, 0.95 * nu + 0.05 * x**2
        u = f.turned(mu / (1 - 0.9**t)) / np.sqrt(nu / (1 - 0.95**t))
        us.append(f.back(np.clip(u, -most, most)))
    return us


MAKERS = {
    "soap": lambda **k: steepest.scale_by_soap(0.9, 0.95, 1e-12, factors="kl", **k),
    "shampoo": lambda **k: steepest.scale_by_shampoo(
        0.9, 0.95, 1e-12, factors="kl", **k
    ),
}
everyone = pytest.mark.parametrize("name", MAKERS)


@everyone
@pytest.mark.parametrize("compiled", [True, False])
def test_a_few_steps_against_a_slow_reference(name, compiled):
    reference = {"soap": _kl_soap, "shampoo": _kl_shampoo}[name]
    with jax.enable_x64(True):
        gs = [jnp.asarray(matrix(t, 5, 5), "float64") for t in range(8)]
        tx = MAKERS[name](frequency=1)
        update = jax.jit(tx.update) if compiled else tx.update
        state = tx.init(gs[0])
        for g, want in zip(gs, reference(list(map(np.asarray, gs))), strict=True):
            u, state = update(g, state)
            np.testing.assert_allclose(u, want, 1e-5, 1e-5 * abs(want).max())


def test_what_is_kept():
    """Two vectors more than SOAP, and only then."""
    p = jnp.ones((4, 6))
    state = steepest.scale_by_soap(factors="kl").init(p)
    assert isinstance(state, steepest.ScaleByKlSoapState)
    assert [x.shape for x in state.eigenvalues] == [(4,), (6,)]
    assert isinstance(steepest.scale_by_soap().init(p), steepest.ScaleBySoapState)


OPTIONS = [{}, {"rolled": False}, {"one_sided": True}, {"longest": 5}]
SOAP = [{"fresh": True}, {"fresh": True, "rolled": False, "basis": "rotation"}]
CASES = [(name, x) for name in MAKERS for x in OPTIONS] + [("soap", x) for x in SOAP]


@pytest.mark.parametrize("name, options", CASES, ids=str)
def test_no_gradient_makes_it_infinite(name, options):
    no_gradient_makes_it_infinite(MAKERS[name](frequency=2, **options))


@pytest.mark.parametrize("options", OPTIONS + SOAP, ids=str)
@pytest.mark.parametrize("dtype", DTYPES)
def test_equal_gradients_in_every_dtype(options, dtype):
    stays_finite(steepest.soap(0.1, factors="kl", frequency=2, **options), dtype)


@everyone
def test_the_first_step_of_the_paper_makes_no_update(name):
    gs = [matrix(t, 4, 6) for t in range(3)]
    found = updates(MAKERS[name](rolled=False), gs)
    np.testing.assert_array_equal(found[0], 0)
    assert np.any(found[1])


@everyone
def test_a_large_gradient_after_small_ones_makes_no_large_step(name):
    gs = [1e-6 * matrix(t, 4, 6) for t in range(300)] + [matrix(300, 4, 6)]
    update, state = jax.jit((tx := MAKERS[name](frequency=5)).update), None
    state = tx.init(gs[0])
    for g in gs:
        u, state = update(g, state)
        assert float(jnp.sqrt(jnp.mean(u * u))) < 10


def test_updates_are_white():
    tx = steepest.scale_by_soap(0.0, 0.995, factors="kl", frequency=1)
    assert max(spread(tx)) < 0.1


def test_a_stack_is_its_matrices():
    stack = jnp.stack([matrix(k, 5, 5) for k in range(3)])
    gs = [jnp.cos(3 * stack + t) for t in range(4)]
    make = lambda **k: steepest.soap(0.1, frequency=1, factors="kl", fresh=True, **k)
    found, _ = run(make(stacked="s"), {"s": stack}, [{"s": g} for g in gs])
    for k in range(3):
        one, _ = run(make(), {"w": stack[k]}, [{"w": g[k]} for g in gs])
        np.testing.assert_allclose(found["s"][k], one["w"], 1e-3, 1e-4)


@pytest.mark.parametrize("fresh", [True, False])
def test_a_kronecker_quadratic_takes_a_tenth_of_adams_steps(fresh):
    make = lambda rate: steepest.soap(
        rate, factors="kl", fresh=fresh, frequency=1, weight_decay=0.0
    )
    mine = steps_to_solve(make, [0.06], 2000)
    adam = steps_to_solve(steepest.adam, [0.03, 0.1, 0.3, 1.0], 10 * mine)
    assert mine < 500 and adam >= 10 * mine
