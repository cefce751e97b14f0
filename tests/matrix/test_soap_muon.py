"""SOAP-Muon: the polar factor of SOAP's update, against a slow reference."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steepest
from steepest.numerics import polynomials

from .test_splus import _gradients, _run, P, SIDE, W

RATE, DECAY = 0.2, 0.1


def _polar(m):
    u, s, v = np.linalg.svd(m, full_matrices=False)
    s = s / np.sqrt((s**2).sum())
    for a, b, c in polynomials("x", "polar_express"):
        s = a * s + b * s**3 + c * s**5
    return (u * s) @ v


def _next(q, a):
    """One step of orthogonal iteration, in the order of the eigenvalues."""
    d = len(a)
    if not np.trace(a) or d > SIDE:
        return q
    x = (a / (np.trace(a) / d) + 4 * np.finfo("float64").eps * np.eye(d)) @ q
    order = np.argsort(-np.sum(q * x, axis=0), kind="stable")
    new, r = np.linalg.qr(x[:, order])
    return (new * np.sign(np.diag(r)))[:, np.argsort(order)]


def _first(a):
    """The eigenvectors, the largest eigenvalue first."""
    return np.linalg.eigh(a)[1][:, ::-1] if len(a) <= SIDE else np.eye(len(a))


def _soap_muon(gs, p, k, rolled=True, beta=0.95, b2=0.9):
    m, n = p.shape
    mu, nu, left, right = 0 * p, 0 * p, np.zeros((m, m)), np.zeros((n, n))
    ql, qr = np.eye(m), np.eye(n)
    for t, g in enumerate(gs):
        if t == 1 and not rolled:
            ql, qr = _first(left), _first(right)
        elif t % k == 0 if rolled else t > 0 and (t - 1) % k == 0:
            ql, qr = _next(ql, left), _next(qr, right)
        mu = beta * mu + (1 - beta) * g
        x = ql.T @ (beta * mu + (1 - beta) * g) @ qr
        nu = b2 * nu + (1 - b2) * x * x
        u = 0.2 * max(m, n) ** 0.5 * _polar(ql @ (x / np.sqrt(nu)) @ qr.T)
        left = b2 * left + (1 - b2) * g @ g.T
        right = b2 * right + (1 - b2) * g.T @ g
        p = p - RATE * (u + DECAY * p)
    return p


@pytest.mark.parametrize(
    ("jit", "k", "rolled"), [(True, 1, True), (False, 1, True), (True, 3, False)]
)
def test_against_a_slow_reference(jit, k, rolled):
    with jax.enable_x64(True):
        start = jax.tree.map(lambda x: x.astype("float64"), P)
        gs = _gradients(start, 8)
        tx = steepest.soap_muon(
            RATE,
            weight_decay=DECAY,
            eps=1e-12,
            stacked="layers",
            longest=SIDE,
            frequency=k,
            rolled=rolled,
        )
        p, _ = _run(tx, start, gs, jit)
    start, gs, p = jax.tree.map(np.asarray, (start, gs, p))
    for path in (("wide",), ("tall",), ("layers", 0), ("layers", 1)):
        x, found = start[path[0]][path[1:]], p[path[0]][path[1:]]
        mine = [g[path[0]][path[1:]] for g in gs]
        wanted = _soap_muon(mine, x, k, rolled)
        np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-8)


def test_updates_are_nearly_orthogonal():
    tx = steepest.scale_by_soap_muon(steps=8)
    state = tx.init(W)
    for g in _gradients(W, 5):
        u, state = tx.update(g, state)
        np.testing.assert_allclose(u @ u.T, jnp.eye(5), atol=1e-3)


def test_it_is_muon_of_signs_in_the_first_step():
    """Without a basis, and one square in the mean of squares."""
    tx = steepest.scale_by_soap_muon()
    u, _ = tx.update(W, tx.init(W))
    np.testing.assert_allclose(u, _polar(np.sign(np.asarray(W))), atol=1e-5)


def test_the_scale_of_the_gradients_does_not_matter():
    gs = _gradients(W, 4)
    tx = steepest.soap_muon(RATE)
    p, _ = _run(tx, W, gs)
    q, _ = _run(tx, W, [1024 * g for g in gs])
    np.testing.assert_allclose(p, q, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(("shape", "per_element"), [((64, 64), 24), ((32, 128), 42)])
def test_bytes_per_element(shape, per_element):
    p = {"w": jax.ShapeDtypeStruct(shape, jnp.float32)}
    (line,) = steepest.describe(steepest.soap_muon(RATE), p).lines
    assert line.bytes == per_element * shape[0] * shape[1]


def test_matrices_take_turns():
    """With a frequency of 4, one of the four sides changes its basis in each step."""
    square = W[:, : len(W)] if W.shape[0] <= W.shape[1] else W[: W.shape[1]]
    p = {"a": square, "b": square + 1}
    tx = steepest.scale_by_soap_muon(frequency=4)
    state, changed = tx.init(p), []
    for g in _gradients(p, 9):
        pairs = [(k, side) for k in p for side in (0, 1)]
        old = state.bases
        _, state = tx.update(g, state)
        new = state.bases
        changed.append([not np.array_equal(old[k][i], new[k][i]) for k, i in pairs])
    assert all(sum(row) == 1 for row in changed[4:])
