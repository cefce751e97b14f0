"""Prodigy.

Mishchenko and Defazio, Prodigy: an expeditiously adaptive parameter-free learner, 2023,
arXiv:2306.06101
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from ..core import (
    AxisName,
    finite,
    flag,
    fraction,
    GradientTransformationExtraArgs,
    like_optax,
    measurable,
    mesh_axes,
    nonnegative,
    Params,
    Real,
    Rule,
    ScalarOrSchedule,
    Step,
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
    quotient,
    root,
    scalar,
    scheduled,
    second_moment,
    wide_moment,
    zero_count,
)
from ._dadapt_adamw import both


@like_optax
class ProdigyState(NamedTuple):
    """What it remembers: four arrays for each leaf, and for the tree its estimate."""

    exp_avg: Updates  # m, mean of d g
    exp_avg_sq: Updates  # v, mean of |d g|^2
    grad_sum: Updates  # s, fading sum of weight g
    params0: Params  # p0, where the params began
    estim_lr: Float[Array, ""]  # d, at most how far the solution is, so far as seen
    numerator_weighted: Float[Array, ""]  # r
    count: Int[Array, ""]  # the steps taken


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
    memory_dtype: Any = None,
    keep_count: bool = False,
) -> GradientTransformationExtraArgs:
    """AdamW that finds its learning rate: the distance `d` to the solution.

        step = d learning_rate sqrt(1 - b2^t) / (1 - b1^t)
        m   <- b1 m + (1 - b1) d g
        v   <- b2 v + (1 - b2) |d g|^2
        s   <- b3 s + d / d0 step g
        r   <- b3 r + d / d0 step sum(g (p0 - p))
        d   <- max(d, estim_lr_coef r / sum(|s|))
        u    = -step (m / (sqrt(v) + d eps) + weight_decay p)

    where `step` is taken with the `d` from before, and `d0` is `estim_lr0`. The sums
    are over all leaves. `d` only grows; without a gradient it stays.

    Args:
        learning_rate: multiplies `d`: a number, or a function of the count, such as a
            warmup and decay. Leave it at 1.
        betas: `(b1, b2)`: how slowly `m` and `v` forget, each in [0, 1).
        beta3: `b3`, how slowly `s` and `r` forget; by default `sqrt(b2)`.
        eps: keeps `u` finite where the gradient is zero.
        estim_lr0: where `d` begins: less than the distance.
        estim_lr_coef: multiplies each new estimate of `d`.
        weight_decay: the pull towards zero; the learning rate multiplies it too.
        safeguard_warmup: whether the learning rate and the bias correction are left out
            of `s`, so that `d` does not grow too much while they are small.
        axis_name: inside `jax.shard_map`, the mesh axes over which the params are
            split. Without it, each device measures its own part.
        memory_dtype, keep_count: as for `keeping`.

    >>> from steepest import contrib
    >>> tx = contrib.prodigy(estim_lr0=0.1)
    >>> params = jnp.array([1.0, -2.0])
    >>> updates, state = tx.update(params, tx.init(params), params)
    >>> [round(float(u), 3) for u in updates]
    [-0.1, 0.1]
    """
    who = "prodigy"
    b1, b2 = both(who, betas)
    (b3,) = (b2**0.5,) if beta3 is None else fraction(who, beta3=beta3)
    (eps,) = nonnegative(who, eps=eps)
    (weight_decay,) = finite(who, weight_decay=weight_decay)
    d0, coef = measurable(who, estim_lr0=estim_lr0, estim_lr_coef=estim_lr_coef)
    flag(who, safeguard_warmup=safeguard_warmup)
    rate = scheduled(finite, who, learning_rate=learning_rate)

    def ahead(step: Step, count: Array, d: Array, r: Array) -> dict[str, Array]:
        t = increment(count)
        size = d * rate(count) * jnp.sqrt(debias(b2, t)) / debias(b1, t)
        weight = d / d0 * (d if safeguard_warmup else size)
        return {"d": d, "step": size, "weight": weight}

    def measure(
        n: Any, g: Array, p: Array, m: Array, v: Array, s: Array, p0: Array
    ) -> dict[str, Array]:
        length = jnp.sum(jnp.abs(b3 * s + n.weight * g))
        return {"g_way": inner(g, p0 - p), "length": length}

    def prepare(
        step: Step, count: Array, d: Array, r: Array
    ) -> tuple[dict[str, Array], Array, Array, Array]:
        r = b3 * r + d / d0 * step.ahead["step"] * step.total["g_way"]
        d = jnp.maximum(d, quotient(coef * r, step.total["length"]))
        return {**step.ahead, "eps": d * eps}, increment(count), d, r

    def leaf(
        n: Any, g: Array, p: Array, m: Array, v: Array, s: Array, p0: Array
    ) -> Any:
        m = ema(m, n.d * g, b1)
        v = ema(v, abs_sq(n.d * g), b2)
        s = b3 * s + n.weight * g
        u = -n.step * (m / (root(v) + n.eps) + weight_decay * p)
        return u, m, v, s, p0

    tx = lift(
        Rule(
            who,
            ProdigyState,
            leaf,
            remember={
                "exp_avg": wide_moment(),
                "exp_avg_sq": second_moment(),
                "grad_sum": wide_moment(),
                "params0": copy_of,
            },
            shared={
                "count": zero_count,
                "estim_lr": scalar(d0),
                "numerator_weighted": scalar(),
            },
            prepare=prepare,
            measure=measure,
            ahead=ahead,
            axes=mesh_axes(who, axis_name),
            needs=("params",),
        )
    )
    return tx
