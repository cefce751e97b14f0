"""Kinds of noise: how to draw it, and how likely it is."""

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
from jaxtyping import Array


@runtime_checkable
class Noise(Protocol):
    """What `make_perturbed_fun` needs of a kind of noise."""

    def sample(self, key: Any, sample_shape: Any = (), dtype: Any = float) -> Any:
        """Independent draws.

        Args:
            key: for the random numbers.
            sample_shape: how many.
            dtype: of what dtype.
        """
        ...

    def log_prob(self, inputs: Any) -> Any:
        """The logarithm of the density, up to a constant.

        Args:
            inputs: where, element by element.
        """
        ...


class Normal:
    """The normal distribution of mean 0 and variance 1."""

    def sample(
        self, key: Any, sample_shape: int | Sequence[int] = (), dtype: Any = float
    ) -> Array:
        """Independent draws.

        Args:
            key: for the random numbers.
            sample_shape: how many.
            dtype: of what dtype.
        """
        return jax.random.normal(key, _shape(sample_shape), dtype)

    def log_prob(self, inputs: Any) -> Any:
        """`-x^2 / 2`: the logarithm of the density, up to a constant.

        Args:
            inputs: where, element by element.
        """
        return -0.5 * inputs**2


class Gumbel:
    """The Gumbel distribution: the largest of many draws.

    With it the perturbed argmax of `x` is the softmax of `x / sigma`.
    """

    def sample(
        self, key: Any, sample_shape: int | Sequence[int] = (), dtype: Any = float
    ) -> Array:
        """Independent draws.

        Args:
            key: for the random numbers.
            sample_shape: how many.
            dtype: of what dtype.
        """
        return jax.random.gumbel(key, _shape(sample_shape), dtype)

    def log_prob(self, inputs: Any) -> Any:
        """`-x - exp(-x)`, the logarithm of the density.

        Args:
            inputs: where, element by element.
        """
        return -inputs - jnp.exp(-inputs)


def _shape(shape: int | Sequence[int]) -> tuple[int, ...]:
    return (shape,) if isinstance(shape, int) else tuple(shape)
