"""Bases that follow a symmetric matrix, against LAPACK in float64."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from steepest.numerics import (
    _eigenbasis,
    _matmul,
    eigenbasis,
    inverse_cholesky,
    iterated_basis,
    orthonormal,
    rotated_basis,
)

SPECTRA = {
    "steep": np.logspace(0, -6, 48),
    "moderate": np.logspace(0, -2, 48),
    "power": 1 / np.arange(1, 49.0),
    "two equal": np.repeat(np.logspace(0, -2, 24), 2),
    "singular": np.r_[np.logspace(0, -2, 24), np.zeros(24)],
}
spectra = pytest.mark.parametrize("name", SPECTRA)


@pytest.fixture(autouse=True, params=["lapack", "cholesky"])
def way(request, monkeypatch):
    """Small matrices on a CPU are factored by LAPACK, all others by Cholesky."""
    if request.param == "cholesky":
        monkeypatch.setattr(_eigenbasis, "short_programs", lambda: False)
    return request.param


def _rotation(seed, d=48, angle=None):
    x = np.random.RandomState(seed).randn(d, d)
    return np.linalg.qr(x if angle is None else np.eye(d) + angle * x)[0]


def _problem(name):
    """A symmetric matrix with this spectrum, and its eigenvectors."""
    vectors = _rotation(0)
    return (vectors * SPECTRA[name]) @ vectors.T, vectors


def _starts(vectors):
    return [np.eye(48), _rotation(1), vectors @ _rotation(2, angle=0.02)]


def _off(a, basis):
    b = np.float64(basis).T @ a @ np.float64(basis)
    return np.linalg.norm(b - np.diag(np.diag(b))) / np.linalg.norm(b)


def _float32(x):
    return jnp.asarray(x, jnp.float32)


def _qr(a, basis):
    """One step of orthogonal iteration, in the order of the columns of `basis`."""
    order = np.argsort(-np.diag(basis.T @ a @ basis))
    q, r = np.linalg.qr((a @ basis)[:, order])
    result = np.empty_like(q)
    result[:, order] = q * np.sign(np.diag(r))
    return result


def _is_orthogonal(q, atol):
    q = np.float64(q)
    np.testing.assert_allclose(q.T @ q, np.eye(len(q)), atol=atol)


@spectra
def test_one_step_of_orthogonal_iteration(name):
    a, vectors = _problem(name)
    for start in _starts(vectors):
        basis = iterated_basis(_float32(a), _float32(start))
        _is_orthogonal(basis, 1e-4)
        if name != "singular":
            assert abs(_off(a, basis) - _off(a, _qr(a, start))) < 1e-3


def test_in_float64_it_is_the_qr_decomposition():
    a, vectors = _problem("power")
    with jax.enable_x64(True):
        for start in _starts(vectors):
            basis = iterated_basis(jnp.asarray(a), jnp.asarray(start))
            np.testing.assert_allclose(basis, _qr(a, start), atol=1e-7)


def test_iterations_converge():
    a, _ = _problem("power")
    step = lambda _, basis: iterated_basis(_float32(a), basis)
    basis = jax.jit(lambda: jax.lax.fori_loop(0, 100, step, jnp.eye(48)))()
    assert _off(a, basis) < 1e-3


@spectra
def test_rotations_of_a_basis_that_is_almost_right(name):
    """Closer than orthogonal iteration, which is what they are for."""
    a, vectors = _problem(name)
    start = vectors @ _rotation(2, angle=1e-3)
    basis = rotated_basis(_float32(a), _float32(start))
    _is_orthogonal(basis, 1e-4)
    # Without eigenvalues any rotation will do, and large ones slow down the others.
    least = 0.9 if name == "singular" else 0.5
    assert _off(a, basis) < max(least * _off(a, start), 1e-5)


@spectra
def test_rotations_stay_orthogonal(name):
    a, vectors = _problem(name)
    for start in _starts(vectors):
        _is_orthogonal(rotated_basis(_float32(a), _float32(start)), 2e-4)


@spectra
def test_from_scratch(name):
    a, _ = _problem(name)
    basis = eigenbasis(_float32(a))
    assert _off(a, basis) < 1e-5
    sizes = np.diag(np.float64(basis).T @ a @ np.float64(basis))
    assert (np.diff(sizes) < 1e-5).all()  # the largest first


@pytest.mark.parametrize("follow", [iterated_basis, rotated_basis])
def test_zeros_change_nothing(follow):
    start = _float32(_rotation(1))
    basis = follow(jnp.zeros((48, 48)), start)
    np.testing.assert_allclose(basis, start, atol=1e-5)


def test_zeros_from_scratch():
    assert jnp.array_equal(eigenbasis(jnp.zeros((5, 5))), jnp.eye(5))


@pytest.mark.parametrize("scale", [1e-30, 1e30])
def test_the_scale_does_not_matter(scale):
    a, vectors = _problem("moderate")
    start = _float32(vectors @ _rotation(2, angle=0.02))
    for follow in (iterated_basis, rotated_basis):
        want = follow(_float32(a), start)
        np.testing.assert_allclose(follow(_float32(scale * a), start), want, atol=1e-4)


@pytest.mark.parametrize("block", [5, 16, 48])
def test_the_inverse_of_the_cholesky_factor(block, monkeypatch):
    monkeypatch.setattr(_eigenbasis, "_BLOCK", block)
    a = np.cov(np.random.RandomState(0).randn(48, 200))
    want = np.linalg.inv(np.linalg.cholesky(a))
    np.testing.assert_allclose(inverse_cholesky(_float32(a)), want, atol=1e-4)


def test_almost_parallel_columns():
    """More than one pass is needed, and made."""
    x = np.ones((32, 32)) + 1e-3 * np.random.RandomState(0).randn(32, 32)
    _is_orthogonal(orthonormal(_float32(x)), 1e-3)


def test_fewer_gradients_than_columns():
    """The rest of a factor is rounding errors, and its blocks may look indefinite."""
    follow = jax.jit(iterated_basis)
    for seed in range(8):
        g = 0.02 * jax.random.normal(jax.random.key(seed), (96, 384))
        _is_orthogonal(follow(0.05 * g.T @ g, jnp.eye(384)), 1e-3)


def _three_products(x, y):
    """The product of a GPU: of halves in bfloat16, without that of both low ones."""
    high = lambda x: jax.lax.reduce_precision(x, 8, 7)
    (a, b), (c, d) = ((high(x), high(x - high(x))) for x in (x, y))
    return a @ c + (a @ d + b @ c)


@pytest.mark.parametrize("power", [0.5, 1.0, 2.0])
def test_the_arithmetic_of_a_gpu(monkeypatch, power):
    """Rows in float16, and products of 16 bits, for spectra that decay."""
    monkeypatch.setattr(_matmul, "_is_halved", lambda x: x.dtype == jnp.float32)
    monkeypatch.setattr(_eigenbasis, "times", _three_products)
    monkeypatch.setattr(_eigenbasis, "product_error", lambda x: 1.2e-5)
    d, rng, follow = 320, np.random.RandomState(0), jax.jit(iterated_basis)
    vectors, spectrum = _rotation(0, d), np.arange(1, d + 1.0) ** -power
    factor, basis, exact = np.zeros((d, d)), jnp.eye(d), np.eye(d)
    for _ in range(8):
        g = (vectors * spectrum) @ rng.randn(d, d // 4)
        factor = 0.95 * factor + 0.05 * g @ g.T
        basis, exact = follow(_float32(factor), basis), _qr(factor, exact)
        _is_orthogonal(basis, 3e-4)
    assert _off(factor, basis) < 1.02 * _off(factor, exact) + 1e-3


@pytest.mark.parametrize("n", [2, 3, 6, 48, 129])
@pytest.mark.parametrize("start", ["identity", "rotation"])
def test_few_directions_and_rows_in_float16(monkeypatch, n, start):
    """Rounded rows of a factor of rank one would all be equal."""
    monkeypatch.setattr(_matmul, "_is_halved", lambda x: x.dtype == jnp.float32)
    monkeypatch.setattr(_eigenbasis, "short_programs", lambda: False)
    monkeypatch.setattr(_eigenbasis, "times", _three_products)
    monkeypatch.setattr(_eigenbasis, "product_error", lambda x: 1.2e-5)
    rng, follow = np.random.RandomState(0), jax.jit(iterated_basis)
    some = [np.ones((n, 1)), np.arange(1.0, n + 1)[:, None], np.eye(n)[:, :1]]
    some += [rng.randn(n, 2), np.round(rng.rand(n, 3))]
    for x in some:
        basis = _float32(np.eye(n) if start == "identity" else _rotation(0, n))
        for _ in range(4):
            basis = follow(_float32(x @ x.T), basis)
            _is_orthogonal(basis, 1e-3)
        if x.shape[1] == 1:
            along = np.abs(basis.T @ x[:, 0]) / np.linalg.norm(x)
            assert along.max() > 0.999


def test_a_basis_that_cannot_be_corrected_is_kept(monkeypatch):
    """No pass has rows of numbers."""
    monkeypatch.setattr(_eigenbasis, "short_programs", lambda: False)
    basis = _float32(_rotation(0, 6))
    for bad in (jnp.nan, jnp.inf):
        kept = jax.jit(iterated_basis)(jnp.full((6, 6), bad), basis)
        np.testing.assert_allclose(kept, basis, atol=1e-5)


def test_stacks():
    """All functions can be mapped over a stack."""
    many = [_problem(name)[0] for name in ("power", "moderate")]
    starts = [_rotation(3), np.eye(48)]
    for follow in (iterated_basis, rotated_basis):
        together = jax.vmap(follow)(
            _float32(np.stack(many)), _float32(np.stack(starts))
        )
        for k in range(2):
            alone = follow(_float32(many[k]), _float32(starts[k]))
            np.testing.assert_allclose(together[k], alone, atol=2e-4)


def test_a_stack_of_easy_and_hard_matrices():
    """Each is corrected until it is orthogonal; the others must not suffer from it."""
    d = 384
    rng = np.random.RandomState(0)
    few = 0.02 * rng.randn(d, 96)
    steep = _rotation(0, d) / np.arange(1, d + 1.0) ** 2
    many = [np.eye(d), few @ few.T, steep @ steep.T, np.zeros((d, d)), rng.randn(d, d)]
    many[-1] = many[-1] @ many[-1].T
    together = jax.jit(jax.vmap(iterated_basis, (0, None)))
    bases = together(_float32(np.stack(many)), jnp.eye(d))
    for a, basis in zip(many, bases, strict=True):
        _is_orthogonal(basis, 3e-4)
        if a.any():
            assert _off(a, basis) < _off(a, _qr(a, np.eye(d))) + 1e-3
    np.testing.assert_allclose(bases[0], np.eye(d), atol=1e-5)
    np.testing.assert_allclose(bases[3], np.eye(d), atol=1e-5)


def test_when_newton_steps_are_too_slow():
    """An error of all rows together is smaller in each of them. A step shows it."""
    d = 64
    spread, alone = np.full(d, d**-0.5), np.eye(d)[3]
    none = _eigenbasis._Pass(*[jnp.zeros(())] * 5, jnp.zeros((), jnp.int32))
    for v, first, then in ((spread, False, True), (alone, True, True)):
        x = _float32(np.eye(d) - 0.95 * np.outer(v, v))
        rows = _eigenbasis._rounded_rows(x)
        before = none._replace(rows=rows, gap=_eigenbasis._rounded_gap(x))
        state = before.with_rows(x, _eigenbasis._NEAR)
        assert bool(state.error > state.most) == first
        state = _eigenbasis._stepped(state)
        assert bool(state.error > state.most) == then
        assert _eigenbasis._factored(state).error < 1e-2
    close = _float32(np.eye(d) - 0.2 * np.outer(alone, alone))
    state = _eigenbasis._stepped(before.with_rows(close, _eigenbasis._NEAR))
    assert state.error < state.most  # one more step


def test_lapack_gets_one_matrix_at_a_time(way):
    """Several calls with batches would wait for each other forever on two cores."""
    x = jnp.ones((2, 3, 8, 8))
    program = jax.make_jaxpr(jax.vmap(jax.vmap(orthonormal)))(x)
    inputs = [
        eqn.invars[0].aval.shape
        for eqn in _equations(program.jaxpr)
        if eqn.primitive.name == "qr"
    ]
    assert inputs == ([(8, 8)] if way == "lapack" else [])


def test_a_basis_by_lapack_has_a_derivative(way):
    if way != "lapack":
        pytest.skip("loops have no derivative in reverse")
    x = _float32(np.random.RandomState(0).randn(2, 8, 8) + 4 * np.eye(8))
    f = lambda x: jnp.sum(jnp.sin(jax.vmap(orthonormal)(x)))
    along = _float32(np.random.RandomState(1).randn(2, 8, 8))
    _, slope = jax.jvp(f, (x,), (along,))
    np.testing.assert_allclose(jnp.vdot(jax.grad(f)(x), along), slope, rtol=1e-3)


def _equations(jaxpr):
    """Those of a program and of all programs inside it."""
    for eqn in jaxpr.eqns:
        yield eqn
        for x in jax.tree.leaves(list(eqn.params.values())):
            yield from _equations(getattr(x, "jaxpr", x)) if hasattr(x, "eqns") else ()
