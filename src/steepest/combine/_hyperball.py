"""Hyperball: matrices that keep their norm.

Wen, Dang, Lyu, Ma and Liang, Fantastic pretraining optimizers and where to find them
II: Hyperball optimization, 2026, arXiv:2606.16899
"""

import warnings
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.core import Tracer
from jaxtyping import Array, Int, PyTree

from .. import check
from ..core import (
    AnyTransformation,
    as_inner,
    AxisName,
    GradientTransformationExtraArgs,
    mesh_axes,
    MeshAxes,
    Param,
    Real,
    Rule,
    ScalarOrSchedule,
    transformation,
)
from ..engine import lift, widen
from ..numerics import (
    norms,
    number_or_schedule,
    quotient,
    wide_dtype,
    zero_count,
)
from ._chain import chain
from ._parts import names_in, RATE


class HyperballState(NamedTuple):
    """State of Hyperball: a step count, and the norm of each matrix."""

    count: Int[Array, ""]  # the number of steps taken
    radius: PyTree  # R, in float32 or wider


@dataclass(frozen=True)
class Radius:
    """The initial memory: the norms of the matrices of `p`."""

    keeps_dtype: bool = True  # in bfloat16 the norm would change by up to 0.4%

    def __call__(self, p: Param, *, ndim: int, axes: MeshAxes | None) -> Array:
        stack = p.shape[: max(p.ndim - ndim, 0)]
        if isinstance(p, jax.ShapeDtypeStruct) or p.ndim < ndim:
            # A leaf with too few axes is an error in the first step.
            return jnp.zeros(stack, wide_dtype([p]))
        wide = widen(jnp.asarray(p), wide_dtype([p]), integers=True)
        radius = norms(wide, ndim, axes).reshape(stack)
        if p.size and not isinstance(radius, Tracer) and not jnp.all(radius > 0):
            warnings.warn(
                f"hyperball: a leaf of shape {p.shape} has a matrix of zeros, which "
                "stays zero: each step keeps its norm. Start it from random numbers, "
                "or give it another optimizer.",
                stacklevel=2,
            )
        return radius


def moved(
    g: Array, p: Array, radius: Array, rate: Real, ndim: int, axes: MeshAxes | None
) -> Array:
    """The param after the step, less `p`; `radius` has the axes of `p`."""
    size = norms(g, ndim, axes)
    w = p - rate * radius * quotient(g, size)
    w = radius * quotient(w, norms(w, ndim, axes))
    # Without a direction there is no step, and no rounding error.
    return jnp.where(size == 0, jnp.zeros_like(p), w - p)


def from_init_formula(
    g: Array,
    p: Array,
    radius: Array,
    *,
    learning_rate: Real,
    ndim: int,
    axes: MeshAxes | None,
) -> tuple[Array, Array]:
    """`u = R w / |w| - p`, where `w = p - learning_rate R g / |g|` and `R = radius`."""
    r = radius.reshape(*radius.shape, *ndim * (1,))
    return moved(g, p, r, learning_rate, ndim, axes), radius


def from_now_formula(
    g: Array,
    p: Array,
    radius: Array,
    *,
    learning_rate: Real,
    ndim: int,
    axes: MeshAxes | None,
) -> tuple[Array, Array]:
    """The same with `R = |p|`."""
    r = norms(p, ndim, axes)
    return moved(g, p, r, learning_rate, ndim, axes), r.reshape(radius.shape)


_FORMULAS = {"init": from_init_formula, "now": from_now_formula}


class TooFewAxes(NamedTuple):
    """A `check_leaf` that refuses leaves with too few axes."""

    ndim: int

    def __call__(self, g: Param) -> str | None:
        if g.ndim >= self.ndim:
            return None
        return (
            f"has shape {g.shape}, expected at least {self.ndim} axes: only matrices "
            "keep their norm. Use `muon_h` or `adam_h`, which pass other leaves to "
            "AdamW, or `partition`."
        )


@transformation
def hyperball(
    inner: AnyTransformation,
    learning_rate: ScalarOrSchedule,
    *,
    radius: str = "init",
    ndim: int = 2,
    axis_name: AxisName = None,
) -> GradientTransformationExtraArgs:
    """Take a step of relative size `learning_rate`, and keep the norm of each matrix.

        u  = the update of `inner`
        w  = p - learning_rate R u / |u|
        p <- R w / |w|

    where `|.|` is the Frobenius norm of a matrix, and `R` is its initial norm. Only the
    direction of `u` matters. `inner` points along the gradient, without a learning rate
    and without weight decay, as `scale_by_adam()` does. Nothing may follow `hyperball`
    in a chain: the update leads exactly to the new params.

    A learning rate near `sqrt(learning_rate * weight_decay)` of the same optimizer with
    weight decay is a good start.

    *A matrix of zeros stays zero.* `init` warns of it, unless it is traced. Give all
    matrices random numbers of about the same standard deviation, also projections that
    add to a residual stream, which usually start at zero or small: other optimizers let
    them grow, and this one keeps their norms. Vectors are an error: `muon_h` and
    `adam_h` use AdamW for all but the matrices of hidden layers.

    Args:
        inner: any transformation of matrices; it receives the extra arguments.
        learning_rate: the size of a step relative to `R`, a number or a schedule.
        radius: `"init"`, to hold each matrix at the norm it had when `init` was called,
            or `"now"`, at the norm it has before the step. Then params that are loaded
            later keep their own norms, but rounding errors add up.
        ndim: the number of the last axes that form one matrix. The axes before those
            index a stack of matrices, such as layers or experts, and each keeps its own
            norm.
        axis_name: inside `jax.shard_map`, the mesh axes that split the matrices. Do not
            name those that split a stack.

    >>> import jax.numpy as jnp, steepest
    >>> tx = steepest.hyperball(steepest.scale_by_adam(), learning_rate=0.1)
    >>> p = jnp.array([[3.0, 0.0], [0.0, 4.0]])
    >>> u, state = tx.update(jnp.ones((2, 2)), tx.init(p), p)
    >>> round(float(jnp.linalg.norm(p + u)), 3), float(state[1].radius)
    (5.0, 5.0)
    """
    name = "hyperball"
    tx = as_inner(name, "inner", inner)
    if RATE in names_in(tx):
        raise ValueError(
            "hyperball: inner contains a learning rate, so its updates go down the "
            "gradient, expected updates that point along it. Pass a direction, such as "
            "`scale_by_adam()`; the learning rate is an argument of `hyperball`."
        )
    rate = number_or_schedule(check.finite, name, learning_rate=learning_rate)
    check.choice(name, tuple(_FORMULAS), radius=radius)
    (ndim,) = check.period(name, ndim=ndim)
    rule = Rule(
        name,
        _FORMULAS[radius],
        HyperballState,
        memory={"radius": Radius()},
        shared={"count": zero_count},
        numbers={
            "learning_rate": rate,
            "ndim": ndim,
            "axes": mesh_axes(name, axis_name),
        },
        kind="whole",
        check_leaf=TooFewAxes(ndim),
    )
    return chain(tx, lift(rule))
