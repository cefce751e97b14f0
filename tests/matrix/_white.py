"""What the tests of PSGD and Kron share."""

import jax
import jax.numpy as jnp
import numpy as np

import steepest

SHAPES = {"square": (5, 5), "wide": (3, 7), "layers": (2, 7, 3), "conv": (2, 2, 3)}


def matrices(x):
    """The matrices of a leaf of `SHAPES`; a vector is one row."""
    x = np.asarray(x, np.float64)
    if x.shape == SHAPES["conv"]:
        return [x.reshape(4, 3)]
    return list(x) if x.ndim == 3 else [np.atleast_2d(x)]


def gradients(steps, shapes=SHAPES):
    random = np.random.default_rng(0)
    draw = lambda s: jnp.asarray(0.1 + random.normal(size=s), jnp.float32)
    return [{name: draw(s) for name, s in shapes.items()} for _ in range(steps)]


def updates(tx, gs, compiled=True):
    """The updates in each step, and the last state."""
    state, found = tx.init(gs[0]), []
    update = jax.jit(tx.update) if compiled else tx.update
    for g in gs:
        u, state = update(g, state, g)
        found.append(u)
    return found, state


def ill_conditioned(d, condition, seed=0):
    """A symmetric matrix with these extreme eigenvalues: 1 and `1 / condition`."""
    random = np.random.default_rng(seed)
    q = np.linalg.qr(random.normal(size=(d, d)))[0]
    return jnp.asarray((q * np.geomspace(1, 1 / condition, d)) @ q.T, jnp.float32)


def error_of_mean_covariance(tx, d, first, then):
    """How far the covariance of the rows of `u` is from a multiple of the identity.

    The gradients are `A N B`, with a new `N` in each step. The covariance is a mean
    over the last steps.
    """
    a, b = (ill_conditioned(d, 100.0, seed) for seed in range(2))

    def step(state, key):
        g = 1e-3 * a @ jax.random.normal(key, (d, d)) @ b
        u, state = tx.update(g, state)
        return state, u

    keys = jax.random.split(jax.random.key(0), first + then)
    _, us = jax.jit(lambda k: jax.lax.scan(step, tx.init(a), k))(keys)
    c = jnp.einsum("tij,tkj->ik", us[first:], us[first:])
    c = c * (d / jnp.trace(c))
    return float(jnp.linalg.norm(c - jnp.eye(d))) / d**0.5


def loss_of_quadratic(make, rates, steps, condition=1000.0, d=10):
    """The least last loss of `tr(w^T A w B)` over these rates. The first one is 1."""
    a, b = (ill_conditioned(d, condition, seed) for seed in range(2))
    start = jax.random.normal(jax.random.key(0), (d, d))
    loss = lambda w: jnp.trace(w.T @ a @ w @ b)

    @jax.jit
    def run(rate):
        tx = make(steepest.cosine_decay_schedule(rate, steps))

        def step(carry, _):
            w, state = carry
            u, state = tx.update(jax.grad(loss)(w), state, w)
            return (steepest.apply_updates(w, u), state), None

        (w, _), _ = jax.lax.scan(step, (start, tx.init(start)), None, steps)
        return loss(w) / loss(start)

    return min(float(run(rate)) for rate in rates)
