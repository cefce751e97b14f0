"""Every optimizer trains with its memory in 8 or 4 bits.

Each in int8 and in another kind. In every kind:

    python -m pytest tests/laws/test_low_bit_zoo.py --all-layouts
"""

import inspect

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steepest
from steepest.engine.leaves import KINDS
from steepest.numerics import is_coded

from ..zoo import potential, Row, ZOO

ROWS = [r for r in ZOO if "memory_dtype" in inspect.signature(r.maker).parameters]
ROWS = [r for r in ROWS if not r.variant and r.maker is not steepest.lbfgs]
# What they keep is a copy of the params, a sum, small, or nothing.
WIDE = {"cocob", "fromage", "nag", "noisy_sgd", "polyak_sgd", "sgd", "sign_sgd"}
WIDE |= {"adafactor_factored", "apollo", "apollo_mini", "fira", "galore"}
WIDE |= {"dog", "dowg", "schedule_free_sgd"}

# The smallest matrix whose memory is stored in few bits, and a vector.
W = jnp.linspace(-1, 1, 4096).reshape(64, 64) + 0.1 * jnp.eye(64)
P = {"w": W, "b": jnp.ones(3)}

# Steps of training; then, each time from the start, gradients of these sizes.
STEPS, SIZES = 20, (0.0, 1e-7, 1e-42, 1e18)
FACTORS = [jnp.nan] * STEPS + [s * x for s in SIZES for x in (1.0, -1.0, 0.0)]
STARTS = [False] * STEPS + [True, False, False] * len(SIZES)


def _coded(state):
    return [x for x in jax.tree.leaves(state, is_leaf=is_coded) if is_coded(x)]


def _run(tx, state):
    """The loss before each step, and whether all is finite after it, traced once."""

    @jax.jit
    def run(first):
        def step(carry, now):
            factor, starts = now
            either = lambda here, x, y: jax.tree.map(
                lambda x, y: jnp.where(here, x, y), x, y
            )
            p, state = either(starts, first, carry)
            value, g = jax.value_and_grad(potential)(p)
            trains = jnp.isnan(factor)
            g = either(trains, g, jax.tree.map(lambda x: factor * x, p))
            known = {"value": value, "grad": g}
            known |= {"value_fn": potential, "obj_fn": potential}
            u, state = tx.update(g, state, p, **known)
            p = either(trains, steepest.apply_updates(p, u), p)
            finite = [jnp.isfinite(x).all() for x in jax.tree.leaves(u)]
            # The scale of a block with an element that is not finite is negative.
            finite += [(x.scales >= 0).all() for x in _coded(state)]
            return (p, state), (value, jnp.array(finite).all())

        steps = jnp.array(FACTORS), jnp.array(STARTS)
        return jax.lax.scan(step, first, steps)[1]

    return run((P, state))


def pytest_generate_tests(metafunc):
    """The other kinds in turns: how memory is stored does not depend on the formula."""
    every = metafunc.config.getoption("--all-layouts", default=False)
    first, *others = KINDS
    cases = [
        pytest.param(row, few, id=f"{row.name}-{few}")
        for k, row in enumerate(ROWS)
        for few in KINDS
        if every or few in (first, others[k % len(others)])
    ]
    metafunc.parametrize("row, few", cases)


def test_every_optimizer_trains(row: Row, few):
    """And stays finite. Types are kept, or the loop would not compile."""
    tx = row.make(memory_dtype=few)
    state = tx.init(P)
    stored = _coded(state)
    assert bool(stored) == (row.name not in WIDE)
    if not stored:  # then it is the optimizer of the other laws
        return
    assert all(x.shape == (64, 64) for x in stored)
    losses, finite = _run(tx, state)
    np.testing.assert_array_equal(np.asarray(FACTORS)[~np.asarray(finite)], [])
    assert row.confined or losses[STEPS - 1] < losses[0]
