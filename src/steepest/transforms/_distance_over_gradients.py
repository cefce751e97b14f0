"""Distance over gradients, leaf by leaf: a step size without a learning rate.

Ivgi, Hinder and Carmon, DoG is SGD's best friend: a parameter-free dynamic step size
schedule, 2023, arXiv:2302.12022 (the layerwise form, L-DoG)
"""

from typing import Any, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array

from ..core import (
    amount,
    AxisName,
    dtype,
    GradientTransformationExtraArgs,
    like_optax,
    mesh_axes,
    Params,
    Real,
    real,
    Rule,
    transformation,
    Updates,
)
from ..engine import lift
from ..numerics import copy_of, length, root, sum_of_squares, wide_dtype


@like_optax
class ScaleByDistanceOverGradientsState(NamedTuple):
    """What it remembers of each leaf."""

    max_dist: Updates  # the largest distance from the beginning so far
    grad_sum_of_squares: Updates  # of all gradients so far, with one axis of size 1
    init_params: Params  # where the leaf began, in `param_dtype`


@transformation
def scale_by_distance_over_gradients(
    reps_rel: Real = 1e-6,
    eps: Real = 1e-8,
    param_dtype: Any = jnp.float32,
    global_scale: Real = 1.0,
    *,
    axis_name: AxisName = None,
) -> GradientTransformationExtraArgs:
    """Step as far as the leaf has come, over the length of all its gradients.

        d <- max(d, |p - init_params|)          at first reps_rel (1 + |p|)
        s <- s + |g|^2
        u  = global_scale d / sqrt(s + eps) g

    Args:
        reps_rel: the first step, relative to the size of the param.
        eps: keeps `u` finite where all gradients were zero.
        param_dtype: the dtype the first params are kept in.
        global_scale: a factor for all step sizes.
        axis_name: inside `jax.shard_map`, the mesh axes over which the params are
            split. Without it, each device measures its own part.

    >>> import steepest
    >>> tx = steepest.scale_by_distance_over_gradients(reps_rel=0.1)
    >>> p = jnp.array([3.0, 4.0])
    >>> u, state = tx.update(p, tx.init(p), p)
    >>> [round(float(x), 3) for x in u]
    [0.36, 0.48]
    """
    who = "scale_by_distance_over_gradients"
    reps_rel, eps = amount(who, reps_rel=reps_rel, eps=eps)
    (global_scale,) = real(who, global_scale=global_scale)
    dtype(who, param_dtype=param_dtype)
    axes = mesh_axes(who, axis_name)

    def first_dist(p: Any) -> Array:
        begin = copy_of(p)
        wide = begin if jnp.iscomplexobj(begin) else begin.astype(wide_dtype([begin]))
        return reps_rel * (1 + length(wide, axes))

    def first_params(p: Any) -> Array:
        begin = copy_of(p)
        return begin if jnp.iscomplexobj(begin) else begin.astype(param_dtype)

    def leaf(n: Any, g: Array, p: Array, d: Array, s: Array, begin: Array) -> Any:
        d = jnp.maximum(d, length(p - begin, axes))
        s = s + sum_of_squares(g, axes)
        return global_scale * d / root(s[0] + eps) * g, d, s, begin

    return lift(
        Rule(
            who,
            ScaleByDistanceOverGradientsState,
            leaf,
            remember={
                "max_dist": first_dist,
                "grad_sum_of_squares": lambda p: jnp.zeros((1,), wide_dtype([p])),
                "init_params": first_params,
            },
            needs=("params",),
            kind="whole",
        )
    )
