"""SPlus: signs in an eigenbasis, against a slow reference and its traps."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steepest

W = jax.random.normal(jax.random.key(0), (5, 8))
S = jax.random.normal(jax.random.key(1), (6, 6))
P = {"wide": W, "tall": 2 * W.T, "layers": jnp.stack([S, 3 * S + 1]), "b": W[0]}
# The factor of a longer side than the other has no full rank at first: any basis of the
# rest would do, and rounding errors decide. So those sides get none here.
SIDE = 6
RATE, DECAY = 0.2, 0.1


def _gradients(p, count):
    """Noisy gradients of full rank: no sign depends on rounding."""
    keys = jax.random.split(jax.random.key(1), count)
    noise = lambda key, x: jax.random.normal(key, x.shape, x.dtype)
    return [
        jax.tree.map(lambda x, key=key: noise(jax.random.fold_in(key, x.size), x), p)
        for key in keys
    ]


def _run(tx, p, gs, jit=True):
    update = jax.jit(tx.update) if jit else tx.update
    state = tx.init(p)
    for g in gs:
        u, state = update(g, state, p)
        p = steepest.apply_updates(p, u)
    return p, state


def _splus(gs, p, k, b1=0.9, b2=0.99):
    """The paper, with NumPy."""
    m, n = p.shape
    mu, left, right, ql, qr = 0 * p, 0, 0, np.eye(m), np.eye(n)
    for t, g in enumerate(gs, 1):
        mu = b1 * mu + (1 - b1) * g
        u = ql @ np.sign(ql.T @ mu @ qr) @ qr.T
        left = b2 * left + (1 - b2) * g @ g.T
        right = b2 * right + (1 - b2) * g.T @ g
        p = p - RATE * 2 / (m + n) * (u + DECAY * p)
        if t == 1 or t % k == 0:
            ql, qr = _eigenvectors(left, ql), _eigenvectors(right, qr)
    return p


def _eigenvectors(a, basis):
    return np.linalg.eigh(a)[1] if len(a) <= SIDE else basis


def _signs(gs, p, b1=0.9):
    mu = 0 * p
    for g in gs:
        mu = b1 * mu + (1 - b1) * g
        p = p - 1e-3 * RATE * np.sign(mu)
    return p


@pytest.mark.parametrize("jit", [True, False])
def test_the_paper_against_a_slow_reference(jit):
    with jax.enable_x64(True):
        start = jax.tree.map(lambda x: x.astype("float64"), P)
        gs = _gradients(start, 12)
        tx = steepest.splus(
            RATE,
            b2=0.99,
            weight_decay=DECAY,
            rolled=False,
            frequency=4,
            longest=SIDE,
            others="sign",
            stacked="layers",
        )
        p, _ = _run(tx, start, gs, jit)
    start, gs, p = jax.tree.map(np.asarray, (start, gs, p))
    of = lambda *path: [g[path[0]][path[1:]] for g in gs]
    for path in (("wide",), ("tall",), ("layers", 0), ("layers", 1)):
        x, found = start[path[0]][path[1:]], p[path[0]][path[1:]]
        np.testing.assert_allclose(found, _splus(of(*path), x, 4), rtol=1e-9)
    np.testing.assert_allclose(p["b"], _signs(of("b"), start["b"]), rtol=1e-12)


def test_the_first_step_is_sign_descent():
    """The bases begin with the identity."""
    for rolled in (True, False):
        tx = steepest.scale_by_splus(rolled=rolled)
        u, _ = tx.update(W, tx.init(W), W)
        np.testing.assert_array_equal(u, jnp.sign(W))


def test_updates_have_the_length_of_signs():
    """Rotations keep the Frobenius norm: the square root of the number of elements."""
    tx = steepest.scale_by_splus(frequency=1)
    state = tx.init(W)
    for g in _gradients(W, 5):
        u, state = tx.update(g, state, W)
        np.testing.assert_allclose(float(jnp.sum(u * u)), W.size, rtol=1e-4)


def test_rotations_of_the_gradients_rotate_the_updates():
    """Once the bases are eigenvectors, from the second step on."""
    with jax.enable_x64(True):
        gs = _gradients(jnp.zeros((5, 5)), 4)
        q = jnp.linalg.qr(jnp.cos(jnp.arange(25.0).reshape(5, 5) ** 2))[0]
        tx = steepest.scale_by_splus(rolled=False, frequency=1)
        plain, turned = tx.init(gs[0]), tx.init(gs[0])
        for t, g in enumerate(gs):
            u, plain = tx.update(g, plain)
            v, turned = tx.update(q @ g, turned)
            assert np.allclose(q @ u, v, atol=1e-8) == (t > 0)


def test_the_average_of_the_params_is_kept():
    gs = _gradients(P, 3)
    tx = steepest.splus(RATE, stacked="layers", ema_decay=0.5)
    p, state = _run(tx, P, gs)
    found = steepest.ema_eval_params(state, p)
    assert jax.tree.structure(found) == jax.tree.structure(p)
    assert not np.allclose(found["wide"], p["wide"])
    assert not np.allclose(found["b"], p["b"], rtol=1e-7, atol=0)
    bare = steepest.splus(RATE, stacked="layers", ema_decay=None)
    alone, state = _run(bare, P, gs)
    np.testing.assert_array_equal(alone["wide"], p["wide"])
    with pytest.raises(TypeError, match="without an EmaParamsState"):
        steepest.ema_eval_params(state, p)


@pytest.mark.parametrize(("shape", "per_element"), [((64, 64), 24), ((32, 128), 42)])
def test_bytes_per_element(shape, per_element):
    p = {"w": jax.ShapeDtypeStruct(shape, jnp.float32)}
    (line,) = steepest.describe(steepest.splus(RATE), p).lines
    assert line.bytes == per_element * shape[0] * shape[1]


def test_other_leaves_move_by_a_thousandth_of_the_rate():
    tx = steepest.splus(RATE, weight_decay=0.0)
    p = {"b": jnp.ones(3)}
    u, _ = tx.update({"b": jnp.array([1.0, -2, 3])}, tx.init(p), p)
    np.testing.assert_allclose(u["b"], RATE * 1e-3 * np.array([-1, 1, -1]), rtol=1e-5)
    own = steepest.splus(RATE, weight_decay=0.0, adam_learning_rate=0.5)
    u, _ = own.update({"b": jnp.array([1.0, -2, 3])}, own.init(p), p)
    np.testing.assert_allclose(u["b"], [-0.5, 0.5, -0.5], rtol=1e-5)


def test_bases_follow_the_factors():
    """Corrected in turn, they are about as good as eigenvectors from scratch."""
    spectrum = jnp.geomspace(1, 0.03, 12)[:, None]
    q, _ = jnp.linalg.qr(jax.random.normal(jax.random.key(5), (12, 12)))
    tx = steepest.scale_by_splus(b2=0.99)
    update = jax.jit(tx.update)
    state = tx.init(jnp.zeros((12, 16)))
    for g in _gradients(jnp.zeros((12, 16)), 200):
        _, state = update(q @ (spectrum * g), state)
    left, basis = state.factors[0], state.bases[0]
    b = basis.T @ left @ basis
    off = jnp.linalg.norm(b - jnp.diag(jnp.diag(b))) / jnp.linalg.norm(b)
    assert float(off) < 0.1
    np.testing.assert_allclose(basis.T @ basis, jnp.eye(12), atol=1e-5)


def test_a_side_may_be_too_long_for_a_basis():
    tx = steepest.scale_by_splus(longest=6)
    state = tx.init(W)
    assert state.bases[1] is None and state.bases[0].shape == (5, 5)
    u, _ = tx.update(W, state)
    np.testing.assert_array_equal(u, jnp.sign(W))
