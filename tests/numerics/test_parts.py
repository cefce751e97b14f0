"""Formulas for real numbers, applied to complex numbers."""

import jax.numpy as jnp

from steepest.numerics import by_parts

most = by_parts(lambda x, y: (jnp.maximum(x, y), x - y))


def test_real_numbers_stay_real():
    large, difference = most(jnp.array([1.0, -2.0]), jnp.array([0.0, 3.0]))
    assert large.tolist() == [1, 3] and difference.tolist() == [1, -5]


def test_each_part_by_itself():
    large, difference = most(jnp.array([1 - 2j]), jnp.array([0 + 3j]))
    assert large.tolist() == [1 + 3j] and difference.tolist() == [1 - 5j]
    assert large.dtype == jnp.complex64
