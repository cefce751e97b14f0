"""Every optimizer of bfloat16 weights, in `compensated` and `stochastic_rounding`."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steepest
from steepest.numerics import split

from ..zoo import few_params, gradients, optimizers, over, potential, Row, ZOO


def _wide(tree):
    return jax.tree.map(lambda x: x.astype(jnp.float32), tree)


def _half(tree):
    """The bfloat16 weights, rounded as `compensated` rounds."""
    return jax.tree.map(lambda w: split(w, jnp.bfloat16, jnp.int16)[0], tree)


def _equal(tree, other):
    bits = lambda x: np.asarray(x).tobytes()
    jax.tree.map(lambda x, y: np.testing.assert_equal(bits(x), bits(y)), tree, other)


@optimizers
def test_sixteen_bits_are_float32_training_bit_for_bit(row: Row):
    """With gradients at the bfloat16 weights, outside `jit`."""
    inner, p = row.make(), few_params(jnp.bfloat16)
    tx, w = steepest.compensated(inner), _wide(p)
    state, want_state = tx.init(p), inner.init(w)
    for t in range(2):
        g = gradients(p, t)
        u, state = tx.update(g, state, p)
        p = steepest.apply_updates(p, u)
        want, want_state = inner.update(_wide(g), want_state, w)
        w = steepest.apply_updates(w, want)
        _equal(p, _half(w))
        _equal(steepest.wide_params(p, state), w)
    _equal(state.inner_state, want_state)


PLAIN = [row for row in ZOO if not row.variant]


@over(PLAIN[::4])
def test_compiled_steps_are_those_of_float32(row: Row):
    """Up to the last bits, since XLA may round a product and a sum together."""
    inner, p = row.make(), few_params(jnp.bfloat16)
    tx, w = steepest.compensated(inner), _wide(p)
    g = gradients(p)
    u, state = jax.jit(tx.update)(g, tx.init(p), p)
    want, _ = inner.update(_wide(g), inner.init(w), w)
    found = steepest.wide_params(steepest.apply_updates(p, u), state)
    want = steepest.apply_updates(w, want)
    close = lambda x, y: np.testing.assert_allclose(x, y, 1e-6 * row.rounding, 1e-7)
    jax.tree.map(close, found, want)


ROUNDED = {
    "24 bits": lambda tx: steepest.compensated(tx, bits=8),
    "stochastic": lambda tx: steepest.stochastic_rounding(tx, key=0),
}


@pytest.mark.parametrize("name", ROUNDED)
@over(PLAIN)
def test_every_optimizer_trains(row: Row, name):
    p = first = few_params(jnp.bfloat16)
    tx = ROUNDED[name](row.make())
    begin = state = tx.init(p)
    for _ in range(4):
        u, state = tx.update(gradients(p), state, p)
        p = steepest.apply_updates(p, u)
    types = lambda tree: jax.tree.map(jax.typeof, tree)
    assert types((p, state)) == types((first, begin))
    assert all(np.isfinite(np.asarray(x, float)).all() for x in jax.tree.leaves(p))
    assert row.confined or potential(p) < potential(first)
