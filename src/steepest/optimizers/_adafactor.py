"""Adafactor.

Shazeer and Stern, Adafactor: adaptive learning rates with sublinear memory cost, 2018,
arXiv:1804.04235
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike, DTypeLike
from jaxtyping import Array, Int

from .. import check
from ..combine import chain
from ..core import (
    gives,
    GradientTransformationExtraArgs,
    like_optax,
    Param,
    Real,
    Rule,
    ScalarOrSchedule,
    transformation,
    Updates,
)
from ..engine import lift, MaskOrFn, optimizer
from ..numerics import (
    abs_sq,
    ema as average,
    holding,
    increment,
    root,
    wide_dtype,
    zero_count,
)
from ..transforms import (
    add_decayed_weights,
    clip_by_block_rms,
    ema,
    scale,
    scale_by_learning_rate,
    scale_by_param_block_rms,
)


@like_optax
class FactoredState(NamedTuple):
    """State of Adafactor: a step count, and per leaf two factors or one full mean.

    Fields that a leaf does not use have shape (1,).
    """

    count: Int[Array, ""]  # number of steps taken
    v_row: Updates  # mean of |g|^2, over the longest axis too
    v_col: Updates  # mean of |g|^2, over the second longest axis too
    v: Updates  # mean of |g|^2, for each element


def _decay_rate_pow(i: ArrayLike, exponent: Real = 0.8) -> Array:
    """`1 - (i + 1)^-exponent`, and 0 for negative `i`."""
    t = jnp.maximum(jnp.asarray(i).astype(float) + 1, 1)
    return 1 - t**-exponent


def _decay(
    decay_rate_fn: Callable[[Array, Real], ArrayLike],
    count: Array,
    *,
    decay_rate: Real,
    step_offset: Real,
) -> tuple[dict[str, Array], Array]:
    """`b`, the decay rate at this step."""
    exact = isinstance(step_offset, int)
    i = (count if exact else count.astype(float)) - step_offset
    return {"b": jnp.asarray(decay_rate_fn(i, decay_rate), float)}, increment(count)


def factored_axes(
    shape: tuple[int, ...], factored: bool, min_dim_size_to_factor: int
) -> tuple[int, int] | None:
    """The second longest axis and the longest, or `None` if they are too short.

    Args:
        shape: shape of a leaf.
        factored: whether to factor at all.
        min_dim_size_to_factor: smallest size of both axes for factoring.
    """
    if not factored or len(shape) < 2:
        return None
    *_, d1, d0 = (int(axis) for axis in np.argsort(shape, kind="stable"))
    return (d1, d0) if shape[d1] >= min_dim_size_to_factor else None


def begin_row(p: Param, *, factored: bool, min_dim_size_to_factor: int) -> Array:
    """Zeros like a leaf without its longest axis."""
    return _without(1, p, factored_axes(p.shape, factored, min_dim_size_to_factor))


def begin_column(p: Param, *, factored: bool, min_dim_size_to_factor: int) -> Array:
    """Zeros like a leaf without its second longest axis."""
    return _without(0, p, factored_axes(p.shape, factored, min_dim_size_to_factor))


def _without(place: int, p: Param, axes: tuple[int, int] | None) -> Array:
    if axes is None:
        return jnp.zeros((1,), wide_dtype([p]))
    # A sum gives it the same sharding as the mean of the gradients will have.
    return jnp.sum(jnp.zeros_like(p, dtype=wide_dtype([p])), axis=axes[place])


@holding("nonnegative")
def begin_whole(p: Param, *, factored: bool, min_dim_size_to_factor: int) -> Array:
    """Zeros like the leaf if it is not factored, else of shape (1,)."""
    if factored_axes(p.shape, factored, min_dim_size_to_factor) is None:
        return jnp.zeros_like(p, dtype=wide_dtype([p]))
    return jnp.zeros((1,), wide_dtype([p]))


def factored_formula(
    g: Array,
    v_row: Array,
    v_col: Array,
    v: Array,
    *,
    factored: bool,
    min_dim_size_to_factor: int,
    epsilon: Real,
    b: Array,
) -> tuple[Array, Array, Array, Array]:
    """One step of Adafactor for one array, where `b` is the decay rate."""
    s = abs_sq(g) + epsilon
    axes = factored_axes(g.shape, factored, min_dim_size_to_factor)
    if axes is None:
        v = average(v, s, b)
        return g / root(v), v_row, v_col, v
    d1, d0 = axes
    r = average(v_row, jnp.mean(s, d0), b)
    c = average(v_col, jnp.mean(s, d1), b)
    rows, columns = jnp.expand_dims(r, d0), jnp.expand_dims(c, d1)
    # Take each root first: products of these squares overflow or underflow float32.
    per_column = root(columns) / root(jnp.mean(rows, d1, keepdims=True))
    return g / per_column / root(rows), r, c, v


@transformation
def scale_by_factored_rms(
    factored: bool = True,
    decay_rate: Real = 0.8,
    step_offset: Real = 0,
    min_dim_size_to_factor: int = 128,
    epsilon: Real = 1e-30,
    decay_rate_fn: Callable[[Array, Real], ArrayLike] = _decay_rate_pow,
) -> GradientTransformationExtraArgs:
    """Divide by the root mean square, factored into row and column means.

        b  = decay_rate_fn(t - step_offset, decay_rate)
        s  = |g|^2 + epsilon
        r <- b r + (1 - b) mean(s, d0)          d0, d1: the longest axis and the next
        c <- b c + (1 - b) mean(s, d1)
        u  = g / sqrt(r c / mean(r, d1))

    A leaf with fewer than two long axes uses `v <- b v + (1 - b) s`, `u = g / sqrt(v)`.

    Inside `jax.shard_map`, each device sees only the rows and columns of its shard.
    Gather the leaves first, or let `jit` handle the mesh axes that shard them.

    Args:
        factored: whether to factor at all.
        decay_rate: second argument of `decay_rate_fn`; it sets how fast `b` goes to 1.
        step_offset: the step at which `b` restarts, for fine-tuning.
        min_dim_size_to_factor: smallest size of both axes for factoring.
        epsilon: keeps `u` finite where the gradient is zero.
        decay_rate_fn: function of the count from 0 and `decay_rate` that returns `b`;
            by default `1 - t^-decay_rate`, where `t` counts from 1.
    """
    name = "scale_by_factored_rms"
    (decay_rate,) = check.nonnegative(name, decay_rate=decay_rate)
    (epsilon,) = check.nonnegative.must(name, epsilon=epsilon)
    (step_offset,) = check.real(name, step_offset=step_offset)
    check.nonnegative(name, min_dim_size_to_factor=min_dim_size_to_factor)
    check.flag(name, factored=factored)
    check.function(name, decay_rate_fn=decay_rate_fn)
    return lift(
        Rule(
            name,
            factored_formula,
            FactoredState,
            memory={"v_row": begin_row, "v_col": begin_column, "v": begin_whole},
            shared={"count": zero_count},
            numbers={
                "factored": factored,
                "min_dim_size_to_factor": min_dim_size_to_factor,
                "epsilon": epsilon,
                "decay_rate": decay_rate,
                "step_offset": step_offset,
            },
            per_step=gives("b")(partial(_decay, decay_rate_fn)),
            kind="whole",
        )
    )


@optimizer
def adafactor(
    learning_rate: ScalarOrSchedule | None = None,
    min_dim_size_to_factor: int = 128,
    decay_rate: Real = 0.8,
    decay_offset: Real = 0,
    multiply_by_parameter_scale: bool = True,
    clipping_threshold: Real | None = 1.0,
    momentum: Real | None = None,
    dtype_momentum: DTypeLike = jnp.float32,
    weight_decay_rate: ScalarOrSchedule | None = None,
    eps: Real = 1e-30,
    factored: bool = True,
    weight_decay_mask: MaskOrFn | None = None,
    *,
    memory_dtype: DTypeLike | None = None,
    keep_count: bool = False,
) -> GradientTransformationExtraArgs:
    """Adafactor: `p <- p - (learning_rate rms(p) clipped(u) + weight_decay_rate p)`.

    `u` comes from `scale_by_factored_rms`. A matrix needs only two vectors of state.

    Inside `jax.shard_map`, each device sees only the rows and columns of its shard.
    Gather the leaves first, or let `jit` handle the mesh axes that shard them.

    Args:
        learning_rate: a number, a schedule (a function of the step count), or `None`
            for 1.
        min_dim_size_to_factor: smallest size of the two longest axes for factoring.
        decay_rate: `b = 1 - t^-decay_rate` is the decay rate of the mean squares.
        decay_offset: the step at which `b` restarts, for fine-tuning.
        multiply_by_parameter_scale: whether to multiply the steps by `rms(p)`.
        clipping_threshold: the largest `rms(u)`; `None` for no clipping.
        momentum: decay rate of the mean of the steps; `None` for no momentum.
        dtype_momentum: dtype of that mean.
        weight_decay_rate: weight decay coefficient, not multiplied by the learning
            rate; `None` for no decay.
        eps: keeps `u` finite where the gradient is zero.
        factored: whether to factor at all.
        weight_decay_mask: the leaves to decay: a tree of booleans, a function of the
            params that returns one, or a regular expression for their paths; by
            default all.
        memory_dtype: dtype of the arrays in the state that have no option of their own,
            such as `mu_dtype`, or where it is `None`; by default that of the params, or
            wider. With "int8", "int4" or "float8", averages for large matrices are
            stored in 8 or 4 bits: see `keeping`.
        keep_count: whether to count the steps even if the learning rate is a number, so
            that a schedule can replace it later.

    >>> import jax.numpy as jnp, steepest
    >>> tx = steepest.adafactor(learning_rate=0.1)
    >>> params = jnp.array([1.0, -1.0])
    >>> updates, state = tx.update(params, tx.init(params), params)
    >>> [round(float(u), 3) for u in updates]
    [-0.1, 0.1]
    """
    check.flag("adafactor", multiply_by_parameter_scale=multiply_by_parameter_scale)
    check.dtype("adafactor", dtype_momentum=dtype_momentum)
    links = [
        scale_by_factored_rms(
            factored, decay_rate, decay_offset, min_dim_size_to_factor, eps
        )
    ]
    if clipping_threshold is not None:
        links.append(clip_by_block_rms(clipping_threshold))
    if learning_rate is not None:
        links.append(scale_by_learning_rate(learning_rate, flip_sign=False))
    if multiply_by_parameter_scale:
        links.append(scale_by_param_block_rms())
    if momentum is not None:
        links.append(ema(momentum, debias=False, accumulator_dtype=dtype_momentum))
    if weight_decay_rate is not None:
        links.append(add_decayed_weights(weight_decay_rate, weight_decay_mask))
    return chain(*links, scale(-1))
