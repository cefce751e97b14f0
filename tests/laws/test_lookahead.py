"""Lookahead works with any optimizer of the zoo."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steepest

from ..zoo import few_params, gradients, Row, typeof, ZOO

# Resetting the state tests everything that keeping it does, and the reset.
CASES = [(row, True) for row in ZOO if not row.variant]
CASES += [(row, False) for row in ZOO if row.name in ("adam", "lion", "sgd_momentum")]
PERIOD, SHARE = 3, 0.5


def _by_hand(tx, p, steps, reset_state):
    """The paper's two loops, with the fast optimizer alone."""
    slow, fast, state = p, p, tx.init(p)
    for t in range(steps):
        u, state = tx.update(gradients(fast, t), state, fast)
        fast = steepest.apply_updates(fast, u)
        if (t + 1) % PERIOD == 0:
            slow = steepest.incremental_update(fast, slow, SHARE)
            fast = slow
            state = tx.init(slow) if reset_state else state
    return steepest.LookaheadParams(fast, slow), state


@pytest.mark.parametrize(
    "row, reset_state", [pytest.param(*x, id=f"{x[0].name}-{x[1]}") for x in CASES]
)
def test_as_the_paper_says(row: Row, reset_state):
    """Compiled and scanned, over two synchronizations and the start of a third."""
    tx = row.make()
    look = steepest.lookahead(tx, PERIOD, SHARE, reset_state)
    both = steepest.LookaheadParams.init_synced(few_params())

    @jax.jit
    def run(both):
        def step(carry, t):
            both, state = carry
            u, state = look.update(gradients(both.fast, t), state, both)
            return (steepest.apply_updates(both, u), state), None

        steps = jnp.arange(2 * PERIOD + 1)
        return jax.lax.scan(step, (both, look.init(both)), steps)[0]

    both, state = run(both)
    assert typeof(state) == typeof(look.init(both))
    assert state.steps_since_sync == 1
    want, want_state = _by_hand(tx, few_params(), 2 * PERIOD + 1, reset_state)
    jax.tree.map(
        lambda x, y: np.testing.assert_allclose(x, y, 1e-5, 1e-6),
        (both, state.fast_state),
        (want, want_state),
    )
