"""Which optimizer, at which learning rate? A race on handwritten digits.

    python -m examples.race [steps]

Every optimizer trains the same small network from the same seeds at eight learning
rates. All of its runs are one `vmap`ped program, compiled once: a learning rate may be
a traced array.
"""

import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from sklearn.datasets import load_digits

import steepest

RATES = np.geomspace(3e-4, 1.0, 8, dtype=np.float32)
SEEDS = 3
BATCH = 64

OPTIMIZERS: dict[str, Callable[[Any], steepest.GradientTransformation]] = {
    "sgd": steepest.sgd,
    "sgd, momentum": lambda rate: steepest.sgd(rate, momentum=0.9),
    "nag": steepest.nag,
    "adam": steepest.adam,
    "adamw": lambda rate: steepest.adamw(rate, weight_decay=0.01),
    "nadam": steepest.nadam,
    "lion": steepest.lion,
    "clipped adamw": lambda rate: steepest.chain(
        steepest.clip_by_global_norm(1.0), steepest.adamw(rate, weight_decay=0.01)
    ),
}


def digits() -> tuple[Any, Any]:
    """1347 images to train on and 450 to be tested on, each with its digit."""
    images, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(labels))
    images, labels = (images[order] / 16).astype(np.float32), labels[order]
    return (images[:1347], labels[:1347]), (images[1347:], labels[1347:])


def network(key: jax.Array) -> Any:
    """The params of a network with one hidden layer, at the start."""
    a, b = jax.random.split(key)
    return {
        "hidden": {"w": jax.random.normal(a, (64, 64)) / 8, "b": jnp.zeros(64)},
        "out": {"w": jax.random.normal(b, (64, 10)) / 8, "b": jnp.zeros(10)},
    }


def scores(params: Any, images: jax.Array) -> jax.Array:
    """How much each image looks like each digit."""
    hidden = images @ params["hidden"]["w"] + params["hidden"]["b"]
    return jax.nn.relu(hidden) @ params["out"]["w"] + params["out"]["b"]


def loss(params: Any, images: jax.Array, labels: jax.Array) -> jax.Array:
    """The mean of minus the logarithm of the right digit's share."""
    shares = jax.nn.log_softmax(scores(params, images))
    return -jnp.mean(jnp.take_along_axis(shares, labels[:, None], axis=1))


def run(
    make: Any, steps: int, data: Any, rate: jax.Array, seed: jax.Array
) -> jax.Array:
    """Train once; the accuracy on the test images, or NaN if the loss is not finite."""
    (images, labels), (test_images, test_labels) = data
    start, order = jax.random.split(jax.random.key(seed))
    params, tx = network(start), make(rate)

    def step(carry: Any, key: jax.Array) -> tuple[Any, jax.Array]:
        params, state = carry
        rows = jax.random.choice(key, len(labels), (BATCH,))
        value, grads = jax.value_and_grad(loss)(params, images[rows], labels[rows])
        updates, state = tx.update(grads, state, params)
        return (steepest.apply_updates(params, updates), state), value

    keys = jax.random.split(order, steps)
    (params, _), values = jax.lax.scan(step, (params, tx.init(params)), keys)
    right = jnp.argmax(scores(params, test_images), axis=1) == test_labels
    return jnp.where(jnp.isfinite(values[-1]), jnp.mean(right), jnp.nan)


def race(steps: int) -> list[tuple[str, float, float, float, float]]:
    """For each optimizer: its name, best rate, accuracy there, spread, seconds."""
    data = jax.tree.map(jnp.asarray, digits())
    rows = []
    for name, make in OPTIMIZERS.items():
        began = time.perf_counter()
        one = partial(run, make, steps, data)
        over_seeds = jax.vmap(one, in_axes=(None, 0))
        sweep = jax.jit(jax.vmap(over_seeds, in_axes=(0, None)))
        found = np.asarray(sweep(jnp.asarray(RATES), jnp.arange(SEEDS)))
        means = np.where(np.isnan(found).any(axis=1), -1.0, found.mean(axis=1))
        best = int(means.argmax())
        seconds = time.perf_counter() - began
        rows.append((name, RATES[best], means[best], np.ptp(found[best]), seconds))
        print(f"  {name}: {seconds:.1f} s", file=sys.stderr)
    return sorted(rows, key=lambda row: -row[2])


def main() -> None:
    """Run the race and print who won."""
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else 400
    print(f"{len(OPTIMIZERS)} optimizers x {len(RATES)} rates x {SEEDS} seeds")
    print(f"{steps} steps of {BATCH} digits each\n")
    rows = race(steps)
    print(f"{'optimizer':<16}{'best rate':>10}{'accuracy':>10}{'spread':>8}{'sec':>7}")
    for name, rate, mean, spread, seconds in rows:
        print(f"{name:<16}{rate:>10.1e}{mean:>10.3f}{spread:>8.3f}{seconds:>7.1f}")


if __name__ == "__main__":
    main()
