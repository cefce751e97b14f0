"""Matchings of minimal cost: same cost as SciPy, same result and order as Optax."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from scipy.optimize import linear_sum_assignment

from steepest import assignment

BOTH = ["base_hungarian_algorithm", "hungarian_algorithm"]
names = pytest.mark.parametrize("name", BOTH)
SHAPES = [(4, 4), (3, 5), (5, 3)]
shapes = pytest.mark.parametrize("shape", SHAPES, ids=str)


def _costs(shape, n=24):
    """Real costs, and integer costs with many ties."""
    rng = np.random.default_rng(0)
    plain = rng.normal(size=(n, *shape))
    ties = [rng.integers(0, top, size=(n, *shape)) for top in (2, 4)]
    return np.concatenate([plain, *ties]).astype(np.float32)


def _is_matching(i, j, shape):
    k = min(shape)
    assert len(set(i.tolist())) == len(set(j.tolist())) == len(i) == len(j) == k
    assert (0 <= i).all() and (i < shape[0]).all()
    assert (0 <= j).all() and (j < shape[1]).all()


@names
@shapes
def test_same_result_in_the_same_order_as_optax(name, shape):
    costs = _costs(shape)
    ours = jax.jit(jax.vmap(getattr(assignment, name)))(costs)
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        theirs = jax.jit(jax.vmap(getattr(optax.assignment, name)))(costs)
    np.testing.assert_array_equal(ours, theirs)
    assert [x.dtype for x in ours] == [jnp.int32, jnp.int32]


@names
def test_no_matching_costs_less(name):
    costs = np.random.default_rng(1).normal(size=(30, 40))
    find = jax.jit(getattr(assignment, name))
    for c in (costs, costs.T, 1e6 * costs, np.round(3 * costs)):
        i, j = (np.asarray(x) for x in find(jnp.asarray(c, jnp.float32)))
        _is_matching(i, j, c.shape)
        least = c[linear_sum_assignment(c)].sum()
        np.testing.assert_allclose(c[i, j].sum(), least, rtol=1e-5)


def test_base_is_scipy_ties_included():
    find = jax.jit(assignment.base_hungarian_algorithm)
    rng = np.random.default_rng(2)
    for _ in range(10):
        costs = rng.integers(0, 5, size=(8, 12))
        np.testing.assert_array_equal(find(costs), linear_sum_assignment(costs))


@names
@pytest.mark.parametrize("shape", [(0, 0), (0, 3), (3, 0)], ids=str)
def test_nothing_to_match(name, shape):
    i, j = getattr(assignment, name)(jnp.zeros(shape))
    assert i.shape == j.shape == (0,) and i.dtype == j.dtype == jnp.int32


@names
@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "uint32", "bfloat16"])
def test_costs_of_any_dtype(name, dtype):
    costs = jnp.array([[1, 0, 1], [0, 0, 1], [1, 1, 0]]).astype(dtype)
    i, j = getattr(assignment, name)(costs)
    assert not np.asarray(costs)[i, j].any()


@names
def test_narrow_integers_do_not_overflow(name):
    costs = jnp.array([[127, -128], [-128, 127]], jnp.int8)
    assert float(costs[getattr(assignment, name)(costs)].astype(int).sum()) == -256


@names
def test_large_integers_are_exact(name):
    """In float32 the two matchings would cost the same."""
    big = 2**25
    costs = jnp.array([[big + 1, big], [big, big]])
    i, j = getattr(assignment, name)(costs)
    assert dict(zip(i.tolist(), j.tolist(), strict=True)) == {0: 1, 1: 0}


@names
@pytest.mark.parametrize("bad", [np.inf, np.nan], ids=["inf", "nan"])
def test_forbidden_pairs_are_avoided(name, bad):
    rng = np.random.default_rng(3)
    costs = rng.normal(size=(5, 6)).astype(np.float32)
    costs[rng.random(costs.shape) < 0.4] = bad
    costs[range(5), range(1, 6)] = 50  # one matching exists
    i, j = (np.asarray(x) for x in getattr(assignment, name)(jnp.asarray(costs)))
    known = np.where(np.isfinite(costs), costs, 1e6)
    _is_matching(i, j, costs.shape)
    least = known[linear_sum_assignment(known)].sum()
    np.testing.assert_allclose(costs[i, j].sum(), least, rtol=1e-6)


@names
def test_without_a_finite_matching_it_returns_some_matching(name):
    for c in ([[np.inf, np.inf], [1, 2]], [[np.inf] * 2] * 2, [[-np.inf, 1], [1, 2]]):
        i, j = (np.asarray(x) for x in getattr(assignment, name)(jnp.array(c)))
        _is_matching(i, j, (2, 2))
    assert {*zip(i.tolist(), j.tolist(), strict=True)} == {(0, 0), (1, 1)}


@names
def test_numpy_arrays_lists_and_64_bits(name):
    find = getattr(assignment, name)
    for c in (np.array([[3.0, 1], [1, 2]]), [[3.0, 1], [1, 2]]):
        assert np.asarray(find(c)).sum() == 2
    with jax.enable_x64(True):
        costs = jnp.array([[1.0, 1 - 1e-12], [1, 1]])
        i, j = find(costs)
        assert i.dtype == j.dtype == jnp.int64
        assert {*zip(i.tolist(), j.tolist(), strict=True)} == {(0, 1), (1, 0)}


@names
@pytest.mark.parametrize("shape", [(3,), (2, 3, 3)], ids=str)
def test_the_costs_must_be_a_matrix(name, shape):
    with pytest.raises(ValueError, match=f"^{name}: cost_matrix has shape"):
        getattr(assignment, name)(jnp.ones(shape))


@names
def test_the_costs_must_be_real(name):
    with pytest.raises(TypeError, match=f"^{name}: cost_matrix is complex64"):
        getattr(assignment, name)(jnp.ones((2, 2), jnp.complex64))


@names
def test_the_cost_can_be_differentiated(name):
    costs = jnp.array([[3.0, 1.0], [1.0, 2.0]])
    slope = jax.grad(lambda c: c[getattr(assignment, name)(c)].sum())(costs)
    np.testing.assert_array_equal(slope, [[0, 1], [1, 0]])
