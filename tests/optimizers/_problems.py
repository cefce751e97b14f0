"""Functions to minimize, and steps of any transformation on them."""

import jax
import jax.numpy as jnp
import numpy as np

import steepest

_ROWS = np.random.default_rng(0).normal(size=(30, 5))
_LABELS = np.arange(30) % 3 == 0


def quadratic(p):
    """Condition number 100."""
    x = p["x"]
    return jnp.sum(jnp.linspace(0.1, 10, 6, dtype=x.dtype) * x**2 / 2 + x)


def rosenbrock(p):
    return 100 * (p["y"] - p["x"] ** 2) ** 2 + (1 - p["x"]) ** 2


def logistic(p):
    rows, labels = jnp.asarray(_ROWS, p["w"].dtype), jnp.asarray(_LABELS, p["w"].dtype)
    scores = rows @ p["w"] + p["b"]
    return jnp.mean(jax.nn.softplus(scores) - labels * scores) + jnp.sum(
        p["w"] ** 2 / 100
    )


def beginnings(dtype):
    """Each function by name, with its starting point."""
    array = lambda x: jnp.asarray(x, dtype)
    return {
        "quadratic": (quadratic, {"x": array(np.arange(6.0)), "none": None}),
        "rosenbrock": (rosenbrock, {"x": array(-1.2), "y": array(1.0)}),
        "logistic": (logistic, {"w": array(np.zeros(5)), "b": array(0.0)}),
    }


def descend(m, tx, f, p, steps, from_state=False):
    """The state and the params after each compiled step, with library `m`."""

    traces = []

    @jax.jit
    def step(p, state):
        traces.append(1)
        value, g = jax.value_and_grad(f)(p)
        if from_state:
            value, g = m.value_and_grad_from_state(f)(p, state=state)
        u, state = tx.update(g, state, p, value=value, grad=g, value_fn=f)
        return m.apply_updates(p, u), state

    state, rows = tx.init(p), []
    for _ in range(steps):
        p, state = step(p, state)
        rows.append((state, p))
    # Optax compiles twice: only its first state is weakly typed.
    assert len(traces) == 1 or m is not steepest
    return rows
