"""Moving averages of trees."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import steepest
from steepest import tree
from tests.oracles._calls import assert_alike, assert_same, called

G = {"w": jnp.array([2.0, -3.0]), "n": None}
M = {"w": jnp.array([1.0, 0.5]), "n": None}
Z = {"w": jnp.array([1 + 2j, 3j]), "n": None}
ORDERS = [0, 1, 2, 3, -1, 2.0]


def both(name, *args):
    """The module, the package and Optax have it."""
    f = getattr(tree, name)
    assert getattr(steepest, name) is f
    return f(*args), called(getattr(optax.tree, name), *args)


@pytest.mark.parametrize("order", ORDERS, ids=str)
@pytest.mark.parametrize("name", ["update_moment", "update_moment_per_elem_norm"])
def test_moments_as_in_optax(name, order):
    assert_same(*both(name, G, M, 0.9, order))
    assert_same(*both(name, Z, M, 0.9, order), atol=1e-6)


@pytest.mark.parametrize("name", ["update_moment", "update_moment_per_elem_norm"])
def test_moments_as_in_optax_in_64_bits(name):
    with jax.enable_x64(True):
        g, m = (tree.cast(x, jnp.float64) for x in (G, M))
        assert_same(*both(name, g, m, 0.9, 2))
        assert_same(*both("update_infinity_moment", g, m, 0.9, 1e-8))
        assert_same(*both("bias_correction", g, 0.9, jnp.array(3)))


def test_a_broken_power_of_a_size():
    """Optax takes the power of the signed number, which is NaN below zero."""
    found = tree.update_moment_per_elem_norm(G, M, 0.9, 1.5)["w"]
    np.testing.assert_allclose(
        found, 0.9 * M["w"] + 0.1 * abs(G["w"]) ** 1.5, rtol=1e-6
    )


@pytest.mark.parametrize("eps", [1e-8, 1.0])
def test_infinity_moments_as_in_optax(eps):
    assert_same(*both("update_infinity_moment", G, M, 0.9, eps))
    assert_same(*both("update_infinity_moment", Z, M, 0.9, eps))


@pytest.mark.parametrize("count", [1, 2, 2**31 - 1])
@pytest.mark.parametrize("decay", [0.0, 0.9, 0.999])
def test_bias_corrections_as_in_optax(count, decay):
    assert_same(*both("bias_correction", M, decay, count))
    assert_same(*both("bias_correction", Z, decay, jnp.array(count)))


def test_dtypes_meet_as_in_optax():
    half, float_ = jnp.ones(2, jnp.float16), jnp.zeros(2)
    decay = jnp.array(0.9)
    for args in [(half, float_, 0.9), (float_, half, 0.9), (half, half, decay)]:
        for name in ("update_moment", "update_infinity_moment"):
            f = lambda *args, room, name=name: getattr(room.tree, name)(*args, 2)
            ours, theirs = (partial(f, room=room) for room in (steepest, optax))
            assert_alike(ours, theirs, *args)


def test_half_precision_does_not_overflow():
    """0.1 * 300^2 fits into float16, but 300^2 does not."""
    g, m = jnp.full(2, 300, jnp.float16), jnp.zeros(2, jnp.float16)
    for f in (tree.update_moment, tree.update_moment_per_elem_norm):
        np.testing.assert_array_equal(f(g, m, 0.9, 2), jnp.full(2, 9000, g.dtype))
        assert f(g, m, 0.9, 2).dtype == g.dtype


def test_a_bfloat16_average_is_corrected_in_float32():
    """In bfloat16, 0.999 is 1."""
    found = tree.bias_correction(jnp.ones(1, jnp.bfloat16), 0.999, 1)
    np.testing.assert_array_equal(found, jnp.array([1000], jnp.bfloat16))


def test_integers_are_corrected():
    """Optax divides by the factor rounded to an integer, which is 0."""
    np.testing.assert_allclose(tree.bias_correction(jnp.array([3]), 0.9, 1), [30], 1e-5)


def test_where_there_is_no_update_there_is_no_moment():
    for f in (tree.update_moment, tree.update_infinity_moment):
        assert f({"a": None}, {"a": jnp.ones(1)}, 0.9, 1) == {"a": None}
        with pytest.raises(TypeError, match="moments is None"):
            f({"a": jnp.ones(1)}, {"a": None}, 0.9, 1)


def test_another_structure_is_named():
    with pytest.raises(ValueError, match=r"update_moment: leaf \['a'\]"):
        tree.update_moment({"a": jnp.ones(1)}, {"b": jnp.ones(1)}, 0.9, 1)


def test_traced_numbers_and_slopes_at_zero():
    def f(g, decay, count):
        m = tree.update_moment_per_elem_norm(g, jnp.zeros(2), decay, 2)
        return tree.bias_correction(m, decay, count)

    args = jnp.array([0.0, 2.0]), jnp.array(0.9), jnp.array(1)
    np.testing.assert_allclose(jax.jit(f)(*args), [0, 4], rtol=1e-5)
    slope = jax.grad(lambda g: f(g, *args[1:]).sum())(args[0])
    np.testing.assert_allclose(slope, [0, 4], rtol=1e-5)
