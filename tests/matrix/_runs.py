"""Runs that every optimizer with factors must pass."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ._reference import matrix

_ONE = jnp.outer(jnp.arange(1.0, 5), jnp.arange(1.0, 7))
_BAD_GRADIENTS = {
    "zero": 0 * _ONE,
    "rank one": _ONE,
    "tiny": 1e-30 * _ONE,
    "huge": 1e30 * _ONE,
}


def no_gradient_makes_it_infinite(tx: Any) -> None:
    """Check updates and states of 52 steps, with bad gradients in steps 1, 2 and 50."""
    usual = jnp.stack([matrix(t, *_ONE.shape) for t in range(52)])

    def step(state: Any, g: Any) -> Any:
        u, state = tx.update(g, state)
        return state, (u, state)

    run = jax.jit(lambda gs: jax.lax.scan(step, tx.init(gs[0]), gs)[1])
    for name, bad in _BAD_GRADIENTS.items():
        for x in jax.tree.leaves(run(usual.at[jnp.array([0, 1, 49])].set(bad))):
            assert np.isfinite(x).all(), name


def spread(tx: Any, m: int = 4, n: int = 6) -> list[float]:
    """How far the covariances of rows and columns of updates are from white.

    The gradients are independent, with covariances of rows and of columns.
    """
    random = np.random.default_rng(0)
    roots = [
        np.linalg.qr(random.normal(size=(d, d)))[0] * np.geomspace(1, 0.1, d)
        for d in (m, n)
    ]
    gs = roots[0] @ random.normal(size=(3000, m, n)) @ roots[1].T

    def step(state: Any, g: Any) -> Any:
        u, state = tx.update(g, state)
        return state, u

    gs = jnp.asarray(gs, jnp.float32)
    us = jax.jit(lambda: jax.lax.scan(step, tx.init(gs[0]), gs)[1])()
    us = np.asarray(us, float)[1000:]
    found = []
    for x in (us, us.mT):
        values = np.linalg.eigvalsh((x @ x.mT).mean(0))
        found.append(float(abs(values / values.mean() - 1).max()))
    return found


def steps_to_solve(
    make: Callable[[float], Any], rates: list[float], most: int, d: int = 16
) -> int:
    """Steps to a millionth of the loss `tr(W^T A W B)`, with the best of the rates.

    `A` and `B` have eigenvalues from 1e-4 to 1.
    """
    random = np.random.default_rng(0)
    bases = [np.linalg.qr(random.normal(size=(d, d)))[0] for _ in range(2)]
    a, b = (
        jnp.asarray((q * np.geomspace(1, 1e-4, d)) @ q.T, jnp.float32) for q in bases
    )
    start = {"kernel": jnp.asarray(random.normal(size=(d, d)), jnp.float32)}
    loss = lambda p: jnp.sum(p["kernel"] * (a @ p["kernel"] @ b))
    goal = 1e-6 * loss(start)

    def solve(rate: Any) -> Any:
        tx = make(rate)

        def step(carry: Any) -> Any:
            p, state, k = carry
            u, state = tx.update(jax.grad(loss)(p), state, p)
            return jax.tree.map(jnp.add, p, u), state, k + 1

        going = lambda carry: (loss(carry[0]) > goal) & (carry[2] < most)
        return jax.lax.while_loop(going, step, (start, tx.init(start), 0))[2]

    return int(jax.jit(jax.vmap(solve))(jnp.asarray(rates)).min())
