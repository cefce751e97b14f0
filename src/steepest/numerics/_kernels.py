"""Kernels for one GPU of NVIDIA, and when to use them.

Pallas compiles them with Triton, which JAX 0.11 deprecates in favour of Mosaic. Where
Triton is missing, and on all other devices, XLA computes the same.
"""

from collections.abc import Callable
from typing import Any

import jax
from jaxtyping import PyTree


def triton() -> Any:
    """Pallas' Triton backend; `None` if this JAX does not have it."""
    try:
        from jax.experimental.pallas import triton
    except ImportError:
        return None
    return triton


def has_kernels() -> bool:
    """Whether programs run on one GPU only: XLA cannot shard a kernel."""
    one = jax.default_backend() == "gpu" and jax.device_count() == 1
    return one and triton() is not None


def on_cuda(
    kernel: Callable[..., PyTree], plain: Callable[..., PyTree], *arrays: PyTree
) -> PyTree:
    """`kernel(*arrays)` on a GPU of NVIDIA, `plain(*arrays)` elsewhere.

    Derivatives are those of `plain`, since a kernel has none.

    Args:
        kernel: a function of arrays that calls a kernel.
        plain: the same function without kernels.
        arrays: the arguments: arrays, or trees of arrays.
    """

    @jax.custom_jvp
    def either(*arrays: PyTree) -> PyTree:
        return jax.lax.platform_dependent(*arrays, cuda=kernel, default=plain)

    either.defjvp(lambda primals, tangents: jax.jvp(plain, primals, tangents))
    return either(*arrays)
