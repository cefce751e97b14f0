"""Floating-point operations of traced programs."""

import jax
import jax.numpy as jnp
import pytest

from steepest.engine import flops_of


def _count(f, *shapes):
    arrays = [jax.ShapeDtypeStruct(shape, jnp.float32) for shape in shapes]
    return flops_of(jax.make_jaxpr(f)(*arrays))


def _lower(c, b):
    return jax.scipy.linalg.solve_triangular(c, b, lower=True)


@pytest.mark.parametrize(
    ("f", "shapes", "wanted"),
    [
        (lambda x, y: x @ y, [(3, 5), (5, 7)], 2 * 3 * 5 * 7),
        (lambda x: x @ x.mT, [(4, 3, 5)], 4 * 2 * 3 * 3 * 5),
        (lambda x, y: 2 * x + y, [(3, 5), (3, 5)], 30),
        (lambda x: jnp.sum(x), [(3, 5)], 15),
        (lambda x: x.T.reshape(5, 3)[:2], [(3, 5)], 0),
        (jnp.linalg.cholesky, [(2, 300, 300)], 2 * 300**3 / 3),
        (_lower, [(6, 6), (6, 4)], 6 * 6 * 4),
    ],
    ids=["product", "stack", "elements", "sum", "moves", "cholesky", "solve"],
)
def test_operations(f, shapes, wanted):
    assert _count(f, *shapes) == pytest.approx(wanted, rel=0.03)


def test_calls_and_loops():
    """A loop of known length counts as often as it runs, another one once."""
    double = lambda x: 2 * x
    assert _count(jax.jit(double), (5,)) == 5
    scan = lambda x: jax.lax.scan(lambda c, _: (2 * c, None), x, None, 7)[0]
    assert _count(scan, (5,)) == 35
    loop = lambda x: jax.lax.while_loop(lambda x: x[0] > 1, double, x)
    assert _count(loop, (5,)) == 6
    branches = lambda x: jax.lax.cond(x[0] > 1, jnp.cumsum, lambda x: 2 * x + 1, x)
    assert _count(branches, (5,)) == 1 + 10
    assert _count(jax.nn.relu, (5,)) == 5
