"""Noise distributions: samples and log-densities."""

from collections.abc import Callable, Sequence
from typing import Protocol, runtime_checkable

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike, DTypeLike
from jaxtyping import Array

from .. import check


@runtime_checkable
class Noise(Protocol):
    """The interface of noise for `make_perturbed_fun`."""

    def sample(
        self, key: Array, sample_shape: tuple[int, ...] = (), dtype: DTypeLike = float
    ) -> Array:
        """Draw independent samples.

        Args:
            key: a `jax.random` key.
            sample_shape: shape of the result.
            dtype: dtype of the result.
        """
        ...

    def log_prob(self, inputs: Array) -> Array:
        """The log-density, up to a constant.

        Args:
            inputs: points, one for each element.
        """
        ...


class Normal:
    """The normal distribution with mean 0 and variance 1."""

    def sample(
        self,
        key: ArrayLike,
        sample_shape: int | Sequence[int] = (),
        dtype: DTypeLike = float,
    ) -> Array:
        """Draw independent samples.

        Args:
            key: a `jax.random` key.
            sample_shape: shape of the result.
            dtype: dtype of the result.
        """
        return _drawn("Normal", jax.random.normal, key, sample_shape, dtype)

    def log_prob(self, inputs: ArrayLike) -> Array:
        """`-x^2 / 2`: the log-density, up to a constant.

        Args:
            inputs: points, one for each element.
        """
        (x,) = check.array("Normal.log_prob", inputs=inputs)
        return -0.5 * x**2


class Gumbel:
    """The standard Gumbel distribution, that of the largest of many samples.

    With it the perturbed argmax of `x` is the softmax of `x / sigma`.
    """

    def sample(
        self,
        key: ArrayLike,
        sample_shape: int | Sequence[int] = (),
        dtype: DTypeLike = float,
    ) -> Array:
        """Draw independent samples.

        Args:
            key: a `jax.random` key.
            sample_shape: shape of the result.
            dtype: dtype of the result.
        """
        return _drawn("Gumbel", jax.random.gumbel, key, sample_shape, dtype)

    def log_prob(self, inputs: ArrayLike) -> Array:
        """`-x - exp(-x)`, the log-density.

        Args:
            inputs: points, one for each element.
        """
        (x,) = check.array("Gumbel.log_prob", inputs=inputs)
        return -x - jnp.exp(-x)


def _drawn(
    kind: str,
    sampler: Callable[..., Array],
    key: ArrayLike,
    shape: int | Sequence[int],
    dtype: DTypeLike,
) -> Array:
    """Check the arguments and draw samples."""
    name = f"{kind}.sample"
    check.key(name, key=key)
    check.dtype(name, dtype=dtype)
    (full,) = check.sizes(
        name, sample_shape=(shape,) if isinstance(shape, int) else shape
    )
    return sampler(key, full, dtype)
