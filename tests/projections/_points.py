"""Points near, in and far from a set, and checks that a point is the nearest."""

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
    """A compiled function that returns `f` of a tree and its derivative."""
    return jax.jit(lambda x: (f(x), jax.jacrev(f)(x)))


def jacobian(f, x):
    """The derivative as a function of the flat vector, by forward mode."""
    vector, unravel = ravel_pytree(x)
    return jax.jit(jax.jacfwd(lambda v: ravel_pytree(f(unravel(v)))[0]))(vector)


def assert_nearest(f, x, contains, draw, atol=1e-5):
    """`f(x)` is in the set, and no sampled point of the set is closer.

    Args:
        f: the projection.
        x: a tree.
        contains: whether a vector is in the set.
        draw: function from a random generator to a vector in the set.
    """
    y = flat(f(x))
    assert contains(y)
    rng = np.random.default_rng(1)
    distance = np.linalg.norm(flat(x) - y)
    others = [draw(rng) for _ in range(200)]
    # Also points on the segments to these: in a convex set they are in the set.
    for z in others:
        assert contains(z)
        assert np.linalg.norm(flat(x) - z) >= distance - atol
    return y, others


def assert_optimal(x, y, others, atol=1e-4):
    """For a convex set: `x - y` points away from the whole set."""
    for z in others:
        assert np.dot(flat(x) - y, z - y) <= atol * (1 + np.linalg.norm(flat(x)))
