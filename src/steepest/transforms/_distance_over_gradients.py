"""Distance over gradients, leaf by leaf: a step size without a learning rate.

Ivgi, Hinder and Carmon, DoG is SGD's best friend: a parameter-free dynamic step size
schedule, 2023, arXiv:2302.12022 (the layerwise form, L-DoG)
"""

from dataclasses import dataclass
from typing import NamedTuple

import jax.numpy as jnp
from jax.typing import DTypeLike
from jaxtyping import Array

from .. import check
from ..core import (
    AxisName,
    GradientTransformationExtraArgs,
    like_optax,
    mesh_axes,
    MeshAxes,
    Param,
    Params,
    Real,
    Rule,
    transformation,
    Updates,
)
from ..engine import lift
from ..numerics import copy_of, length, root, sum_of_squares, wide_dtype


@like_optax
class ScaleByDistanceOverGradientsState(NamedTuple):
    """The memory of L-DoG: three arrays per leaf."""

    max_dist: Updates  # the largest distance from the initial params so far
    grad_sum_of_squares: Updates  # of all gradients so far, with shape (1,)
    init_params: Params  # the initial params, in `param_dtype`


def first_distance(p: Param, *, reps_rel: Real, axes: MeshAxes | None) -> Array:
    """`reps_rel (1 + |p|)`: the initial value of `max_dist`."""
    begin = copy_of(p)
    wide = begin if jnp.iscomplexobj(begin) else begin.astype(wide_dtype([begin]))
    return reps_rel * (1 + length(wide, axes))


def no_squares(p: Param) -> Array:
    """Zero, with shape (1,)."""
    return jnp.zeros((1,), wide_dtype([p]))


@dataclass(frozen=True)
class first_params:  # lower case: it is used as a function
    """A copy of the param, in `dtype` unless it is complex."""

    dtype: DTypeLike

    def __call__(self, p: Param) -> Array:
        begin = copy_of(p)
        return begin if jnp.iscomplexobj(begin) else begin.astype(self.dtype)


def distance_over_gradients_formula(
    g: Array,
    p: Array,
    max_dist: Array,
    grad_sum_of_squares: Array,
    init_params: Array,
    *,
    eps: Real,
    global_scale: Real,
    axes: MeshAxes | None,
) -> tuple[Array, ...]:
    """One step of L-DoG for one array."""
    d = jnp.maximum(max_dist, length(p - init_params, axes))
    s = grad_sum_of_squares + sum_of_squares(g, axes)
    return global_scale * d / root(s[0] + eps) * g, d, s, init_params


@transformation
def scale_by_distance_over_gradients(
    reps_rel: Real = 1e-6,
    eps: Real = 1e-8,
    param_dtype: DTypeLike = jnp.float32,
    global_scale: Real = 1.0,
    *,
    axis_name: AxisName = None,
) -> GradientTransformationExtraArgs:
    """Scale each leaf by the distance it has moved over the norm of all its gradients.

        d <- max(d, |p - init_params|)          initially reps_rel (1 + |p|)
        s <- s + |g|^2
        u  = global_scale d / sqrt(s + eps) g

    Args:
        reps_rel: the initial distance, relative to `1 + |p|`.
        eps: keeps `u` finite while all gradients are zero.
        param_dtype: the dtype in which the initial params are stored.
        global_scale: factor of all step sizes.
        axis_name: inside `jax.shard_map`, the mesh axes over which the params are
            sharded. Without it, each device uses only its own shard.

    >>> import jax.numpy as jnp, steepest
    >>> tx = steepest.scale_by_distance_over_gradients(reps_rel=0.1)
    >>> p = jnp.array([3.0, 4.0])
    >>> u, state = tx.update(p, tx.init(p), p)
    >>> [round(float(x), 3) for x in u]
    [0.36, 0.48]
    """
    name = "scale_by_distance_over_gradients"
    reps_rel, eps = check.amount(name, reps_rel=reps_rel, eps=eps)
    (global_scale,) = check.real(name, global_scale=global_scale)
    check.dtype(name, param_dtype=param_dtype)
    return lift(
        Rule(
            name,
            distance_over_gradients_formula,
            ScaleByDistanceOverGradientsState,
            memory={
                "max_dist": first_distance,
                "grad_sum_of_squares": no_squares,
                "init_params": first_params(param_dtype),
            },
            numbers={
                "reps_rel": reps_rel,
                "eps": eps,
                "global_scale": global_scale,
                "axes": mesh_axes(name, axis_name),
            },
            kind="whole",
        )
    )
