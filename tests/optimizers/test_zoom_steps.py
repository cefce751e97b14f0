"""The minima of parabolas and cubics."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from steepest.optimizers._zoom_steps import lowest_of_cubic, lowest_of_square, Point


def _at(f, a):
    return Point(jnp.float64(a), f(a), jax.grad(f)(a))


@pytest.mark.parametrize("ends", [(0.0, 2.0), (3.0, 0.5)], ids=str)
def test_a_parabola_is_found(ends):
    with jax.enable_x64(True):
        f = lambda a: 3 * (a - 1.3) ** 2 + 7
        p, q = (_at(f, a) for a in ends)
        np.testing.assert_allclose(lowest_of_square(p, q), 1.3, 1e-12)


@pytest.mark.parametrize("ends", [(0.0, 2.0, 4.0), (3.0, 0.5, 0.1)], ids=str)
def test_a_cubic_is_found(ends):
    """It has a minimum at 1 and a maximum at -1."""
    with jax.enable_x64(True):
        f = lambda a: a**3 - 3 * a + 5
        p, q, r = (_at(f, a) for a in ends)
        np.testing.assert_allclose(lowest_of_cubic(p, q, r), 1.0, 1e-10)


def test_without_a_third_point_there_is_no_cubic():
    with jax.enable_x64(True):
        f = lambda a: a**2
        nowhere = Point(*(jnp.float64(x) for x in (jnp.inf, jnp.nan, jnp.nan)))
        assert jnp.isnan(lowest_of_cubic(_at(f, 0.0), _at(f, 1.0), nowhere))
