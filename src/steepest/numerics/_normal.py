"""The normal distribution with a diagonal covariance."""

import math
from collections.abc import Sequence

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike, DTypeLike
from jaxtyping import Array, Inexact

from .. import check
from ._half import promoted

_NAME = "multi_normal"


class MultiNormal:
    """Independent normal variables, each with its own mean and log-scale.

    log p(x) = - sum (x - loc)^2 / (2 scale^2) + log_scale + log(2 pi) / 2
    """

    def __init__(self, loc: ArrayLike, log_scale: ArrayLike):
        self._loc, self._log_scale = check.array(_NAME, loc=loc, log_scale=log_scale)
        self._shape = _common("loc", self._loc, "log_scale", self._log_scale)

    @property
    def params(self) -> list[Array]:
        """The mean and the logarithm of the scale."""
        return [self._loc, self._log_scale]

    @property
    def log_scale(self) -> Array:
        """The logarithm of the scale."""
        return self._log_scale

    def sample(self, shape: Sequence[int], key: Array) -> Inexact[Array, "..."]:
        """`loc + exp(log_scale) z`, with standard normal `z`.

        Args:
            shape: the leading axes of the result, one sample for each index.
            key: a `jax.random` key.
        """
        check.key(f"{_NAME}.sample", key=key)
        (leading,) = check.sizes(f"{_NAME}.sample", shape=shape)
        full = (*leading, *self._shape)
        dtype = promoted(jnp.zeros(()), self._loc, self._log_scale)
        z = jax.random.normal(key, full, dtype)
        loc, log_scale = self._broadcast(full, dtype)
        return loc + jnp.exp(log_scale) * z

    def log_prob(self, x: ArrayLike) -> Inexact[Array, "..."]:
        """The log-density at `x`, one value for each index of its leading axes.

        Args:
            x: one or more points; the trailing axes are those of the params.
        """
        (x,) = check.array(f"{_NAME}.log_prob", x=x)
        dtype = promoted(x, self._loc, self._log_scale, 1.0)
        wide = promoted(dtype, jnp.float32)
        full = _common("x", x, "the mean", jnp.empty(self._shape))
        loc, log_scale = self._broadcast(full, wide)
        z = (jnp.broadcast_to(x, full).astype(wide) - loc) * jnp.exp(-log_scale)
        logs = -0.5 * z * z - log_scale - 0.5 * math.log(2 * math.pi)
        axes = tuple(range(-len(self._shape), 0))
        return jnp.sum(logs, axes).astype(dtype)

    def _broadcast(
        self, shape: tuple[int, ...], dtype: DTypeLike
    ) -> tuple[Array, Array]:
        loc, log_scale = self.params
        return (
            jnp.broadcast_to(loc.astype(dtype), shape),
            jnp.broadcast_to(log_scale.astype(dtype), shape),
        )


def _common(argument: str, x: Array, other: str, y: Array) -> tuple[int, ...]:
    """The shape to which two arrays broadcast."""
    try:
        return jnp.broadcast_shapes(x.shape, y.shape)
    except ValueError:
        raise check.WrongArgument(
            f"{_NAME}: {argument} has shape {x.shape} and {other} has shape {y.shape}, "
            "expected shapes that broadcast."
        ) from None


def multi_normal(loc: ArrayLike, log_scale: ArrayLike) -> MultiNormal:
    """The normal distribution with mean `loc` and scale `exp(log_scale)`.

    Args:
        loc: the mean.
        log_scale: the logarithm of the scale, of a shape that broadcasts with `loc`.

    >>> import jax.numpy as jnp, jax
    >>> normal = multi_normal(jnp.zeros(2), jnp.zeros(2))
    >>> normal.sample((3,), jax.random.key(0)).shape
    (3, 2)
    >>> round(float(normal.log_prob(jnp.zeros(2))), 4)
    -1.8379
    """
    return MultiNormal(loc, log_scale)
