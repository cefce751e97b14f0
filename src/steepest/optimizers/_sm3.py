"""SM3.

Anil, Gupta, Koren and Singer, Memory-efficient adaptive optimization, 2019,
arXiv:1901.11150
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax.typing import DTypeLike
from jaxtyping import Array

from .. import check
from ..combine import chain
from ..core import (
    GradientTransformationExtraArgs,
    like_optax,
    Param,
    Real,
    Rule,
    ScalarOrSchedule,
    transformation,
    Updates,
)
from ..engine import lift, optimizer
from ..numerics import abs_sq, ema, first_moment, root, wide_dtype
from ._descend import descend


@like_optax
class ScaleBySM3State(NamedTuple):
    """State of SM3: per leaf, a vector for each axis and one array."""

    mu: Updates  # a vector per axis: the largest sum of |g|^2 in each slice
    nu: Updates  # mean of the updates


def begin_mu(p: Param) -> list[Array]:
    """A vector of zeros for each axis."""
    zeros = jnp.zeros_like(p, dtype=wide_dtype([p]))
    return [jnp.sum(zeros, axis=others) for others in _others(zeros)]


def sm3_formula(
    g: Array, mu: list[Array], nu: Array, *, b1: Real, b2: Real, eps: Real
) -> tuple[Array, list[Array], Array]:
    """One step of SM3 for one array."""
    square = abs_sq(g)
    slices = zip(mu, _others(g), strict=True)
    # Broadcast each to `g` separately, so that each has the sharding of `g`.
    bounds = [jnp.expand_dims(m, o) + jnp.zeros_like(square) for m, o in slices]
    v = b2 * _least(bounds) + jnp.where(b2 == 1, 1, 1 - b2) * square
    nu = ema(nu, jnp.where(v > 0, g / root(v + eps), 0), b1)
    return nu, [jnp.max(v, axis=o, initial=0) for o in _others(g)], nu


@transformation
def scale_by_sm3(
    b1: Real = 0.9, b2: Real = 1.0, eps: Real = 1e-8
) -> GradientTransformationExtraArgs:
    """AdaGrad that stores one vector per axis instead of a full array of sums.

        v    = b2 min_i mu_i + (1 - b2) |g|^2        with b2 = 1, min_i mu_i + |g|^2
        nu  <- b1 nu + (1 - b1) g / sqrt(v + eps)    0 where v is 0
        mu_i <- max of v over all axes but i
        u    = nu

    Each element belongs to one slice of every axis. Each slice gives an upper bound on
    its sum, and the smallest bound is used. For vectors and scalars this is AdaGrad.

    Inside `jax.shard_map`, each device sees only the rows and columns of its shard.
    Gather the leaves first, or let `jit` handle the mesh axes that shard them.

    Args:
        b1: decay rate of `nu`, in [0, 1).
        b2: decay rate of `mu`, in [0, 1]; 1 for a sum.
        eps: keeps `u` small where the gradient is small.
    """
    (b1,) = check.fraction("scale_by_sm3", b1=b1)
    (b2,) = check.fraction("scale_by_sm3", b2=b2)
    (eps,) = check.nonnegative("scale_by_sm3", eps=eps)

    return lift(
        Rule(
            "scale_by_sm3",
            sm3_formula,
            ScaleBySM3State,
            memory={"mu": begin_mu, "nu": first_moment()},
            numbers={"b1": b1, "b2": b2, "eps": eps},
            kind="whole",
        )
    )


def _others(x: Array) -> list[tuple[int, ...]]:
    """For each axis, the other axes; a scalar has a single slice."""
    axes = range(x.ndim)
    return [tuple(j for j in axes if j != i) for i in axes] or [()]


def _least(bounds: list[Array]) -> Array:
    least, *rest = bounds
    for bound in rest:
        least = jnp.minimum(least, bound)
    return least


@optimizer
def sm3(
    learning_rate: ScalarOrSchedule,
    momentum: Real = 0.9,
    *,
    memory_dtype: DTypeLike | None = None,
    keep_count: bool = False,
) -> GradientTransformationExtraArgs:
    """SM3: `p <- p - learning_rate u`, with `u` from `scale_by_sm3`.

    Inside `jax.shard_map`, each device sees only the rows and columns of its shard.
    Gather the leaves first, or let `jit` handle the mesh axes that shard them.

    Args:
        learning_rate: a number, or a schedule (a function of the step count).
        momentum: decay rate of the mean of the updates, in [0, 1).
        memory_dtype: dtype of the arrays in the state that have no option of their own,
            such as `mu_dtype`, or where it is `None`; by default that of the params, or
            wider. With "int8", "int4" or "float8", averages for large matrices are
            stored in 8 or 4 bits: see `keeping`.
        keep_count: whether to count the steps even if the learning rate is a number, so
            that a schedule can replace it later.

    >>> import jax.numpy as jnp, steepest
    >>> tx = steepest.sm3(learning_rate=0.1, momentum=0.0)
    >>> params = jnp.array([[1.0, -2.0], [3.0, 4.0]])
    >>> updates, state = tx.update(params, tx.init(params))
    >>> [round(float(u), 3) for u in updates.ravel()]
    [-0.1, 0.1, -0.1, -0.1]
    """
    return chain(scale_by_sm3(momentum), descend("sm3", learning_rate))
