"""A training loop with the installed package and nothing but JAX."""

import sys
from importlib.metadata import distribution
from pathlib import Path

import jax
import jax.numpy as jnp

import steepest


def main() -> None:
    """Train, and check that it is the installed package that trains."""
    assert "site-packages" in Path(steepest.__file__).parts, steepest.__file__
    assert Path(steepest.__file__).with_name("py.typed").exists()
    assert steepest.__version__ == distribution("steepest").version
    assert "optax" not in sys.modules

    params = {"w": jnp.array([3.0, -4.0]), "b": jnp.array(2.0)}
    loss = lambda p: jnp.sum(p["w"] ** 2) + p["b"] ** 2
    first = float(loss(params))
    tx = steepest.chain(steepest.clip_by_global_norm(1.0), steepest.adamw(0.1))
    step, state = steepest.make_step(tx), tx.init(params)
    for _ in range(100):
        params, state = step(params, state, jax.grad(loss)(params))
    last = float(loss(params))
    assert last < 0.01 * first, (first, last)
    print(f"steepest {steepest.__version__}, JAX {jax.__version__}: loss {last:.2g}")


if __name__ == "__main__":
    main()
