"""Adam's moments for a matrix whose shorter side is projected to `rank` dimensions.

x   = g, transposed if it is tall, so that x is (short, long)
r   = P^T x                             (rank, long)
mu <- b1 mu + (1 - b1) r
nu <- b2 nu + (1 - b2) |r|^2
a   = mu / (sqrt(nu) + eps)

Moments and norms are kept for each matrix, and the stack axes come first.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
from jax.typing import DTypeLike
from jaxtyping import Array, Float, Inexact, Int

from .. import check
from ..core import gives, Param, Real
from ..numerics import (
    abs_sq,
    debias,
    ema,
    first_moment,
    increment,
    norms,
    quotient,
    root,
    second_moment,
    wide_dtype,
    Zeros,
)
from ._groups import Words
from ._recipe import folded


class _Projected(Zeros):
    """The initial value of a projected moment: zeros of shape (*stack, rank, long)."""

    def __call__(self, p: Param, *, rank: int, words: Words) -> Array:
        *stack, m, n = folded(p.shape, words=words)
        shape = (*stack, min(rank, m, n), max(m, n))
        return jnp.zeros(shape, self.dtype or self.usual(p))


def _begin_norm(p: Param, *, words: Words) -> Array:
    """Zero for each matrix."""
    return jnp.zeros(folded(p.shape, words=words)[:-2], wide_dtype([p]))


class Small(NamedTuple):
    """The options of all optimizers that keep projected moments."""

    rank: int
    b1: Real
    b2: Real
    eps: Real
    mu_dtype: DTypeLike | None
    update_proj_gap: Real
    growth: Real

    def checked(self, name: str) -> dict[str, Real]:
        """The numbers for a rule.

        Args:
            name: name used in error messages.
        """
        gap = self.update_proj_gap
        rank, gap = check.period(name, rank=self.rank, update_proj_gap=gap)
        b1, b2 = check.fraction(name, b1=self.b1, b2=self.b2)
        (eps,) = check.nonnegative(name, eps=self.eps)
        (growth,) = check.positive(name, growth=self.growth)
        check.dtype(name, mu_dtype=self.mu_dtype)
        numbers = {"rank": rank, "b1": b1, "b2": b2, "eps": eps}
        return numbers | {"update_proj_gap": gap, "growth": growth}

    @property
    def memory(self) -> dict[str, Callable[..., Array]]:
        """The moments, and the norm of the last step."""
        mu, nu = first_moment(self.mu_dtype), second_moment()
        return {
            "mu": _Projected(mu.usual, mu.dtype, mu.values),
            "norm": _begin_norm,
            "nu": _Projected(nu.usual, nu.dtype, nu.values),
        }


class Scaled(NamedTuple):
    """A projected gradient after Adam."""

    a: Inexact[Array, "rank long"]
    mu: Inexact[Array, "rank long"]
    nu: Float[Array, "rank long"]


def adam_small(r: Array, mu: Array, nu: Array, b1: Real, b2: Real, eps: Real) -> Scaled:
    """Adam without bias correction."""
    mu = ema(mu, r, b1)
    nu = ema(nu, abs_sq(r), b2)
    return Scaled(mu / (root(nu) + eps), mu, nu)


@gives("c", "turn", "due")
def corrections(
    count: Int[Array, ""], *, b1: Real, b2: Real, update_proj_gap: Real
) -> tuple[dict[str, Array], Array]:
    """The bias correction, the number of projections before, whether one is due."""
    t = increment(count)
    c = jnp.sqrt(debias(b2, t)) / debias(b1, t)
    turn = (count // update_proj_gap).astype(jnp.int32)
    return {"c": c, "turn": turn, "due": count % update_proj_gap == 0}, t


def is_wide(g: Array) -> bool:
    """Whether a matrix has at least as many columns as rows."""
    return g.shape[0] <= g.shape[1]


def with_limited_growth(
    u: Array, norm: Array, growth: Real, first: Real = jnp.inf
) -> tuple[Array, Array]:
    """`u`, with a norm of at most `growth norm`, and its norm.

    After a norm of zero, from which it could not grow, the limit is `first`.

    Args:
        u: a matrix.
        norm: that of the step before, or 0 in the first step.
        growth: the largest quotient of both.
        first: the largest norm after one of zero.
    """
    size = norms(u, 2).reshape(())
    most = jnp.minimum(size, jnp.where(norm > 0, growth * norm, first))
    return u * quotient(most, size), most
