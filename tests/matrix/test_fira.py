"""Fira: its updates, its basis, and the size of its state."""

from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steepest
from steepest.matrix._fira import basis_formula

from ..optimizers._refused import NAN, NOT_DTYPES, refuses
from ._difficult import DTYPES, stays_finite
from ._low_rank import low_rank

W = jax.random.normal(jax.random.key(0), (6, 10))
P = {"wide": W, "tall": 2 * W.T, "layers": jnp.stack([W, 3 * W + 1]), "b": W[0]}
GS = [jax.tree.map(lambda x, t=t: jnp.cos(x + 0.3 * t), P) for t in range(6)]


def _bases(gs, rank, gap):
    """The basis in each step: singular vectors with the signs of the last ones."""
    bases, now = [], np.zeros((6, rank))
    for t, g in enumerate(gs):
        if t % gap == 0:
            left = np.linalg.svd(g if g.shape[0] == 6 else g.T)[0][:, :rank]
            now = left * np.where((now * left).sum(0) < 0, -1, 1)
        bases.append(now)
    return bases


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("rank", [1, 3, 99])
def test_a_few_steps_against_a_slow_reference(rank, compiled):
    tx = steepest.fira(
        0.1, rank, b2=0.99, weight_decay=0.1, update_proj_gap=4, stacked="layers"
    )
    update = jax.jit(tx.update) if compiled else tx.update
    p, state = P, tx.init(P)
    for g in GS:
        u, state = update(g, state, p)
        p = steepest.apply_updates(p, u)
    start, gs = jax.tree.map(lambda x: np.asarray(x, "float64"), (P, GS))

    def of(p, gs):
        return low_rank(p, gs, _bases(gs, min(rank, 6), 4), 0.1, 0.1, fira=True)

    for name in ("wide", "tall"):
        want = of(start[name], [g[name] for g in gs])
        np.testing.assert_allclose(p[name], want, rtol=1e-3, atol=2e-4)
    for k in range(2):
        want = of(start["layers"][k], [g["layers"][k] for g in gs])
        np.testing.assert_allclose(p["layers"][k], want, rtol=1e-3, atol=2e-4)


def test_with_all_directions_it_is_adam_in_the_basis():
    """Nothing is left outside, so nothing is limited."""
    tx, adam = steepest.scale_by_fira(6, eps=0), steepest.scale_by_adam(eps=0)
    u, state = tx.update(W, tx.init(W))
    basis = state.basis
    np.testing.assert_allclose(basis.T @ basis, np.eye(6), atol=1e-5)
    v, _ = adam.update(basis.T @ W, adam.init(W))
    np.testing.assert_allclose(u, basis @ v, atol=1e-4)


def test_the_signs_of_singular_vectors_do_not_matter():
    """The moments are kept, so a vector that turned around would undo them."""
    first = basis_formula(W, jnp.zeros((6, 3)))
    for old in (first, -first):
        np.testing.assert_allclose(basis_formula(W, old), old, atol=1e-5)
        assert (jnp.sum(basis_formula(W + 0.01, old) * old, 0) > 0.9).all()


def test_the_basis_changes_only_when_due():
    tx = steepest.scale_by_fira(2, update_proj_gap=3)
    state, bases = tx.init(W), []
    for t in range(5):
        _, state = tx.update(jnp.cos(W + t), state)
        bases.append(np.asarray(state.basis))
    same = [np.array_equal(a, b) for a, b in pairwise(bases)]
    assert same == [True, True, False, True]


def test_bytes():
    """Two arrays of (rank, longer side), the basis, and the norm."""
    shapes = {"w": jax.ShapeDtypeStruct((256, 1024), jnp.float32)}
    (line,) = steepest.describe(steepest.fira(0.01, rank=64), shapes).lines
    assert line.bytes == 64 * (8 * 1024 + 4 * 256) + 4


@pytest.mark.parametrize("dtype", DTYPES)
def test_everything_stays_finite(dtype):
    stays_finite(steepest.fira(0.1, rank=2, update_proj_gap=20), dtype)


def test_options_are_checked(as_users_do):
    refuses(
        steepest.scale_by_fira,
        rank=[0, 1.5, NAN],
        b1=[2.0, NAN],
        b2=[-1.0, "1"],
        eps=[-1.0, NAN],
        mu_dtype=NOT_DTYPES,
        update_proj_gap=[0, 2.5],
        growth=[0.0, NAN],
    )
