"""A condition that remains one under `vmap`."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from steepest.numerics import cond_under_vmap

X = jnp.arange(3.0)
YES, NO = lambda x, a: (x * a, x + 1), lambda x, a: (x, x)


def _run(due, x, a):
    return cond_under_vmap(due, YES, NO, x, a)


@pytest.mark.parametrize("due", [[True, True], [False, False], [True, False]])
def test_each_member_has_its_own_condition(due):
    found = jax.jit(jax.vmap(_run, (0, None, 0)))(
        jnp.array(due), X, jnp.array([2, 3.0])
    )
    for k, a in enumerate((2.0, 3.0)):
        want = YES(X, a) if due[k] else NO(X, a)
        np.testing.assert_array_equal([x[k] for x in found], want)


@pytest.mark.parametrize("due", [[True, True], [False, True]])
def test_a_condition_for_all_members(due):
    """The inner axis has one condition, and the outer axis two."""
    over_both = jax.vmap(jax.vmap(_run, (None, 0, None)), (0, None, 0))
    xs, ways = jnp.stack([X, -X]), jnp.array([2.0, 3.0])
    found = over_both(jnp.array(due), xs, ways)
    for i, a in enumerate((2.0, 3.0)):
        for j, x in enumerate(xs):
            want = YES(x, a) if due[i] else NO(x, a)
            np.testing.assert_array_equal([y[i, j] for y in found], want)


def test_it_is_a_condition_in_the_program():
    over_both = jax.vmap(jax.vmap(_run, (0, 0, None)), (0, None, 0))
    due = jnp.ones((2, 2), bool)
    program = jax.jit(over_both).lower(due, jnp.stack([X, X]), jnp.ones(2)).as_text()
    assert program.count("stablehlo.case") == 1


def test_no_derivative_flows_through_it():
    def f(x, a):
        return jnp.sum(_run(jnp.array(True), x, a)[0]) + 5 * jnp.sum(x)

    slopes = jax.jit(jax.grad(f, (0, 1)))(X, 2.0)
    np.testing.assert_array_equal(slopes[0], 5)
    np.testing.assert_array_equal(slopes[1], 0)
