"""Setting the order of operations changes no result, and saves a copy."""

import jax
import jax.numpy as jnp
import numpy as np

from steepest.numerics import after


def test_nothing_changes():
    """Whatever comes first, also if it is not finite."""
    x = jnp.array([1.0, -0.0, jnp.inf, jnp.nan])
    first = jnp.array([jnp.nan, jnp.inf, 0.0, 1.0])
    for y in (after(x, first), after(x, jnp.zeros(()), first), after(x)):
        np.testing.assert_array_equal(y, x)
        assert jnp.signbit(y)[1]


def test_slopes_are_those_of_x():
    both = jax.grad(lambda x, y: after(3 * x, y), (0, 1))(1.0, jnp.nan)
    assert both == (3, 0)


def test_what_is_read_first_is_not_copied():
    """The old `last` is read for `v` before it is overwritten."""

    def step(v, last, g, keep=after):
        v = v + (g - last)
        return v, keep(g + 1, v)

    def copies(f):
        found = jax.jit(f, donate_argnums=(0, 1)).lower(x, x, x).compile().as_text()
        return found.count(" copy(")

    x = jnp.zeros((64, 32))
    assert copies(step) == 0
    assert copies(lambda *row: step(*row, keep=lambda x, y: x)) > 0
