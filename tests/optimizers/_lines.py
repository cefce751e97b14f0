"""Functions of one variable, and the trials of a line search on them."""

import math

import jax
import jax.numpy as jnp
import numpy as np

DIFFICULT = ["smooth", "uphill", "hole", "noise", "flat", "wrong slopes", "sharp"]
_SEEN, _PHI = [], [lambda x: (0.0, 0.0)]
_NUMBERS = (jax.ShapeDtypeStruct((), "float64"),) * 2


def _call(x):
    _SEEN.append(float(x))
    return tuple(np.float64(y) for y in _PHI[0](float(x)))


@jax.custom_vjp
def _value(x):
    return jax.pure_callback(_call, _NUMBERS, x)[0]


_value.defvjp(
    lambda x: jax.pure_callback(_call, _NUMBERS, x), lambda slope, c: (c * slope,)
)


def searched(tx):
    """A function from a line, a last step and a direction to the trials and the result.

    The result is the step, the value, the gradient, and the report.
    """

    @jax.jit
    def run(last, u, value, grad):
        p = jnp.zeros(())
        state = tx.init(p)._replace(learning_rate=last)
        known = {"value": value, "grad": grad, "value_fn": _value}
        return tx.update(u, state, p, **known)[1]

    def search(phi, last, u):
        _PHI[0] = phi
        _SEEN.clear()
        state = run(*map(jnp.float64, (last, u, *phi(0.0))))
        grad = 0.0 if state.grad is None else state.grad
        end = [state.learning_rate, state.value, grad, *state.info]
        return list(_SEEN), [float(x) for x in end]

    return search


def line(kind, seed):
    """A function of one variable with its derivative, a last step, and a direction."""
    rng = np.random.default_rng([seed, DIFFICULT.index(kind)])
    k = rng.integers(1, 4)
    size, speed = rng.normal(size=k) * rng.exponential(1, k), rng.exponential(3, k)
    shift = rng.uniform(0, 2 * math.pi, k)
    tilt, bowl = rng.normal() * 0.3, rng.exponential(0.5)
    first, where = rng.exponential(size=2)
    bad, noise = rng.choice([math.nan, math.inf]), 10 ** rng.uniform(-8, -4)

    def f(x):
        return float(np.sum(size * np.sin(speed * x + shift)) + tilt * x + bowl * x * x)

    def df(x):
        waves = np.sum(size * speed * np.cos(speed * x + shift))
        return float(waves + tilt + 2 * bowl * x)

    turn = -1.0 if df(0.0) > 0 and kind != "uphill" else 1.0
    smooth = lambda x: (f(turn * x), turn * df(turn * x))
    fall = -abs(df(0.0))
    lines = {
        "smooth": smooth,
        "uphill": smooth,
        "hole": lambda x: smooth(x) if x < where else (bad, bad),
        "noise": lambda x: (smooth(x)[0] + where * math.sin(1e3 * x), smooth(x)[1]),
        "flat": lambda x: (1 + noise * smooth(x)[0], noise * smooth(x)[1]),
        "wrong slopes": lambda x: (
            1 + noise * (smooth(x)[0] + math.sin(1e3 * x)),
            smooth(x)[1] if x > 0 else fall,
        ),
        "sharp": lambda x: (
            abs(x - where) + smooth(x)[0] / 100,
            (1.0 if x > where else -1.0) + smooth(x)[1] / 100,
        ),
    }
    return lines[kind], float(first), float(rng.exponential())
