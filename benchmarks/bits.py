"""Kernels against XLA alone on one GPU, bit by bit: `python -m benchmarks.bits`.

Three steps of optimizers in 8 bits, with and without the kernel, for two shapes. It
prints how many bytes of each array differ: first those of the weights, then those of
the state. The codes and scales should be equal. The weights may differ in their last
bit: without the kernel, XLA may join a product and a sum. Elsewhere there are no
kernels, and nothing differs.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import steepest
from steepest.engine.run import _formula, _pass

_adamw = partial(steepest.adamw, 1e-2, memory_dtype="int8")
# The dtype of the weights, and the optimizer.
CASES: dict[str, tuple[str, Callable[[], Any]]] = {
    "adamw": ("float32", _adamw),
    "lion": ("float32", lambda: steepest.lion(1e-3, memory_dtype="int8")),
    "24-bit weights": ("bfloat16", lambda: steepest.compensated(_adamw(), bits=8)),
    "32-bit weights": ("bfloat16", lambda: steepest.compensated(_adamw())),
    "stochastic rounding": (
        "bfloat16",
        lambda: steepest.stochastic_rounding(_adamw(), 0),
    ),
}
SHAPES = (512, 1024), (300, 777)
STEPS = 3


def trained(tx: Any, params: Any, grads: list[Any], kernels: bool) -> list[Any]:
    """The arrays after some steps: weights, then state.

    Args:
        tx: the optimizer.
        params: the weights.
        grads: a gradient for each step.
        kernels: whether to use kernels, if the machine has any.
    """
    on_gpu = _pass.on_gpu
    _pass.on_gpu = on_gpu if kernels else lambda: False
    _formula.joined.cache_clear()
    jax.clear_caches()

    @jax.jit
    def step(params: Any, state: Any, grads: Any) -> Any:
        updates, state = tx.update(grads, state, params)
        return steepest.apply_updates(params, updates), state

    try:
        state = tx.init(params)
        for g in grads:
            params, state = step(params, state, g)
        return jax.tree.leaves((params, state))
    finally:
        _pass.on_gpu = on_gpu


def differences(dtype: str, make: Callable[[], Any], shape: Any) -> list[int]:
    """For each array, the number of bytes that differ.

    Args:
        dtype: of the weights.
        make: makes the optimizer.
        shape: of the weights.
    """
    first, *keys = jax.random.split(jax.random.key(3), 1 + STEPS)
    params = jax.random.normal(first, shape).astype(dtype)
    # Rows of very different sizes, and one row of zeros.
    sizes = jnp.exp(3 * jax.random.normal(first, (shape[0], 1)))
    grads = [(sizes * jax.random.normal(key, shape)).astype(dtype) for key in keys]
    grads[1] = grads[1].at[1].set(0)
    pairs = zip(
        *(trained(make(), params, grads, kernels) for kernels in (True, False)),
        strict=True,
    )
    return [int((_bytes(x) != _bytes(y)).sum()) for x, y in pairs]


def _bytes(x: Any) -> np.ndarray:
    if jnp.issubdtype(x.dtype, jax.dtypes.prng_key):
        x = jax.random.key_data(x)
    return np.atleast_1d(np.asarray(x)).view(np.uint8)


def main() -> None:
    """Print a line for each optimizer and shape."""
    for name, (dtype, make) in CASES.items():
        for shape in SHAPES:
            print(name, shape, differences(dtype, make, shape), flush=True)


if __name__ == "__main__":
    main()
