"""Noise distributions: samples and log-densities."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
from jaxtyping import Array

from .. import check


@runtime_checkable
class Noise(Protocol):
    """The interface of noise for `make_perturbed_fun`."""

    def sample(self, key: Any, sample_shape: Any = (), dtype: Any = float) -> Any:
        """Draw independent samples.

        Args:
            key: a `jax.random` key.
            sample_shape: shape of the result.
            dtype: dtype of the result.
        """
        ...

    def log_prob(self, inputs: Any) -> Any:
        """The log-density, up to a constant.

        Args:
            inputs: points, one for each element.
        """
        ...


class Normal:
    """The normal distribution with mean 0 and variance 1."""

    def sample(
        self, key: Any, sample_shape: int | Sequence[int] = (), dtype: Any = float
    ) -> Array:
        """Draw independent samples.

        Args:
            key: a `jax.random` key.
            sample_shape: shape of the result.
            dtype: dtype of the result.
        """
        return _drawn("Normal", jax.random.normal, key, sample_shape, dtype)

    def log_prob(self, inputs: Any) -> Any:
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
        self, key: Any, sample_shape: int | Sequence[int] = (), dtype: Any = float
    ) -> Array:
        """Draw independent samples.

        Args:
            key: a `jax.random` key.
            sample_shape: shape of the result.
            dtype: dtype of the result.
        """
        return _drawn("Gumbel", jax.random.gumbel, key, sample_shape, dtype)

    def log_prob(self, inputs: Any) -> Any:
        """`-x - exp(-x)`, the log-density.

        Args:
            inputs: points, one for each element.
        """
        (x,) = check.array("Gumbel.log_prob", inputs=inputs)
        return -x - jnp.exp(-x)


def _drawn(
    kind: str, sampler: Callable[..., Array], key: Any, shape: Any, dtype: Any
) -> Array:
    """Check the arguments and draw samples."""
    name = f"{kind}.sample"
    check.key(name, key=key)
    check.dtype(name, dtype=dtype)
    (full,) = check.sizes(
        name, sample_shape=(shape,) if isinstance(shape, int) else shape
    )
    return sampler(key, full, dtype)
