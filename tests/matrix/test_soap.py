"""SOAP against the lines of its paper, and its invariances."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steepest
from steepest.matrix._rotated_adam import largest_quotient

BETA, EPS = 0.9, 1e-8


def grads(shape, steps, seed=0):
    """Gradients with eigenvalues of their factors that differ."""
    rng, (m, n) = np.random.RandomState(seed), shape
    rotation = lambda d: np.linalg.qr(rng.randn(d, d))[0]
    rows, columns = (rotation(d) * np.logspace(0, -1, d) for d in (m, n))
    return [rows @ rng.randn(m, n) @ columns.T for _ in range(steps)]


def paper(gs, frequency):
    """The updates, as the paper writes them, in float64."""
    updates, mean, square = [np.zeros_like(gs[0])], 0.0, 0.0
    left, right = (1 - BETA) * gs[0] @ gs[0].T, (1 - BETA) * gs[0].T @ gs[0]
    ql, qr = (np.linalg.eigh(x)[1][:, ::-1] for x in (left, right))
    for t, g in enumerate(gs[1:], 1):
        small = ql.T @ g @ qr
        mean = BETA * mean + (1 - BETA) * small
        square = BETA * square + (1 - BETA) * small**2
        u = ql @ (mean / (np.sqrt(square) + EPS)) @ qr.T
        updates.append(u * np.sqrt(1 - BETA**t) / (1 - BETA**t))
        left = BETA * left + (1 - BETA) * g @ g.T
        right = BETA * right + (1 - BETA) * g.T @ g
        if t % frequency == 0:
            mean = ql @ mean @ qr.T
            order = np.argsort(-np.diag(ql.T @ left @ ql))
            square, ql = square[order], np.linalg.qr(left @ ql[:, order])[0]
            order = np.argsort(-np.diag(qr.T @ right @ qr))
            square, qr = square[:, order], np.linalg.qr(right @ qr[:, order])[0]
            mean = ql.T @ mean @ qr
    return updates


def run(tx, gs, dtype=None, compiled=True):
    """The updates, and the last state."""
    gs = jax.tree.map(lambda g: jnp.asarray(g, dtype), gs)
    state, updates = tx.init(gs[0]), []
    update = jax.jit(tx.update) if compiled else tx.update
    for g in gs:
        u, state = update(g, state, g)
        updates.append(jax.tree.map(lambda x: np.asarray(x, np.float64), u))
    return updates, state


@pytest.mark.parametrize("frequency", [1, 3, 10])
def test_as_the_paper_writes_it(frequency):
    gs = grads((12, 12), 25)
    tx = steepest.scale_by_soap(BETA, BETA, EPS, frequency=frequency, rolled=False)
    with jax.enable_x64(True):
        updates, _ = run(tx, gs)
    for u, want in zip(updates, paper(gs, frequency), strict=True):
        np.testing.assert_allclose(u, want, rtol=1e-7, atol=1e-9)


def test_eager_is_compiled():
    gs = grads((6, 5), 6)
    for options in ({}, {"rolled": False}, {"fresh": True}, {"basis": "rotation"}):
        tx = steepest.scale_by_soap(frequency=2, **options)
        eager, compiled = run(tx, gs, compiled=False)[0], run(tx, gs)[0]
        np.testing.assert_allclose(eager, compiled, rtol=2e-3, atol=2e-4)


def test_rolled_every_step_is_all_at_once():
    """If every basis changes in every step, the order of turns does not matter."""
    gs = [{"a": g, "b": 2 * g.T, "c": g + 1} for g in grads((5, 4), 8)]
    options = {"frequency": 1, "fresh": True}
    rolled, _ = run(steepest.scale_by_soap(**options), gs)
    # The same, but the first basis is found by `eigh`: from then on both follow.
    whole, _ = run(steepest.scale_by_soap(rolled=False, **options), gs)
    assert np.isfinite(rolled[0]["a"]).all() and np.isfinite(whole[0]["a"]).all()
    stacked = [{"all": np.stack([g["a"], g["c"]])} for g in gs]
    alike, _ = run(steepest.scale_by_soap(**options), stacked)
    for one, many in zip(rolled, alike, strict=True):
        np.testing.assert_allclose(one["a"], many["all"][0], rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(one["c"], many["all"][1], rtol=1e-4, atol=1e-4)


def test_the_order_of_rows_and_columns_does_not_matter():
    """Permuted gradients give permuted updates: `nu` stays with its directions."""
    gs, rng = grads((7, 6), 15), np.random.RandomState(1)
    rows, columns = rng.permutation(7), rng.permutation(6)
    tx = steepest.scale_by_soap(frequency=2, rolled=False)
    with jax.enable_x64(True):
        updates, _ = run(tx, gs)
        moved, _ = run(tx, [g[rows][:, columns] for g in gs])
    for u, v in zip(updates, moved, strict=True):
        np.testing.assert_allclose(u[rows][:, columns], v, rtol=1e-6, atol=1e-8)


def test_rotations_and_scales():
    """Rotated gradients give rotated updates; longer gradients the same ones."""
    gs, rng = grads((6, 6), 15), np.random.RandomState(2)
    a, b = (np.linalg.qr(rng.randn(6, 6))[0] for _ in range(2))
    tx = steepest.scale_by_soap(eps=0.0, frequency=2, rolled=False)
    with jax.enable_x64(True):
        updates, _ = run(tx, gs)
        turned, _ = run(tx, [a @ g @ b for g in gs])
        scaled, _ = run(tx, [1e20 * g for g in gs])
    for u, v, w in zip(updates, turned, scaled, strict=True):
        np.testing.assert_allclose(a @ u @ b, v, rtol=1e-5, atol=1e-7)
        np.testing.assert_allclose(u, w, rtol=1e-6, atol=1e-9)


def test_bases_follow_their_factors():
    gs = grads((8, 8), 60)
    for options in ({"frequency": 3}, {"frequency": 1, "basis": "rotation"}):
        _, state = run(steepest.scale_by_soap(**options), gs)
        for factor, basis in zip(state.factors, state.bases, strict=True):
            factor, basis = np.float64(factor), np.float64(basis)
            np.testing.assert_allclose(basis.T @ basis, np.eye(8), atol=2e-4)
            off = lambda b: np.linalg.norm(b - np.diag(np.diag(b)))
            assert off(basis.T @ factor @ basis) < 0.3 * off(factor)


def test_sides_without_a_basis():
    p = {"wide": jnp.ones((3, 8)), "tall": jnp.ones((8, 3)), "square": jnp.ones((3, 3))}
    state = steepest.scale_by_soap(one_sided=True).init(p)
    has = lambda name: [x is not None for x in state.bases[name]]
    assert has("wide") == [True, False] and has("tall") == [False, True]
    assert has("square") == [True, True]
    state = steepest.scale_by_soap(longest=5).init(p)
    assert [x is not None for x in state.factors["wide"]] == [True, False]


@pytest.mark.parametrize("scale", [0.0, 1e-30, 1e30])
@pytest.mark.parametrize("step", [0, 1, 49])
@pytest.mark.parametrize("rolled", [True, False])
def test_hard_gradients(scale, step, rolled):
    """Zeros, tiny and huge gradients of rank one, at any time."""
    gs = grads((6, 4), 52)
    gs[step] = scale * np.outer(np.ones(6), np.arange(1, 5))
    updates, state = run(steepest.scale_by_soap(frequency=2, rolled=rolled), gs)
    for x in jax.tree.leaves((updates, state)):
        assert np.isfinite(np.asarray(x, float)).all()


def test_bytes_per_parameter():
    """8 + 8 (r + 1 / r) for a matrix whose sides have the ratio r."""
    for r, both, short in ((1, 24, 24), (4, 42, 10)):
        p = {"kernel": jax.ShapeDtypeStruct((64, 64 * r), jnp.float32)}
        size = 64 * 64 * r
        for tx, want in (
            (steepest.soap(1e-3), both),
            (steepest.soap(1e-3, one_sided=True), short),
            (steepest.soap(1e-3, basis_dtype="float16"), 8 + 3 * (both - 8) / 4),
        ):
            (line,) = steepest.describe(tx, p).lines
            assert line.bytes == want * size


def test_complex_matrices_are_refused():
    tx = steepest.soap(1e-3)
    p = {"kernel": jnp.ones((3, 3), jnp.complex64)}
    with pytest.raises(ValueError, match=r"'kernel'.* is complex64, expected a real"):
        tx.update(p, tx.init(p), p)


def test_a_tensor_is_a_matrix():
    """Also if the matrix is square, like its factors, and in a stack."""
    gs = grads((6, 6), 5)
    want, _ = run(steepest.scale_by_soap(frequency=2), gs)
    words = ("in", "out", "out")
    tx = steepest.scale_by_soap(frequency=2, words=words)
    folded, state = run(tx, [g.reshape(6, 2, 3) for g in gs])
    stacked, _ = run(tx, [np.stack([g, 2 * g]).reshape(2, 6, 2, 3) for g in gs])
    assert state.mu.shape == (6, 2, 3) and state.factors[0].shape == (6, 6)
    for u, x, y in zip(want, folded, stacked, strict=True):
        np.testing.assert_allclose(x.reshape(6, 6), u, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(y[0].reshape(6, 6), u, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("make", [steepest.soap, steepest.soap_muon])
@pytest.mark.parametrize("more", [{}, {"memory_dtype": "int8"}, {"keep_stacks": True}])
def test_bases_in_half_precision(make, more):
    """They stay orthogonal, and the params hardly differ."""
    keys = jax.random.split(jax.random.key(0), 12)
    shapes = {"a": (64, 128), "c": (64, 128)}
    draw = lambda key: {
        k: jax.random.normal(jax.random.fold_in(key, j), s)
        for j, (k, s) in enumerate(shapes.items())
    }

    def run(**options):
        tx = make(1e-2, frequency=2, one_sided=True, **options)
        params = draw(jax.random.key(1))
        state = tx.init(params)
        for key in keys:
            u, state = jax.jit(tx.update)(draw(key), state, params)
            params = steepest.apply_updates(params, u)
        return params, steepest.unpack(state)

    (found, state), (want, _) = run(basis_dtype="float16", **more), run(**more)
    bases = steepest.tree.get(state, "bases")
    for x in jax.tree.leaves(bases):
        assert x.dtype == jnp.float16 and x.shape == (64, 64)
        x = np.asarray(x, float)
        np.testing.assert_allclose(x.T @ x, np.eye(64), atol=1e-3)
    moved = max(
        float(jnp.abs(want[k] - draw(jax.random.key(1))[k]).max()) for k in want
    )
    for k in want:
        np.testing.assert_allclose(found[k], want[k], atol=0.05 * moved)


@pytest.mark.parametrize(
    "b1, b2", [(0.95, 0.95), (0.9, 0.95), (0.9, 0.999), (0.95, 0.92), (0, 0.5)]
)
def test_the_largest_quotient_of_adam_is_reached_and_not_exceeded(b1, b2):
    """The gradients that reach it are those with equality in Cauchy and Schwarz."""
    steps = np.arange(20_000)[::-1]
    weights = (1 - b1) * float(b1) ** steps, (1 - b2) * b2**steps
    worst = np.divide(weights[0], weights[1], where=weights[1] > 0, out=0 * steps + 0.0)
    some = np.random.RandomState(0).randn(50, len(steps))
    bound = float(largest_quotient(b1, b2))
    quotient = lambda g: np.abs(g @ weights[0]) / np.sqrt(g**2 @ weights[1])
    np.testing.assert_allclose(quotient(worst), bound, rtol=1e-4)
    assert np.all(quotient(some) < bound)


@pytest.mark.parametrize("b1, b2", [(0.95, 0.9), (0.9, 0.0), (0.0, 0.0)])
def test_without_a_largest_quotient_one_gradient_decides(b1, b2):
    np.testing.assert_allclose(largest_quotient(b1, b2), 1 / np.sqrt(1 - b2), 1e-5)


def test_without_bases_no_update_is_limited():
    """What is limited, only a change of the bases can cause."""
    gs = [g * 3.0**-t for t, g in enumerate(grads((6, 4), 12))]
    for b2 in (0.95, 0.99):
        runs = [
            run(steepest.scale_by_soap(0.95, b2, 0.0, longest=1, bounded=x), gs)[0]
            for x in (True, False)
        ]
        for limited, free in zip(*runs, strict=True):
            np.testing.assert_allclose(limited, free, 1e-5)


def test_a_change_of_the_bases_makes_no_huge_update():
    random = np.random.RandomState(0)
    gs = [np.outer(random.randn(6), random.randn(4)) for _ in range(12)]
    make = partial(steepest.scale_by_soap, frequency=1, fresh=True)
    largest = lambda **options: max(abs(u).max() for u in run(make(**options), gs)[0])
    assert largest(bounded=False) > 1000
    assert largest() < 6 * 4  # coordinates of at most 1, in any direction
