"""Kinds of noise: how to draw it, and how likely it is."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
from jaxtyping import Array

from .. import check


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
        return _drawn("Normal", jax.random.normal, key, sample_shape, dtype)

    def log_prob(self, inputs: Any) -> Any:
        """`-x^2 / 2`: the logarithm of the density, up to a constant.

        Args:
            inputs: where, element by element.
        """
        (x,) = check.array("Normal.log_prob", inputs=inputs)
        return -0.5 * x**2


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
        return _drawn("Gumbel", jax.random.gumbel, key, sample_shape, dtype)

    def log_prob(self, inputs: Any) -> Any:
        """`-x - exp(-x)`, the logarithm of the density.

        Args:
            inputs: where, element by element.
        """
        (x,) = check.array("Gumbel.log_prob", inputs=inputs)
        return -x - jnp.exp(-x)


def _drawn(
    kind: str, sampler: Callable[..., Array], key: Any, shape: Any, dtype: Any
) -> Array:
    """Draws of a kind of noise, or an error that says what is wrong."""
    name = f"{kind}.sample"
    check.key(name, key=key)
    check.dtype(name, dtype=dtype)
    (full,) = check.sizes(
        name, sample_shape=(shape,) if isinstance(shape, int) else shape
    )
    return sampler(key, full, dtype)
