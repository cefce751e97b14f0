"""Prodigy.

Mishchenko and Defazio, Prodigy: an expeditiously adaptive parameter-free learner, 2023,
arXiv:2306.06101
"""

from collections.abc import Sequence
from typing import NamedTuple

import jax.numpy as jnp
from jax.typing import DTypeLike
from jaxtyping import Array, Float, Int

from .. import check
from ..core import (
    AxisName,
    gives,
    GradientTransformationExtraArgs,
    like_optax,
    Measure,
    mesh_axes,
    Params,
    Real,
    Rule,
    ScalarOrSchedule,
    Updates,
)
from ..engine import lift, optimizer
from ..numerics import (
    abs_sq,
    copy_of,
    debias,
    ema,
    increment,
    inner,
    number_or_schedule,
    quotient,
    root,
    scalar,
    second_moment,
    wide_moment,
    zero_count,
)
from ._dadapt_adamw import both, first_estimate


@like_optax
class ProdigyState(NamedTuple):
    """State: four arrays per leaf, and the estimate of the distance."""

    exp_avg: Updates  # m, mean of d g
    exp_avg_sq: Updates  # v, mean of |d g|^2
    grad_sum: Updates  # s, decaying sum of weight g
    params0: Params  # p0, the initial params
    estim_lr: Float[Array, ""]  # d, lower bound on the distance to the solution
    numerator_weighted: Float[Array, ""]  # r
    count: Int[Array, ""]  # number of steps taken


@gives("d", "step", "weight")
def prodigy_sizes(
    count: Array,
    estim_lr: Array,
    *,
    learning_rate: Real,
    b1: Real,
    b2: Real,
    estim_lr0: Real,
    safeguard_warmup: bool,
) -> dict[str, Array]:
    """The old `d`, and from it the size of this step and the weight of `g`."""
    t = increment(count)
    d = estim_lr
    step = d * learning_rate * jnp.sqrt(debias(b2, t)) / debias(b1, t)
    weight = d / estim_lr0 * (d if safeguard_warmup else step)
    return {"d": d, "step": step, "weight": weight}


def prodigy_measure(
    g: Array, p: Array, grad_sum: Array, params0: Array, *, b3: Real, weight: Array
) -> dict[str, Array]:
    """`<g, p0 - p>`, and `|s|` after the step."""
    length = jnp.sum(jnp.abs(b3 * grad_sum + weight * g))
    return {"g_way": inner(g, params0 - p), "length": length}


@gives("d_eps")
def prodigy_distance(
    count: Array,
    estim_lr: Array,
    numerator_weighted: Array,
    *,
    b3: Real,
    eps: Real,
    estim_lr0: Real,
    estim_lr_coef: Real,
    step: Array,
    total: dict[str, Array],
) -> tuple[dict[str, Array], Array, Array, Array]:
    """The new estimate `d` of the distance, and `d eps`."""
    d, r = estim_lr, numerator_weighted
    r = b3 * r + d / estim_lr0 * step * total["g_way"]
    d = jnp.maximum(d, quotient(estim_lr_coef * r, total["length"]))
    return {"d_eps": d * eps}, increment(count), d, r


def prodigy_formula(
    g: Array,
    p: Array,
    exp_avg: Array,
    exp_avg_sq: Array,
    grad_sum: Array,
    *,
    b1: Real,
    b2: Real,
    b3: Real,
    weight_decay: Real,
    d: Array,
    step: Array,
    weight: Array,
    d_eps: Array,
) -> tuple[Array, Array, Array, Array]:
    """One step of Prodigy for one array."""
    m, v, s = exp_avg, exp_avg_sq, grad_sum
    m = ema(m, d * g, b1)
    v = ema(v, abs_sq(d * g), b2)
    s = b3 * s + weight * g
    return -step * (m / (root(v) + d_eps) + weight_decay * p), m, v, s


@optimizer
def prodigy(
    learning_rate: ScalarOrSchedule = 1.0,
    betas: Sequence[Real] = (0.9, 0.999),
    beta3: Real | None = None,
    eps: Real = 1e-8,
    estim_lr0: Real = 1e-6,
    estim_lr_coef: Real = 1.0,
    weight_decay: Real = 0.0,
    safeguard_warmup: bool = False,
    *,
    axis_name: AxisName = None,
    memory_dtype: DTypeLike | None = None,
    keep_count: bool = False,
) -> GradientTransformationExtraArgs:
    """AdamW that estimates its learning rate: the distance `d` to the solution.

        step = d learning_rate sqrt(1 - b2^t) / (1 - b1^t)
        m   <- b1 m + (1 - b1) d g
        v   <- b2 v + (1 - b2) |d g|^2
        s   <- b3 s + d / d0 step g
        r   <- b3 r + d / d0 step sum(g (p0 - p))
        d   <- max(d, estim_lr_coef r / sum(|s|))
        u    = -step (m / (sqrt(v) + d eps) + weight_decay p)

    where `step` uses the old `d`, and `d0` is `estim_lr0`. The sums are over all
    leaves. `d` never decreases; zero gradients do not change it.

    Args:
        learning_rate: multiplies `d`: leave it at 1, or pass a schedule such as a
            warmup and decay.
        betas: `(b1, b2)`: decay rates of `m` and `v`, each in [0, 1).
        beta3: `b3`, decay rate of `s` and `r`; by default `sqrt(b2)`.
        eps: keeps `u` finite where the gradient is zero.
        estim_lr0: the initial `d`, smaller than the distance.
        estim_lr_coef: multiplies each new estimate of `d`.
        weight_decay: weight decay coefficient, multiplied by the learning rate.
        safeguard_warmup: whether to leave the learning rate and the bias correction out
            of `s`, so that `d` does not grow too much while they are small.
        axis_name: inside `jax.shard_map`, the mesh axes over which the params are
            sharded. Without it, each device measures only its own shard.
        memory_dtype: dtype of the arrays in the state that have no option of their own,
            such as `mu_dtype`, or where it is `None`; by default that of the params, or
            wider. With "int8", "int4" or "float8", averages for large matrices are
            stored in 8 or 4 bits: see `keeping`.
        keep_count: whether to count the steps even if the learning rate is a number, so
            that a schedule can replace it later.

    >>> import jax.numpy as jnp
    >>> from steepest import contrib
    >>> tx = contrib.prodigy(estim_lr0=0.1)
    >>> params = jnp.array([1.0, -2.0])
    >>> updates, state = tx.update(params, tx.init(params), params)
    >>> [round(float(u), 3) for u in updates]
    [-0.1, 0.1]
    """
    name = "prodigy"
    b1, b2 = both(name, betas)
    (b3,) = (b2**0.5,) if beta3 is None else check.fraction(name, beta3=beta3)
    (eps,) = check.nonnegative(name, eps=eps)
    (weight_decay,) = check.finite(name, weight_decay=weight_decay)
    d0, coef = check.measurable(name, estim_lr0=estim_lr0, estim_lr_coef=estim_lr_coef)
    check.flag(name, safeguard_warmup=safeguard_warmup)
    rate = number_or_schedule(check.finite, name, learning_rate=learning_rate)
    return lift(
        Rule(
            name,
            prodigy_formula,
            ProdigyState,
            memory={
                "exp_avg": wide_moment(),
                "exp_avg_sq": second_moment(),
                "grad_sum": wide_moment().exact,
                "params0": copy_of,
            },
            shared={
                "count": zero_count,
                "estim_lr": first_estimate,
                "numerator_weighted": scalar(),
            },
            numbers={
                "learning_rate": rate,
                "b1": b1,
                "b2": b2,
                "b3": b3,
                "eps": eps,
                "estim_lr0": d0,
                "estim_lr_coef": coef,
                "weight_decay": weight_decay,
                "safeguard_warmup": safeguard_warmup,
            },
            per_step=prodigy_distance,
            measure=Measure(
                prodigy_measure, prodigy_sizes, axes=mesh_axes(name, axis_name)
            ),
        )
    )
