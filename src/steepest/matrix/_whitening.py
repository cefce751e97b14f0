"""What the optimizers of PSGD share: a factor for each side of a matrix.

With `P = Q^T Q` of the rows and of the columns, the covariance of `P_rows g P_columns`
is the identity.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import inf, log, prod
from typing import ClassVar, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from ..core import Param, Real
from ..numerics import ema, exact_gram, exact_product, limited, rms
from ._groups import Words
from ._recipe import folded, NotMatrix
from ._sides import for_each

# `Q` of one side: dense, or its diagonal. `None` for a side with one element.
Factor = Float[Array, "d d"] | Float[Array, " d"] | None
Rows = Float[Array, "m m"] | Float[Array, " m"] | None
Columns = Float[Array, "n n"] | Float[Array, " n"] | None
Factors = tuple[Rows, Columns]

_AT_FIRST, _SCALE = 500, 1000  # steps: see `is_due`


def as_matrix(shape: tuple[int, ...], *, words: Words) -> tuple[int, ...]:
    """The shape of a tensor viewed as a stack of matrices; a vector is one row.

    Args:
        shape: shape of the tensor.
        words: `in` or `out` for each of the last axes.
    """
    return folded(shape, words=words) if len(shape) > 1 else (1, prod(shape))


class NotReal(NamedTuple):
    """A `check_leaf` that refuses complex leaves, and tensors with too few axes."""

    ndim: int
    recipe: str  # the optimizer that passes other leaves to AdamW

    def __call__(self, g: Param) -> str | None:
        return NotMatrix(self.ndim if g.ndim > 1 else 0, self.recipe, real=True)(g)


@dataclass(frozen=True)
class PerFactor:
    """An initial value for each side that has a factor.

    In float32 or wider, whatever `memory_dtype` says: a factor changes by small steps.
    """

    first: Callable[[int, bool], Array]  # (d, whether it is dense) -> the initial value
    keeps_dtype: ClassVar[bool] = True

    def __call__(
        self,
        p: Param,
        *,
        words: Words,
        longest: int,
        max_skew: float = inf,
        reshard: tuple[str, ...] = (),
    ) -> tuple[Array | None, Array | None]:
        *stack, m, n = as_matrix(p.shape, words=words)

        def side(d: int, other: int) -> Array:
            # One row says nothing about the covariance of its elements.
            dense = other > 1 and 1 < d <= min(longest, max_skew * other)
            return for_each(stack, self.first(d, dense), p, reshard)

        # With a factor for a single row, too, the size of `P` would have two owners.
        rows = None if m == 1 else side(m, n)
        return rows, None if n == 1 and m != 1 else side(n, m)


first_factors = PerFactor(lambda d, dense: jnp.eye(d) if dense else jnp.ones(d))
first_bounds = PerFactor(lambda d, dense: jnp.zeros(()))


def mean_of(g: Array, mu: Array, *, beta: Real) -> tuple[Array, Array]:
    """Let `g` enter the mean."""
    g = limited(g)
    return g, ema(mu, g.reshape(mu.shape), beta)


def whitened(x: Array, factors: Factors) -> Array:
    """`P_rows x P_columns`, where `P = Q^T Q`.

    Args:
        x: a matrix.
        factors: `Q` of the rows and of the columns.
    """
    rows, columns = factors
    return _whitened(_whitened(x, rows).T, columns).T


def _whitened(x: Array, q: Factor) -> Array:
    if q is None or q.ndim == 1:
        return times(q, times(q, x))
    # Where `x` is large, `P` is small, and the other way round: in 11 bits, rounding
    # errors would be larger than the product of what is small in `x`.
    few = len(q) <= x.shape[1]  # which of the two is cheaper
    return times(exact_gram(q.T), x) if few else times(q.T, times(q, x))


def times(q: Factor, x: Array) -> Array:
    """`q x`.

    Args:
        q: a matrix, or its diagonal; `None` for the identity.
        x: a matrix.
    """
    if q is None:
        return x
    return q[:, None] * x if q.ndim == 1 else exact_product(q, x)


def excess(x: Array, most: float) -> Float[Array, ""]:
    """What to divide `x` by so that its root mean square is at most `most`; at least 1.

    Args:
        x: an array. Its squares may overflow.
        most: the largest root mean square.
    """
    size = jnp.maximum(1, jnp.max(jnp.abs(x), initial=0.0))
    return jnp.maximum(1, size * (rms(x / size) / most))


def balanced(factors: Factors) -> Factors:
    """The factors, with equal largest elements, and the same product.

    No update depends on it. It keeps both factors far from overflow.

    Args:
        factors: `Q` of the rows and of the columns.
    """
    rows, columns = factors
    if rows is None or columns is None:
        return factors
    largest = lambda q: jnp.max(jnp.abs(q))
    ratio = jnp.sqrt(largest(columns) / largest(rows))
    return rows * ratio, columns / ratio


def is_due(count: Array, frequency: int) -> Array:
    """Whether the factors are fitted in the next step, if not in turns.

    At every step at first, then less and less often, down to every `frequency`-th step.
    The rate is `exp(-(t - 500) / 1000)`, between `1 / frequency` and 1. A step is due
    if the sum of the rates passes a whole number.

    Args:
        count: the number of steps taken.
        frequency: the number of steps between two fits in the end.
    """
    longest = _SCALE * log(frequency)

    def fits(t: Array) -> Array:
        later = jnp.clip(t - _AT_FIRST, 0, longest)
        rare = jnp.maximum(t - _AT_FIRST - longest, 0)
        many = jnp.minimum(t, _AT_FIRST) - _SCALE * jnp.expm1(-later / _SCALE)
        return jnp.floor(many + rare / frequency)

    t = count.astype(float)
    return fits(t + 1) > fits(t)
