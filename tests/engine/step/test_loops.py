"""Loops and branches, with concrete and traced values."""

import jax
import jax.numpy as jnp

from steepest.engine import branch, loop


def _halvings(x, least=1.0):
    """How many times `x` is halved until it is below `least`."""
    more = lambda state: state[1] >= least
    half = lambda state: (state[0] + 1, state[1] / 2)
    return loop(more, half, (jnp.zeros((), jnp.int32), x))[0]


def test_known_and_traced_are_the_same():
    x = jnp.array([0.5, 1.0, 5.0, 16.0])
    want = [0, 1, 3, 5]
    assert [int(_halvings(y)) for y in x] == want
    assert jax.vmap(_halvings)(x).tolist() == want
    assert [int(jax.jit(_halvings)(y)) for y in x] == want


def test_what_is_traced_may_come_from_outside():
    """The start is concrete; the end is traced."""
    run = lambda least: _halvings(jnp.array(16.0), least)
    assert jax.vmap(run)(jnp.array([1.0, 4.0])).tolist() == [5, 3]


def test_what_is_known_is_not_compiled():
    """In a Python loop, the body may use concrete values."""
    seen = []

    def body(x):
        seen.append(float(x))
        return x / 2

    loop(lambda x: x >= 1, body, jnp.array(4.0))
    assert seen == [4, 2, 1]


def test_branch():
    run = lambda x: branch(x > 0, lambda: x, lambda: -x)
    assert run(jnp.array(2.0)) == run(jnp.array(-2.0)) == jax.jit(run)(-2.0) == 2
    assert jax.vmap(run)(jnp.array([1.0, -1.0])).tolist() == [1, 1]
