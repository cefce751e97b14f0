"""MARS: variance reduction before any optimizer.

Yuan, Liu, Wu, Zhou and Gu, MARS: unleashing the power of variance reduction for
training large models, 2024, arXiv:2411.10438
"""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import jax.numpy as jnp
from jax.typing import DTypeLike
from jaxtyping import Array, Int

from .. import check
from ..core import (
    AnyTransformation,
    as_inner,
    AxisName,
    gives,
    GradientTransformationExtraArgs,
    mesh_axes,
    MeshAxes,
    Param,
    Real,
    Rule,
    ScalarOrSchedule,
    transformation,
    Updates,
)
from ..engine import lift
from ..numerics import (
    first_moment,
    increment,
    norms,
    number_or_schedule,
    Values,
    zero_count,
)
from ._chain import chain


class MarsState(NamedTuple):
    """State of MARS: a step count, and one array per leaf."""

    count: Int[Array, ""]  # the number of steps taken
    g_prev: Updates  # the gradient of the last step, in `g_prev_dtype`


@dataclass(frozen=True)
class Previous:
    """The initial memory: zeros like `p`. A complex array stays complex."""

    dtype: DTypeLike | None  # as chosen by the user
    values: ClassVar[Values] = "signed"

    @property
    def keeps_dtype(self) -> bool:
        return self.dtype is not None

    def __call__(self, p: Param) -> Array:
        is_complex = jnp.issubdtype(p.dtype, jnp.complexfloating)
        return first_moment(None if is_complex else self.dtype)(p)


@gives("s")
def correction(
    count: Int[Array, ""], *, gamma: Real, b1: Real
) -> tuple[dict[str, Array], Array]:
    """The factor of `g - g_prev`: 0 in the first step, which has no `g_prev`."""
    s = gamma * b1 / (1 - b1)
    return {"s": jnp.where(count == 0, 0.0, s)}, increment(count)


def corrected_formula(g: Array, g_prev: Array, *, s: Array) -> tuple[Array, Array]:
    """`c = g + s (g - g_prev)`."""
    return g + s * (g - g_prev), g


def mars_formula(
    g: Array, g_prev: Array, *, s: Array, max_norm: Real, axes: MeshAxes | None
) -> tuple[Array, Array]:
    """The same, clipped to `|c| <= max_norm`."""
    c, g = corrected_formula(g, g_prev, s=s)
    size = norms(c, c.ndim, axes)
    return c / jnp.maximum(1, size / max_norm), g


@transformation
def mars(
    inner: AnyTransformation,
    gamma: ScalarOrSchedule = 0.025,
    b1: Real = 0.95,
    *,
    max_norm: Real | None = 1.0,
    g_prev_dtype: DTypeLike | None = None,
    axis_name: AxisName = None,
) -> GradientTransformationExtraArgs:
    """Apply `inner` to gradients that are corrected by their last change.

        c = g + gamma b1 / (1 - b1) (g - g_prev)
        c = c / max(1, |c| / max_norm)                  for each leaf
        u = the update of `inner` for c

    In the first step `g_prev = g`. Here `g_prev` is the gradient of the last step, at
    other params and on another batch: the cheap form of the paper, which needs one
    gradient per step.

    The optimizers of the paper:

        chain(                                          # MARS-AdamW
            mars(scale_by_adam(0.95, 0.99)),
            add_decayed_weights(0.1),
            scale_by_learning_rate(3e-3),
        )

    For MARS-Lion, use `mars(scale_by_lion(0.95, 0.95))` in its place; for MARS-Muon,
    which is for matrices, `mars(scale_by_polar())`. The paper uses plain AdamW for
    vectors: see `partition`.

    Args:
        inner: any transformation, with a mean of the gradients; it receives the extra
            arguments.
        gamma: the scale of the correction, a number or a schedule; 0 for none.
        b1: decay rate of the mean in `inner`, in (0, 1).
        max_norm: the largest norm of a leaf of `c`; `None` to clip nothing.
        g_prev_dtype: dtype of `g_prev`; by default that of the params. bfloat16 saves
            memory. Complex arrays keep their dtype.
        axis_name: inside `jax.shard_map`, the mesh axes over which the params are
            sharded. Without it, each device clips only its own shard.

    >>> import jax.numpy as jnp, steepest
    >>> tx = steepest.mars(steepest.sgd(1.0), max_norm=None)
    >>> p = jnp.array([0.0])
    >>> u, state = tx.update(jnp.array([1.0]), tx.init(p), p)
    >>> u, state = tx.update(jnp.array([2.0]), state, p)
    >>> round(float(u[0]), 3)
    -2.475
    """
    name = "mars"
    tx = as_inner(name, "inner", inner)
    gamma = number_or_schedule(check.finite, name, gamma=gamma)
    (b1,) = check.inside.must(name, b1=b1)
    check.dtype(name, g_prev_dtype=g_prev_dtype)
    axes = mesh_axes(name, axis_name)
    numbers: dict[str, object] = {"gamma": gamma, "b1": b1}
    if max_norm is not None:
        (max_norm,) = check.positive.must(name, max_norm=max_norm)
        numbers |= {"max_norm": max_norm, "axes": axes}
    rule = Rule(
        name,
        corrected_formula if max_norm is None else mars_formula,
        MarsState,
        memory={"g_prev": Previous(g_prev_dtype)},
        shared={"count": zero_count},
        numbers=numbers,
        per_step=correction,
        kind="elementwise" if max_norm is None else "whole",
    )
    return chain(lift(rule), tx)
