"""Memory that only adds up, and is added for each leaf, in place.

A matrix formula returns it for memory that it does not read itself. Computed for a
stack of leaves, the sum would be written twice, the second time to the leaves: 1 of 16
ms of a step of SOAP (GPT-2 124M, H200, JAX 0.11.2).
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..core import Real
from ._matmul import Rounded, rounded_gram
from ._moments import ema
from ._symmetric import adds_in_triangle, plus_gram


class WeightedSum(NamedTuple):
    """`keep * old + take * new`, still to be computed."""

    keep: Real
    take: Real
    new: Array

    def after(self, old: Array) -> Array:
        """The new value.

        Args:
            old: the memory before the step.
        """
        return self.keep * old.astype(self.new.dtype) + self.take * self.new

    def part(self, pick: Callable[[Array], Array]) -> "WeightedSum":
        """The sum for some matrices of a stack, for which the numbers are the same.

        Args:
            pick: an array of the stack -> the part of these matrices.
        """
        assert isinstance(self.keep, Array) and isinstance(self.take, Array)
        return WeightedSum(_first(self.keep), _first(self.take), pick(self.new))


class GramSum(NamedTuple):
    """`keep * old + take * x x^T`, still to be computed, in one kernel of a GPU.

    Or `x^T x`, if that has the shape of `old`. The product is added to the tiles of
    `old` where they are, instead of being written and read again.
    """

    keep: Real
    take: Float[Array, "*stack"]
    x: Float[Array, "*stack m n"]  # in half precision

    def after(self, old: Array) -> Array:
        """The new value.

        Args:
            old: the memory before the step.
        """
        add = lambda old, take, x: plus_gram(old, jnp.stack([self.keep, take]), x)
        for _ in self.x.shape[:-2]:
            add = jax.vmap(add)
        return add(old, self.take, self.x)

    def part(self, pick: Callable[[Array], Array]) -> "GramSum":
        """The sum for some matrices of a stack.

        Args:
            pick: an array of the stack -> the part of these matrices.
        """
        assert isinstance(self.keep, Array)
        return GramSum(_first(self.keep), pick(self.take), pick(self.x))


Sum = WeightedSum | GramSum


def _first(numbers: Float[Array, " n"]) -> Float[Array, ""]:
    """One of several equal numbers; any number for a stack without matrices."""
    return numbers[0] if len(numbers) else jnp.ones((), numbers.dtype)


def leafwise_ema(
    mean: Float[Array, "*shape"], x: Float[Array, "*shape"], decay: Real
) -> Array | WeightedSum:
    """`ema(mean, x, decay)`, for memory that the formula reads as well.

    On a GPU, it is added for each leaf. XLA would update all leaves of a stack in one
    kernel, and first copy each of them: 0.7 of 19.5 GB that a step of SOAP moves
    outside of its turns (GPT-2 124M, `python -m benchmarks.counted soap`).

    Args:
        mean: the memory.
        x: what enters it.
        decay: decay rate.
    """
    if jax.default_backend() == "gpu":
        return WeightedSum(decay, 1 - decay, x)
    return ema(mean, x, decay)


def rows_sum(keep: Real, take: Real, x: Rounded) -> Sum:
    """`keep * old + take * x x^T`.

    Args:
        keep: the weight of the memory.
        take: the weight of the product.
        x: a rounded matrix.
    """
    m, n = x.values.shape
    if adds_in_triangle(x.values.dtype, m, n):
        return GramSum(keep, take * x.scale * x.scale, x.values)
    return WeightedSum(keep, take, rounded_gram(x))


def columns_sum(keep: Real, take: Real, x: Rounded) -> Sum:
    """`keep * old + take * x^T x`.

    Args:
        keep: the weight of the memory.
        take: the weight of the product.
        x: a rounded matrix.
    """
    m, n = x.values.shape
    if m != n and adds_in_triangle(x.values.dtype, n, m):
        return GramSum(keep, take * x.scale * x.scale, x.values)
    return rows_sum(keep, take, x.T)
