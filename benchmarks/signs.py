"""Lion's updates with its momentum in 8 bits: `python -m benchmarks.signs`.

Gradients are noise around a constant mean, a tenth of the noise. Their sizes differ by
a factor of `exp(spread x)` with a normal `x`, so that elements of a block are far below
its largest one. The momentum is stored by one of several maps, rounded to nearest or
up and down at random, and compared with one in float32 that sees the same gradients.
The columns, averages over the steps after a warm-up:

agreement: how often both updates have the same sign; also of the smallest fifth.
along the mean: the mean update in the direction of the mean gradient, and how much more
    or less it is than that of float32, which is 1.
error: of the momentum, against the root of its mean square.
"""

import argparse
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array

from steepest.numerics import encode

from .table import markdown

BLOCKS, SIZE = 16, 256
WARM_UP = 500
B1, B2 = 0.9, 0.99
SHARE = 0.1  # of the mean in the noise
TOP = 127

# map -> (z in [0, 1] -> its place among the codes; the inverse)
MAPS: dict[str, tuple[Callable[[Array], Array], Callable[[Array], Array]]] = {
    "cube": (lambda z: TOP * jnp.cbrt(z), lambda c: (c / TOP) ** 3),
    "fourth power": (lambda z: TOP * z**0.25, lambda c: (c / TOP) ** 4),
    "square": (lambda z: TOP * jnp.sqrt(z), lambda c: (c / TOP) ** 2),
    "softsign": (lambda z: TOP * 2 * z / (1 + z), lambda c: c / (2 * TOP - c)),
    "linear": (lambda z: TOP * z, lambda c: c / TOP),
}


def nearest(name: str, m: Array, key: Array) -> Array:
    """Momentum, rounded to the nearest code; zero only for zero, as in the library.

    Args:
        name: of `MAPS`.
        m: the momentum: one block in each row.
        key: not used.
    """
    del key
    to_code, to_level = MAPS[name]
    scale, z = _scaled(m)
    code = jnp.where(z > 0, jnp.maximum(jnp.round(to_code(z)), 1), 0)
    return jnp.sign(m) * to_level(code) * scale


def at_random(name: str, m: Array, key: Array) -> Array:
    """Momentum, rounded to one of two neighbouring codes, so that its mean is right.

    Args:
        name: of `MAPS`.
        m: the momentum: one block in each row.
        key: a random key.
    """
    to_code, to_level = MAPS[name]
    scale, z = _scaled(m)
    code = jnp.minimum(jnp.floor(to_code(z)), TOP - 1)
    low, high = to_level(code), to_level(code + 1)
    up = (z - low) / (high - low) > jax.random.uniform(key, z.shape)
    return jnp.sign(m) * jnp.where(up, high, low) * scale


def library(m: Array, key: Array) -> Array:
    """Momentum as `memory_dtype="int8"` stores it."""
    del key
    return encode(m, "signed8").decode()


STORES: dict[str, Callable[[Array, Array], Array]] = {
    '`"int8"`': library,
    **{f"{name}, nearest": partial(nearest, name) for name in MAPS},
    **{f"{name}, at random": partial(at_random, name) for name in MAPS},
}


@partial(jax.jit, static_argnums=(0, 1, 2))
def compared(store: Any, spread: float, steps: int) -> dict[str, Array]:
    """The columns of one row.

    Args:
        store: `(momentum, key) -> momentum`, as it is stored.
        spread: of the sizes of gradients.
        steps: the number of steps after the warm-up.
    """
    keys = jax.random.split(jax.random.key(0), 3)
    draw = lambda key: jax.random.normal(key, (BLOCKS, SIZE))
    size = jnp.exp(spread * draw(keys[0]))
    mean = SHARE * size * draw(keys[1])

    def step(carry: Any, key: Array) -> Any:
        m, wide, sums = carry
        noise, chance = jax.random.split(key)
        g = mean + size * draw(noise)
        u, v = (jnp.sign(B1 * x + (1 - B1) * g) for x in (m, wide))
        m = store(B2 * m + (1 - B2) * g, chance)
        wide = B2 * wide + (1 - B2) * g
        same = jnp.where(u == v, 1.0, 0.0)
        new = same, u * jnp.sign(mean), v * jnp.sign(mean), (m - wide) ** 2, wide**2
        return (m, wide, [a + b for a, b in zip(sums, new, strict=True)]), None

    zero = jnp.zeros_like(mean)
    none = [zero] * 5
    all_keys = jax.random.split(keys[2], WARM_UP + steps)
    (m, wide, _), _ = jax.lax.scan(step, (zero, zero, none), all_keys[:WARM_UP])
    (_, _, sums), _ = jax.lax.scan(step, (m, wide, none), all_keys[WARM_UP:])
    same, ours, theirs, error, square = (x / steps for x in sums)
    small = jnp.where(size < jnp.quantile(size, 0.2), 1.0, 0.0)
    return {
        "agreement": jnp.mean(same),
        "of the smallest": jnp.sum(same * small) / jnp.sum(small),
        "along the mean": jnp.mean(ours) / jnp.mean(theirs) - 1,
        "error": jnp.sqrt(jnp.mean(error / square)),
    }


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.signs")
    parser.add_argument("--steps", type=int, default=4000)
    args = parser.parse_args()
    rows = []
    for spread in (0.5, 1.0, 2.0):
        for name, store in STORES.items():
            found = {
                k: float(x) for k, x in compared(store, spread, args.steps).items()
            }
            shown = [
                f"{found['agreement']:.1%}",
                f"{found['of the smallest']:.1%}",
                f"{found['along the mean']:+.1%}",
                f"{found['error']:.2f}",
            ]
            rows.append([f"{spread}", name, *shown])
            print(*rows[-1], flush=True)
    head = ["spread", "map", "agreement", "of the smallest", "along the mean", "error"]
    print(f"\n{markdown(head, rows)}")


def _scaled(m: Array) -> tuple[Array, Array]:
    """The scale of each block, and absolute values divided by it."""
    scale = jnp.max(jnp.abs(m), axis=-1, keepdims=True)
    return scale, jnp.abs(m) / jnp.where(scale > 0, scale, 1)


if __name__ == "__main__":
    main()
