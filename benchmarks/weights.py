"""Half-precision weights: `python -m benchmarks.weights [--steps N] [--params N]`.

Three parts, on the default device. First, whether every bit survives there: XLA could
replace float32 -> bfloat16 -> float32 by nothing. Second, the byte model of the race,
trained with its weights in float32, in bfloat16, and in bfloat16 with a correction or
stochastic rounding; in each case gradients are taken at bfloat16 weights. Third, the
time, the traffic and the temporary memory of a step of AdamW.
"""

import argparse
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import steepest
from steepest.numerics import joined, split
from steepest.race.problems import load

from . import machine
from .timing import clock

RATE = 3e-3
ROUNDS, ROW = 5, 10  # rounds of ten steps in a row

half = lambda tree: jax.tree.map(lambda w: split(w, jnp.bfloat16, jnp.int16)[0], tree)
wide = lambda tree: jax.tree.map(lambda x: x.astype(jnp.float32), tree)


def survives() -> dict[str, bool]:
    """Whether the device keeps every bit, in one compiled program."""
    low = np.array([0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF], np.uint32)
    bits = (np.arange(1 << 16, dtype=np.uint32)[:, None] << 16 | low).ravel()
    x = bits.view(np.float32)
    x = x[np.abs(x) < 3.396e38]

    @jax.jit
    def back(x: Any) -> Any:
        return joined(*split(x, jnp.bfloat16, jnp.int16))

    tx = steepest.compensated(steepest.sgd(1.0))
    w, g = jax.random.normal(jax.random.key(0), (2, 1 << 20))
    p = half(w)
    p, state = steepest.from_wide_params(w, p, tx.init(p))
    p, state = steepest.make_step(tx)(p, state, g)
    key = jax.random.key(1)
    ones, tiny = jnp.ones(1 << 20, jnp.bfloat16), jnp.full(1 << 20, 1e-3)
    mean = jax.jit(lambda p, u: jnp.mean(wide(steepest.apply_updates(p, u, key=key))))
    equal = lambda x, y: np.asarray(x).tobytes() == np.asarray(y).tobytes()
    return {
        "every float32 is kept": equal(back(x), x),
        "a step lands": equal(p, half(w - g)),
        "a step is that of float32": equal(steepest.wide_params(p, state), w - g),
        "rounding is unbiased": bool(abs(mean(ones, tiny) - 1.001) < 2e-5),
    }


def trained(tx: Any, params: Any, at: Callable[[Any], Any], steps: int) -> Any:
    """The byte model after some steps: params, state, and bits per held-out byte.

    Args:
        tx: the optimizer.
        params: the initial params.
        at: the params -> those at which the gradient is taken.
        steps: the number of steps.
    """
    problem = load("bytes")
    assert problem.metric is not None
    data = jax.tree.map(jnp.asarray, problem.data)

    def step(carry: Any, key: Any) -> Any:
        p, state = carry
        g = jax.grad(problem.loss)(at(p), problem.batches(key, data))
        u, state = tx.update(g, state, p)
        return (steepest.apply_updates(p, u), state), None

    keys = jax.random.split(jax.random.key(1), steps)
    go = jax.jit(lambda carry: jax.lax.scan(step, carry, keys)[0])
    params, state = go((params, tx.init(params)))
    # In float32, so that only the weights are rounded.
    bits = jax.jit(problem.metric)(wide(half(wide(params))), data)
    return params, state, float(bits)


def byte_model(steps: int) -> None:
    """Train it in each way, and compare with float32."""
    w = load("bytes").init(jax.random.key(0))
    p, same, tx = half(w), lambda p: p, steepest.adamw(RATE)
    start = wide(p)
    float32 = steepest.chain(steepest.stateless(lambda g, _: wide(g)), tx)
    want, _, bits = trained(float32, start, half, steps)
    print(f"  float32                  {bits:.4f}")
    for name, other in {
        "bfloat16": tx,
        "compensated(bits=16)": steepest.compensated(tx),
        "compensated(bits=8)": steepest.compensated(tx, 8),
        "stochastic_rounding": steepest.stochastic_rounding(tx, 0),
    }.items():
        q, state, bits = trained(other, p, same, steps)
        got = wide(q)
        if name.startswith("compensated"):
            got = steepest.wide_params(q, state)
        pairs = zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True)
        differ = sum(int(jnp.sum(x != y)) for x, y in pairs)
        print(f"  {name:24} {bits:.4f}  {differ} weights differ from float32")


def _row(step: Callable[..., Any], params: Any, state: Any, grads: Any) -> Any:
    for _ in range(ROW):
        params, state = step(params, state, grads)
    return params, state


def steps_of_adamw(size: int) -> None:
    """Milliseconds, bytes per param and second, temporary bytes per param."""
    tx = steepest.adamw(1e-3)
    moved = {  # read and written per param: weight, gradient, state
        "float32": (tx, jnp.float32, 28),
        "bfloat16": (tx, jnp.bfloat16, 18),
        "compensated(bits=16)": (steepest.compensated(tx), jnp.bfloat16, 26),
        "compensated(bits=8)": (steepest.compensated(tx, 8), jnp.bfloat16, 24),
        "stochastic_rounding": (
            steepest.stochastic_rounding(tx, 0),
            jnp.bfloat16,
            18,
        ),
    }
    for name, (one, dtype, count) in moved.items():
        p = {"w": jnp.full((size // 4096, 4096), 0.02, dtype)}
        g, state = jax.tree.map(lambda x: 0.1 * x, p), one.init(p)
        make: Any = steepest.make_step(one)
        step = make.lower(p, state, g).compile()
        temporary = step.memory_analysis().temp_size_in_bytes / size
        best = float("inf")
        for _ in range(ROUNDS):
            seconds, (p, state) = clock(_row, step, p, state, g)
            best = min(best, seconds / ROW)
        rate = count * size / best / 1e9
        print(
            f"  {name:24} {1e3 * best:8.2f} ms  {rate:6.0f} GB/s  "
            f"{temporary:.1f} B temporary"
        )
        del p, g, state, step


def main() -> None:
    """Run the three parts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=1000, help="of the byte model")
    parser.add_argument("--params", type=int, default=1 << 24, help="of AdamW's step")
    chosen = parser.parse_args()
    print(machine.describe())
    for name, holds in survives().items():
        print(f"  {name}: {'yes' if holds else 'NO'}")
    print(f"byte model, {chosen.steps} steps: bits per byte")
    byte_model(chosen.steps)
    print(f"AdamW, {chosen.params:.3g} params")
    steps_of_adamw(chosen.params)


if __name__ == "__main__":
    main()
