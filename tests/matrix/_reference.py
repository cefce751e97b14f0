"""Slow references in NumPy, and runs to compare with them."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import steepest
from steepest.numerics import polynomials


def matrix(seed: int, *shape: int) -> Any:
    """A matrix, or a stack of them, that differs for each seed."""
    return jax.random.normal(jax.random.key(seed), shape)


def polar(m: np.ndarray, name: str = "polar_express") -> np.ndarray:
    """The polynomials, applied to the singular values."""
    u, s, v = np.linalg.svd(m, full_matrices=False)
    s = s / np.sqrt((s**2).sum())
    for a, b, c in polynomials("x", name):
        s = a * s + b * s**3 + c * s**5
    return (u * s) @ v


def momentum(gs: list[np.ndarray], beta: float, nesterov: bool) -> list[np.ndarray]:
    """The mean of the gradients after each step."""
    mu, ms = 0 * gs[0], []
    for g in gs:
        mu = beta * mu + (1 - beta) * g
        ms.append(beta * mu + (1 - beta) * g if nesterov else mu)
    return ms


def gradients(p: Any, steps: int) -> list[Any]:
    """A gradient for each step."""
    return [jax.tree.map(lambda x, t=t: jnp.cos(3 * x + t), p) for t in range(steps)]


def run(tx: Any, p: Any, gs: list[Any], *, compiled: bool = True) -> tuple[Any, Any]:
    """The params and the state after some steps."""
    update = jax.jit(tx.update) if compiled else tx.update
    state = tx.init(p)
    for g in gs:
        u, state = update(g, state, p)
        p = steepest.apply_updates(p, u)
    return p, state


def updates(tx: Any, gs: list[Any], p: Any = None) -> list[Any]:
    """The update of each step, for the same params."""
    p = gs[0] if p is None else p
    update, state, us = jax.jit(tx.update), tx.init(p), []
    for g in gs:
        u, state = update(g, state, p)
        us.append(u)
    return us


def in_numpy(tree: Any) -> Any:
    """A tree in float64."""
    return jax.tree.map(lambda x: np.asarray(x, "float64"), tree)
