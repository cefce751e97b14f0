"""Small smooth functions to minimize, each written twice.

Once for JAX, on a tree; and once for NumPy, on a vector with a hand-written gradient,
which is the fastest form for SciPy.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

Vector = np.ndarray
ByHand = Callable[[Vector], tuple[float, Vector]]  # x -> the value and the gradient


class Problem(NamedTuple):
    """A function, where to start, and when to stop."""

    name: str
    value: Callable[[Any], jax.Array]  # of a tree
    by_hand: ByHand  # of its leaves concatenated
    start: Callable[[int], Any]  # seed -> a tree of NumPy arrays
    tolerance: float = 1e-6  # of the largest entry of the gradient


def problems() -> list[Problem]:
    """All problems, smallest first."""
    return [
        rosenbrock(2),
        rosenbrock(10),
        rosenbrock(100),
        quadratic(50, 1e4),
        ill_scaled(20, 1e4),
        logistic(200, 20),
        network(64, 3, 20),
    ]


def rosenbrock(n: int) -> Problem:
    """`sum 100 (x_{i+1} - x_i^2)^2 + (1 - x_i)^2`, from `(-1.2, 1, ...)` and nearby."""

    def value(x: jax.Array) -> jax.Array:
        a, b = x[1:] - x[:-1] ** 2, 1 - x[:-1]
        return jnp.sum(100 * a**2 + b**2)

    def by_hand(x: Vector) -> tuple[float, Vector]:
        a, b = x[1:] - x[:-1] ** 2, 1 - x[:-1]
        g = np.zeros_like(x)
        g[1:] = 200 * a
        g[:-1] -= 400 * a * x[:-1] + 2 * b
        return 100 * (a @ a) + b @ b, g

    def start(seed: int) -> Vector:
        near = 0.1 * np.random.default_rng(seed).normal(size=n)
        return np.where(np.arange(n) % 2, 1.0, -1.2) + near * (seed > 0)

    return Problem(f"rosenbrock {n}", value, by_hand, start, 1e-5)


def quadratic(n: int, condition: float) -> Problem:
    """`x A x / 2 - <b, x>`, with the eigenvalues of `A` from 1 to `condition`."""
    rng = np.random.default_rng(0)
    q = np.linalg.qr(rng.normal(size=(n, n)))[0]
    A, b = (q * np.geomspace(1, condition, n)) @ q.T, rng.normal(size=n)

    def value(x: jax.Array) -> jax.Array:
        return x @ (jnp.asarray(A) @ x) / 2 - jnp.asarray(b) @ x

    def by_hand(x: Vector) -> tuple[float, Vector]:
        Ax = A @ x
        return x @ Ax / 2 - b @ x, Ax - b

    start = lambda seed: np.random.default_rng(seed).normal(size=n)
    return Problem(f"quadratic {n}", value, by_hand, start, 1e-4)


def ill_scaled(n: int, largest: float) -> Problem:
    """`sum c (sqrt(1 + (x - 1)^2) - 1)`, with `c` from 1 to `largest`."""
    c = np.geomspace(1, largest, n)

    def value(x: jax.Array) -> jax.Array:
        return jnp.sum(jnp.asarray(c) * (jnp.sqrt(1 + (x - 1) ** 2) - 1))

    def by_hand(x: Vector) -> tuple[float, Vector]:
        root = np.sqrt(1 + (x - 1) ** 2)
        return c @ (root - 1), c * (x - 1) / root

    start = lambda seed: 3 * np.random.default_rng(seed).normal(size=n)
    return Problem(f"ill-scaled sum {n}", value, by_hand, start, 1e-4)


def logistic(rows: int, n: int) -> Problem:
    """The mean of `log(1 + exp(-y (X w + b)))`, and `|w|^2 / 1000`."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, n))
    y = np.where(X @ rng.normal(size=n) + 2 * rng.normal(size=rows) > 0, 1.0, -1.0)

    def value(p: dict[str, jax.Array]) -> jax.Array:
        z = jnp.asarray(y) * (jnp.asarray(X) @ p["w"] + p["b"])
        return jnp.mean(jax.nn.softplus(-z)) + p["w"] @ p["w"] / 1000

    def by_hand(x: Vector) -> tuple[float, Vector]:
        b, w = x[0], x[1:]  # in leaf order
        z = y * (X @ w + b)
        slope = -y / (1 + np.exp(z)) / rows
        g = np.concatenate([[np.sum(slope)], slope @ X + w / 500])
        return np.mean(np.logaddexp(0, -z)) + w @ w / 1000, g

    def start(seed: int) -> dict[str, Vector]:
        rng = np.random.default_rng(seed)
        return {"w": rng.normal(size=n), "b": rng.normal(size=())}

    return Problem(f"logistic {rows}x{n}", value, by_hand, start)


def network(rows: int, n: int, hidden: int) -> Problem:
    """The mean square error of `tanh(X W + b) v + c`, and `|p|^2 / 1000`."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, n))
    y = np.sin(X.sum(1)) + 0.1 * rng.normal(size=rows)
    cuts = np.cumsum([n * hidden, hidden, 1])

    def value(p: dict[str, jax.Array]) -> jax.Array:
        h = jnp.tanh(jnp.asarray(X) @ p["W"] + p["b"][None])
        error = h @ p["v"] + p["c"] - jnp.asarray(y)
        return jnp.mean(error**2) + sum(jnp.sum(x**2) for x in p.values()) / 1000

    def by_hand(x: Vector) -> tuple[float, Vector]:
        W, b, c, v = np.split(x, cuts)  # in leaf order
        h = np.tanh(X @ W.reshape(n, hidden) + b)
        error = h @ v + c - y
        d = 2 * error / rows
        dz = d[:, None] * v * (1 - h * h)
        g = [(X.T @ dz).ravel(), dz.sum(0), [d.sum()], h.T @ d]
        return error @ error / rows + x @ x / 1000, np.concatenate(g) + x / 500

    def start(seed: int) -> dict[str, Vector]:
        shapes = {"W": (n, hidden), "b": (hidden,), "c": (), "v": (hidden,)}
        rng = np.random.default_rng(seed)
        return {k: 0.5 * rng.normal(size=shape) for k, shape in shapes.items()}

    return Problem(f"tanh network {cuts[-1] + hidden}", value, by_hand, start)
