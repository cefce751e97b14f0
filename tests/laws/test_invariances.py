"""The invariances that a row claims: scale, permutation, rotation."""

import jax
import jax.numpy as jnp
import numpy as np

from ..zoo import DISTINCT, over, Row

P = jnp.array([1.0, -2.0, 0.5, 3.0])
GS = [jnp.array([0.3, -1.0, 2.0, 0.1]), jnp.array([-0.5, 0.2, 1.0, 0.7])]


def _updates(row: Row, gs, p=P):
    tx = row.make()
    state = tx.init(p)
    out = []
    for g in gs:
        u, state = tx.update(g, state, p)
        out.append(u)
    return jnp.stack(out)


@over([row for row in DISTINCT if row.scale_free])
def test_scale_free(row: Row):
    """The size of the gradient does not matter."""
    small, large = _updates(row, GS), _updates(row, [1e3 * g for g in GS])
    np.testing.assert_allclose(small, large, rtol=1e-5)


@over([row for row in DISTINCT if row.linear])
def test_linear(row: Row):
    """Twice the gradient, twice the update."""
    one, two = _updates(row, GS), _updates(row, [2 * g for g in GS])
    np.testing.assert_allclose(two, 2 * one, rtol=1e-6)


@over([row for row in DISTINCT if row.elementwise])
def test_the_order_of_elements_does_not_matter(row: Row):
    order = jnp.array([2, 0, 3, 1])
    moved = _updates(row, [g[order] for g in GS], P[order])
    np.testing.assert_allclose(moved, _updates(row, GS)[:, order], rtol=1e-6)


@over([row for row in DISTINCT if row.rotates])
def test_directions_do_not_matter(row: Row):
    """Rotated gradients give rotated updates."""
    q, _ = jnp.linalg.qr(jax.random.normal(jax.random.key(0), (4, 4)))
    turned = _updates(row, [q @ g for g in GS], q @ P)
    np.testing.assert_allclose(turned, _updates(row, GS) @ q.T, rtol=1e-4, atol=1e-6)
