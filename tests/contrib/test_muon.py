"""Muon: its updates of matrices."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import steepest
from steepest.contrib import muon, MuonDimensionNumbers, MuonState, scale_by_muon

from ..unusual import ODD

W = jax.random.normal(jax.random.key(0), (3, 4))
# This one converges; the usual polynomials only come close.
EXACT = ((3.4445, -4.775, 2.0315),) * 4 + ((1.875, -1.25, 0.375),) * 6


def _first(tx, g, p=None):
    return tx.update(g, tx.init(g), g if p is None else p)[0]


def test_it_is_the_nearest_orthogonal_matrix():
    u = _first(scale_by_muon(EXACT, 10), W)
    left, _, right = np.linalg.svd(np.asarray(W), full_matrices=False)
    np.testing.assert_allclose(u, left @ right, atol=1e-4)


def test_it_is_scale_invariant_and_rotation_equivariant():
    """`u(c Q g R) = Q u(g) R`."""
    tx = scale_by_muon()
    q, _ = jnp.linalg.qr(jax.random.normal(jax.random.key(1), (3, 3)))
    r, _ = jnp.linalg.qr(jax.random.normal(jax.random.key(2), (4, 4)))
    turned = _first(tx, 100 * q @ W @ r)
    np.testing.assert_allclose(turned, q @ _first(tx, W) @ r, atol=1e-4)


def test_adaptive_is_as_long_as_the_sum_of_singular_values():
    u = _first(scale_by_muon(EXACT, 10, adaptive=True, nesterov=False), W)
    values = np.linalg.svd(np.asarray(W), compute_uv=False)
    found = np.linalg.svd(np.asarray(u), compute_uv=False)
    np.testing.assert_allclose(found, values.sum() * np.ones(3), rtol=1e-4)


def test_a_consistent_rms():
    """The root mean square does not depend on the shape."""
    for g in (W, W.T):
        tx = muon(1.0, EXACT, 10, consistent_rms=0.2)
        rms = jnp.sqrt(jnp.mean(_first(tx, g) ** 2))
        np.testing.assert_allclose(rms, 0.2, rtol=1e-4)


def test_stacks_are_matrices_side_by_side():
    g = jnp.stack([W, 2 * W + 1, -W])
    pair = MuonDimensionNumbers(1, 2)
    u = _first(scale_by_muon(weight_dimension_numbers=pair), g)
    for row, each in zip(g, u, strict=True):
        np.testing.assert_allclose(each, _first(scale_by_muon(), row), atol=1e-5)


def test_a_complex_matrix_becomes_unitary():
    g = jax.random.normal(jax.random.key(0), (3, 4), "complex64")
    u = _first(scale_by_muon(EXACT, 10), g)
    np.testing.assert_allclose(u @ u.conj().T, np.eye(3), atol=1e-4)


def test_dimension_numbers_for_a_whole_subtree():
    """And `None` to use Adam."""
    p = {"layers": [W, W + 1], "head": W, "none": None}
    numbers = {"layers": MuonDimensionNumbers(), "head": None, "none": None}
    state = muon(0.1, muon_weight_dimension_numbers=numbers).init(p)
    mine = state.inner_states["muon"].inner_state[0]
    assert isinstance(mine, MuonState)
    assert [x.shape for x in jax.tree.leaves(mine.mu)] == [(3, 4), (3, 4)]
    rest = state.inner_states["adam"].inner_state[0]
    assert [x.shape for x in jax.tree.leaves(rest.mu)] == [(3, 4)]


def test_optax_dimension_numbers_are_accepted():
    theirs = optax.contrib.MuonDimensionNumbers(1, 0)
    ours = MuonDimensionNumbers(1, 0)
    find = lambda numbers: _first(muon(0.1, muon_weight_dimension_numbers=numbers), W)
    np.testing.assert_array_equal(find(theirs), find(ours))


def test_dimension_numbers_may_be_none_for_all():
    """Optax compares the tree with `None`, and fails."""
    u = _first(scale_by_muon(), {"w": W})
    np.testing.assert_allclose(u["w"], _first(scale_by_muon(), W), rtol=1e-6)


def test_the_polynomials_of_the_state_are_used():
    """They may be changed during training."""
    tx = scale_by_muon()
    state = tx.init(W)._replace(ns_coeffs=jnp.array([1.0, 0.0, 0.0]))
    u, _ = tx.update(W, state)
    np.testing.assert_allclose(u, W / jnp.linalg.norm(W), rtol=1e-5)


def test_polynomials_by_name():
    named = scale_by_muon("standard").init(W).ns_coeffs
    np.testing.assert_array_equal(named, scale_by_muon().init(W).ns_coeffs)
    assert scale_by_muon("dion").init(W).ns_coeffs.shape == (5, 3)


def test_the_number_of_steps_may_be_traced():
    f = jax.jit(lambda steps: _first(scale_by_muon(ns_steps=steps), W))
    np.testing.assert_allclose(f(3), _first(scale_by_muon(ns_steps=3), W), atol=1e-5)


def test_half_precision_is_computed_in_float32():
    g = W.astype("bfloat16")
    u = _first(scale_by_muon(), g)
    want = _first(scale_by_muon(), g.astype("float32"))
    assert u.dtype == "bfloat16"
    np.testing.assert_array_equal(u, want.astype("bfloat16"))


def test_it_survives_scan_with_numbers():
    p = {"w": jnp.ones((2, 3, 4)), "b": jnp.ones(3)}
    numbers = {"w": MuonDimensionNumbers((0, 1), 2), "b": None}
    tx = muon(0.1, ns_steps=2, muon_weight_dimension_numbers=numbers)

    def step(carry, t):
        p, state = carry
        u, state = tx.update(jax.tree.map(jnp.sin, p), state, p)
        return (steepest.apply_updates(p, u), state), None

    (p, _), _ = jax.lax.scan(step, (p, tx.init(p)), jnp.arange(3))
    assert all(np.isfinite(x).all() for x in jax.tree.leaves(p))


@pytest.mark.parametrize(
    "options, said",
    [
        (
            {"preconditioning": "none"},
            "preconditioning is 'none', expected one of: frob",
        ),
        ({"ns_coeffs": "best"}, "ns_coeffs is 'best', expected one of: standard"),
        ({"ns_coeffs": (1.0, 2.0)}, r"ns_coeffs has shape \(2,\), expected \(3,\)"),
        (
            {"ns_coeffs": EXACT, "ns_steps": 5},
            "ns_coeffs has 10 polynomials and ns_steps is 5",
        ),
        ({"beta": 1.5}, r"beta is 1.5, .* number in \[0, 1\]"),
        ({"eps": -1.0}, "eps is -1.0"),
        ({"ns_coeffs": None}, "ns_coeffs is a NoneType, expected an array of numbers"),
        ({"ns_steps": 0}, "ns_steps is 0, expected a number that is whole"),
        ({"ns_steps": 2.5}, "ns_steps is 2.5, expected a number that is whole"),
        (
            {"preconditioning": []},
            r"preconditioning is \[\], expected one of: frobenius",
        ),
    ],
    ids=str,
)
def test_impossible_options(as_users_do, options, said):
    with pytest.raises(ODD, match=f"scale_by_muon: {said}"):
        scale_by_muon(**options)


def test_leaves_that_are_not_matrices(as_users_do):
    with pytest.raises(
        ValueError, match=r"leaf \['w'\] has shape \(4,\), expected a ma"
    ):
        _first(scale_by_muon(), {"w": W[0]})
    with pytest.raises(ValueError, match=r"shape \(1, 3, 4\), expected a matrix"):
        _first(scale_by_muon(), W[None])
    numbers = {"w": None, "v": MuonDimensionNumbers()}
    with pytest.raises(
        ValueError, match=r"leaf \['w'\] has shape \(4,\) and no dimension"
    ):
        tx = scale_by_muon(weight_dimension_numbers=numbers)
        _first(tx, {"w": W[0], "v": W})
    with pytest.raises(ValueError, match=r"leaf \['w'\]: .* at least two axes"):
        tx = muon(0.1, muon_weight_dimension_numbers=MuonDimensionNumbers())
        _first(tx, {"w": W[0]})
    with pytest.raises(ValueError, match=r"leaf \['b'\] is in the tree and not in the"):
        muon(0.1, muon_weight_dimension_numbers={"w": None}).init({"w": W, "b": W})


def test_params_are_needed(as_users_do):
    tx = muon(0.1)
    with pytest.raises(ValueError, match="needs `params`"):
        tx.update({"w": W}, tx.init({"w": W}))


@pytest.mark.parametrize(
    "options",
    [
        {"adam_b1": 1.5},
        {"adam_b2": -0.1},
        {"adam_eps_root": -1.0},
        {"adam_weight_decay": float("inf")},
        {"adam_learning_rate": float("inf")},
        {"consistent_rms": -0.2},
    ],
    ids=str,
)
def test_the_options_of_adam_have_their_own_names(options):
    with pytest.raises(ODD, match=f"^muon: {next(iter(options))} is "):
        muon(0.1, **options)
