"""Points near, in and far from a set, and what it means to be the nearest."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree


def trees(dtype=jnp.float32, count=4):
    """Trees of five numbers, from small to large."""
    rng = np.random.default_rng(0)
    for k in range(count):
        x = rng.normal(size=5) * 3.0 ** (k - 1)
        yield {
            "w": jnp.array(x[:4].reshape(2, 2), dtype),
            "b": [jnp.array(x[4], dtype)],
        }


def flat(tree):
    return np.asarray(ravel_pytree(tree)[0], np.float64)


def with_jacobian(f):
    """From a tree to `f` of it and the derivative of that; compiled."""
    return jax.jit(lambda x: (f(x), jax.jacrev(f)(x)))


def jacobian(f, x):
    """The derivative of the function of the flat vector, by forward mode."""
    vector, unravel = ravel_pytree(x)
    return jax.jit(jax.jacfwd(lambda v: ravel_pytree(f(unravel(v)))[0]))(vector)


def assert_nearest(f, x, contains, draw, atol=1e-5):
    """`f(x)` is in the set, and no point of the set that is drawn is nearer.

    Args:
        f: the projection.
        x: a tree.
        contains: whether a vector is in the set.
        draw: from a random generator to a vector in the set.
    """
    y = flat(f(x))
    assert contains(y)
    rng = np.random.default_rng(1)
    distance = np.linalg.norm(flat(x) - y)
    others = [draw(rng) for _ in range(200)]
    # Also points on the way to the others: for convex sets they are in the set.
    for z in others:
        assert contains(z)
        assert np.linalg.norm(flat(x) - z) >= distance - atol
    return y, others


def assert_optimal(x, y, others, atol=1e-4):
    """For a convex set: the way from `y` to `x` leads away from all of the set."""
    for z in others:
        assert np.dot(flat(x) - y, z - y) <= atol * (1 + np.linalg.norm(flat(x)))
