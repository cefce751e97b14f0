"""Division by a number becomes a product; nothing else changes."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from steepest.numerics._inverses import with_inverses

X = jax.random.normal(jax.random.key(0), (4, 8))
Y = jnp.exp(jax.random.normal(jax.random.key(1), (4, 8)))
C = jnp.float32(0.3)

FUNCTIONS = {
    "a number": lambda x, y, c: x / c,
    "a constant": lambda x, y, c: x / 0.7,
    "inside jit": lambda x, y, c: jax.jit(lambda x: (x / c, {"y": y / c}))(x),
    "broadcast": lambda x, y, c: x / jnp.broadcast_to(c, x.shape),
}
OTHERS = {
    "an array": lambda x, y, c: x / y,
    "a row": lambda x, y, c: x / y[:1],
    "of numbers": lambda x, y, c: x * (c / 3),
    "whole numbers": lambda x, y, c: jnp.arange(6) // 4,
}


def _divisions_of_arrays(f):
    lines = str(jax.make_jaxpr(f)(X, Y, C)).splitlines()
    return [line for line in lines if "= div" in line and "[] = div" not in line]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_divisions_become_products(name):
    f = FUNCTIONS[name]
    g = with_inverses(f)
    assert _divisions_of_arrays(f) and not _divisions_of_arrays(g)
    assert jax.tree.structure(f(X, Y, C)) == jax.tree.structure(g(X, Y, C))
    pairs = zip(*map(jax.tree.leaves, (f(X, Y, C), g(X, Y, C))), strict=True)
    for a, b in pairs:
        np.testing.assert_allclose(a, b, rtol=3e-7)


def test_xla_does_the_same():
    f = FUNCTIONS["a number"]
    np.testing.assert_array_equal(jax.jit(f)(X, Y, C), with_inverses(f)(X, Y, C))


@pytest.mark.parametrize("name", OTHERS)
def test_other_divisions_stay(name):
    f = OTHERS[name]
    assert len(_divisions_of_arrays(f)) == len(_divisions_of_arrays(with_inverses(f)))
    np.testing.assert_array_equal(f(X, Y, C), with_inverses(f)(X, Y, C))


def test_functions_with_their_own_derivative():
    f = lambda x, y, c: jax.nn.relu(x) / c
    np.testing.assert_allclose(with_inverses(f)(X, Y, C), f(X, Y, C), rtol=1e-6)
