"""D-Adaptation for AdamW.

Defazio and Mishchenko, Learning-rate-free learning by D-adaptation, 2023,
arXiv:2301.07733
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
    Real,
    Rule,
    ScalarOrSchedule,
    Updates,
)
from ..engine import lift, optimizer
from ..numerics import (
    abs_sq,
    after,
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


@like_optax
class DAdaptAdamWState(NamedTuple):
    """State: three arrays per leaf, and the estimate of the distance."""

    exp_avg: Updates  # m, mean of step g
    exp_avg_sq: Updates  # v, mean of |g|^2
    grad_sum: Updates  # s, slow mean of step g
    estim_lr: Float[Array, ""]  # d, lower bound on the distance to the solution
    numerator_weighted: Float[Array, ""]  # r
    count: Int[Array, ""]  # number of steps taken


def first_estimate(*, estim_lr0: Real) -> Array:
    """The initial `d`."""
    return jnp.asarray(estim_lr0, float)


@gives("step")
def dadapt_size(
    count: Array, estim_lr: Array, *, learning_rate: Real, b1: Real, b2: Real
) -> dict[str, Array]:
    """The size of this step, computed with the old `d`."""
    t = increment(count)
    d = estim_lr
    return {"step": d * learning_rate * jnp.sqrt(debias(b2, t)) / debias(b1, t)}


def dadapt_measure(
    g: Array, exp_avg_sq: Array, grad_sum: Array, *, b: Real, eps: Real, step: Array
) -> dict[str, Array]:
    """`<s, g / (sqrt(v) + eps)>` before the step, and `|s|` after it."""
    v, s = exp_avg_sq, grad_sum
    length = jnp.sum(jnp.abs(ema(s, step * g, b)))
    return {"s_g": inner(s, g / (root(v) + eps)), "length": length}


@gives("next_d")
def dadapt_distance(
    count: Array,
    estim_lr: Array,
    numerator_weighted: Array,
    *,
    b: Real,
    step: Array,
    total: dict[str, Array],
) -> tuple[dict[str, Array], Array, Array, Array]:
    """The new estimate of the distance."""
    d, r = estim_lr, numerator_weighted
    r = ema(r, step * total["s_g"], b)
    d = jnp.maximum(d, quotient(r, (1 - b) * total["length"]))
    return {"next_d": d}, increment(count), d, r


def dadapt_formula(
    g: Array,
    p: Array,
    exp_avg: Array,
    exp_avg_sq: Array,
    grad_sum: Array,
    *,
    b1: Real,
    b2: Real,
    b: Real,
    eps: Real,
    weight_decay: Real,
    step: Array,
    next_d: Array,
) -> tuple[Array, Array, Array, Array]:
    """One step of AdamW with D-adaptation for one array."""
    m, v, s = exp_avg, exp_avg_sq, grad_sum
    m = ema(m, step * g, b1)
    v = ema(v, after(abs_sq(g), next_d), b2)  # the measure reads the old value
    s = ema(s, step * g, b)
    return -m / (root(v) + eps) - weight_decay * step * p, m, v, s


@optimizer
def dadapt_adamw(
    learning_rate: ScalarOrSchedule = 1.0,
    betas: Sequence[Real] = (0.9, 0.999),
    eps: Real = 1e-8,
    estim_lr0: Real = 1e-6,
    weight_decay: Real = 0.0,
    *,
    axis_name: AxisName = None,
    memory_dtype: DTypeLike | None = None,
    keep_count: bool = False,
) -> GradientTransformationExtraArgs:
    """AdamW that estimates its learning rate: the distance `d` to the solution.

        step = d learning_rate sqrt(1 - b2^t) / (1 - b1^t)
        r   <- b r + (1 - b) step sum(s g / (sqrt(v) + eps))      b = sqrt(b2)
        m   <- b1 m + (1 - b1) step g
        v   <- b2 v + (1 - b2) |g|^2
        s   <- b s + (1 - b) step g
        u    = -m / (sqrt(v) + eps) - weight_decay step p
        d   <- max(d, r / ((1 - b) sum(|s|)))

    The sums are over all leaves. `d` never decreases; zero gradients do not change it.

    Args:
        learning_rate: multiplies `d`: leave it at 1, or pass a schedule such as a
            warmup and decay.
        betas: `(b1, b2)`: decay rates of `m` and `v`, each in [0, 1).
        eps: keeps `u` finite where the gradient is zero.
        estim_lr0: the initial `d`, smaller than the distance.
        weight_decay: weight decay coefficient, multiplied by the learning rate.
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
    >>> tx = contrib.dadapt_adamw(estim_lr0=0.1)
    >>> params = jnp.array([1.0, -2.0])
    >>> updates, state = tx.update(params, tx.init(params), params)
    >>> [round(float(u), 3) for u in updates]
    [-0.1, 0.1]
    """
    name = "dadapt_adamw"
    b1, b2 = both(name, betas)
    (eps,) = check.nonnegative(name, eps=eps)
    (weight_decay,) = check.finite(name, weight_decay=weight_decay)
    (estim_lr0,) = check.measurable(name, estim_lr0=estim_lr0)
    return lift(
        Rule(
            name,
            dadapt_formula,
            DAdaptAdamWState,
            memory={
                "exp_avg": wide_moment(),
                "exp_avg_sq": second_moment(),
                "grad_sum": wide_moment().exact,
            },
            shared={
                "count": zero_count,
                "estim_lr": first_estimate,
                "numerator_weighted": scalar(),
            },
            numbers={
                "learning_rate": number_or_schedule(
                    check.finite, name, learning_rate=learning_rate
                ),
                "b1": b1,
                "b2": b2,
                "b": b2**0.5,
                "eps": eps,
                "estim_lr0": estim_lr0,
                "weight_decay": weight_decay,
            },
            per_step=dadapt_distance,
            measure=Measure(
                dadapt_measure, dadapt_size, axes=mesh_axes(name, axis_name)
            ),
        )
    )


def both(name: str, betas: Sequence[Real]) -> list[Real]:
    """`b1` and `b2`, after checking that they are two numbers in [0, 1).

    Args:
        name: name used in error messages.
        betas: a pair of numbers.
    """
    try:
        b1, b2 = betas
    except (TypeError, ValueError):
        raise check.WrongArgument(
            f"{name}: betas is {betas!r}, expected two numbers (b1, b2)."
        ) from None
    return check.fraction(name, **{"betas[0]": b1, "betas[1]": b2})
