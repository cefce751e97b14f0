"""Reductions of trees: sums, extremes, products and norms."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from steepest import global_norm, tree
from tests.oracles._calls import assert_alike, assert_same, called

NORMS = [None, 1, 2, "inf", np.inf]


def a_tree(dtype=jnp.float32):
    return {
        "w": jnp.array([[3.0, -4.0]], dtype),
        "b": jnp.array(12.0, dtype),
        "none": None,
    }


CALLS = {
    "sum": lambda t, x: t.sum(x),
    "sum_in_pairs": lambda t, x: t.sum(x, associative_reduction=True),
    "max": lambda t, x: t.max(x),
    "min": lambda t, x: t.min(x),
    "size": lambda t, x: t.size(x),
    "vdot": lambda t, x: t.vdot(x, x),
    **{f"norm_{k}": lambda t, x, k=k: t.norm(x, k) for k in NORMS},
    **{f"square_{k}": lambda t, x, k=k: t.norm(x, k, squared=True) for k in NORMS},
}
CALLS = {str(name): f for name, f in CALLS.items()}


@pytest.mark.parametrize("name", CALLS)
def test_as_optax_does(name):
    ours, theirs = (lambda x, t=t: CALLS[name](t, x) for t in (tree, optax.tree))
    assert_same(ours(a_tree()), called(theirs, a_tree()))
    for dtype in ("float16", "bfloat16", "int8"):
        if dtype != "int8" or name not in ("square_2", "square_None"):
            assert_alike(ours, theirs, a_tree(dtype))


@pytest.mark.parametrize("name", CALLS)
def test_as_optax_does_in_64_bits(name):
    with jax.enable_x64(True):
        x = a_tree(jnp.float64)
        assert_same(CALLS[name](tree, x), called(CALLS[name], optax.tree, x))


@pytest.mark.parametrize("name", ["sum", "max", "size", "vdot", "norm_1"])
def test_integers_and_python_numbers(name):
    for x in ([jnp.array([1, -2]), jnp.array(3)], [1, 2.5]):
        assert_same(CALLS[name](tree, x), called(CALLS[name], optax.tree, x))


@pytest.mark.parametrize("name", ["norm_1", "norm_2", "norm_inf", "sum", "vdot"])
def test_complex_numbers(name):
    x = jax.tree.map(lambda x: x + 1j, a_tree(jnp.complex64))
    assert_same(CALLS[name](tree, x), called(CALLS[name], optax.tree, x))


@pytest.mark.parametrize("name", CALLS)
def test_leaves_of_several_dtypes_meet_as_in_optax(name):
    ours, theirs = (lambda x, t=t: CALLS[name](t, x) for t in (tree, optax.tree))
    half, brain = jnp.ones(2, jnp.float16), jnp.ones(1, jnp.bfloat16)
    assert_alike(ours, theirs, [half, jnp.ones(3)])
    assert_alike(ours, theirs, [half, brain])


@pytest.mark.parametrize(
    "f, wanted",
    [
        (tree.sum, 0),
        (tree.max, -np.inf),
        (tree.min, np.inf),
        (tree.size, 0),
        (tree.norm, 0),
        (lambda x: tree.norm(x, 1), 0),
        (lambda x: tree.vdot(x, x), 0),
    ],
    ids=["sum", "max", "min", "size", "norm", "norm_1", "vdot"],
)
def test_of_nothing(f, wanted):
    assert f({}) == f({"a": None}) == wanted


def test_the_largest_size_of_nothing_is_zero():
    """Optax returns -inf, which is not a norm."""
    assert tree.norm({}, "inf") == tree.norm(jnp.zeros(0), jnp.inf) == 0
    assert tree.norm({}, "inf", squared=True) == 0


def test_leaves_without_entries_do_not_count():
    x = [jnp.zeros(0), jnp.array([2.0])]
    assert tree.max(x) == tree.min(x) == tree.sum(x) == tree.norm(x) == 2
    assert tree.size(x) == 1


def test_size_of_shapes():
    x = [jax.ShapeDtypeStruct((2, 3), jnp.float16), 1.0, np.ones(4), None]
    assert tree.size(x) == 11
    assert type(tree.size(x)) is int


def test_half_precision_does_not_overflow():
    """300^2 is too large for float16, but 600 is not."""
    x = jnp.full(4, 300, jnp.float16)
    assert tree.norm(x) == global_norm(x) == 600
    assert tree.norm(x).dtype == jnp.float16
    y = jnp.array([300.0, -300.0], jnp.float16)
    assert tree.vdot(x[:2], y) == 0
    huge = [jnp.full(4, 6e4, jnp.float16), jnp.full(4, -6e4, jnp.float16)]
    assert tree.sum(huge) == 0


def test_squares_of_integers_do_not_overflow():
    assert tree.norm(jnp.array([100_000, 0])) == 100_000


@pytest.mark.parametrize("ord", NORMS, ids=str)
def test_the_slope_at_zero_is_finite(ord):
    g = jax.grad(lambda x: tree.norm(x, ord))({"w": jnp.zeros(2)})
    assert jnp.isfinite(g["w"]).all()


def test_the_slope_at_zero_is_zero():
    x = {"w": jnp.zeros(2), "b": jnp.zeros(1)}
    for f in (tree.norm, global_norm):
        assert tree.norm(jax.grad(f)(x)) == 0


def test_the_slope_elsewhere_is_the_direction():
    g = jax.grad(tree.norm)({"w": jnp.array([3.0]), "b": jnp.array([4.0])})
    np.testing.assert_allclose([g["w"][0], g["b"][0]], [0.6, 0.8], rtol=1e-6)


@pytest.mark.parametrize("ord", ["fro", "nuc", 0, 3, -1, -np.inf, "2"], ids=str)
def test_other_norms_are_refused(ord):
    for t in (tree, optax.tree):
        with pytest.raises(ValueError, match="Unsupported ord"):
            t.norm(jnp.ones(2), ord)


def test_vdot_conjugates_its_first():
    x, y = jnp.array([1 + 2j]), jnp.array([3 + 4j])
    assert tree.vdot(x, y) == called(optax.tree.vdot, x, y) == 11 - 2j


def test_vdot_wants_equal_sizes_and_structures():
    assert tree.vdot(jnp.ones((2, 3)), jnp.ones((3, 2))) == 6
    with pytest.raises(TypeError):
        tree.vdot(jnp.ones(2), jnp.ones(3))
    with pytest.raises(ValueError, match=r"\['a'\]"):
        tree.vdot({"a": jnp.ones(2)}, {"b": jnp.ones(2)})


@pytest.mark.parametrize("count", [1, 2, 3, 7])
def test_sums_in_pairs_lose_nothing(count):
    x = [jnp.array(float(k)) for k in range(count)]
    assert tree.sum(x, True) == sum(range(count))


def test_nan_is_not_hidden():
    x = [jnp.array([1.0, jnp.nan]), jnp.ones(1)]
    for f in (tree.max, tree.min, tree.sum, tree.norm):
        assert jnp.isnan(f(x))


@pytest.mark.parametrize(
    "a, b, options",
    [
        ([1.0, 2.0], [1.0, 2.0], {}),
        ([1.0, 2.0], [1.0, 2.1], {}),
        ([1.0, 2.0], [1.0, 2.1], {"rtol": 0.1}),
        ([1.0, 2.0], [1.0, 2.1], {"rtol": 0.0, "atol": 0.2}),
        ([jnp.nan], [jnp.nan], {}),
        ([jnp.nan], [jnp.nan], {"equal_nan": True}),
        ([1], [1], {}),
    ],
    ids=["same", "far", "rtol", "atol", "nan", "equal_nan", "integers"],
)
def test_allclose(a, b, options):
    a, b = {"x": jnp.array(a), "n": None}, {"x": jnp.array(b), "n": None}
    found = tree.allclose(a, b, **options)
    assert bool(found) == bool(called(optax.tree.allclose, a, b, **options))
    assert found.dtype == bool


def test_allclose_of_structures():
    assert tree.allclose({}, {}) is True
    assert tree.allclose(jnp.ones(2, jnp.float16), jnp.ones(2))
    with pytest.raises(ValueError, match=r"\['a'\]"):
        tree.allclose({"a": 1.0}, {"b": 1.0})
    with pytest.raises(TypeError):
        tree.allclose(jnp.ones(2), jnp.ones(3))


def test_compiled_too():
    x = a_tree()
    found = jax.jit(lambda x: (tree.sum(x), tree.norm(x), tree.max(x)))(x)
    np.testing.assert_allclose(found, [11, 13, 12])
    assert jax.jit(tree.allclose)(x, x)
