"""D-Adaptation for AdamW.

Defazio and Mishchenko, Learning-rate-free learning by D-adaptation, 2023,
arXiv:2301.07733
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from ..core import (
    AxisName,
    finite,
    fraction,
    GradientTransformationExtraArgs,
    like_optax,
    measurable,
    mesh_axes,
    nonnegative,
    Real,
    Rule,
    ScalarOrSchedule,
    Step,
    Updates,
    WrongArgument,
)
from ..engine import lift, optimizer
from ..numerics import (
    abs_sq,
    after,
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


@like_optax
class DAdaptAdamWState(NamedTuple):
    """What it remembers: three arrays for each leaf, and for the tree its estimate."""

    exp_avg: Updates  # m, mean of step g
    exp_avg_sq: Updates  # v, mean of |g|^2
    grad_sum: Updates  # s, slow mean of step g
    estim_lr: Float[Array, ""]  # d, at most how far the solution is, so far as seen
    numerator_weighted: Float[Array, ""]  # r
    count: Int[Array, ""]  # the steps taken


@optimizer
def dadapt_adamw(
    learning_rate: ScalarOrSchedule = 1.0,
    betas: Sequence[Real] = (0.9, 0.999),
    eps: Real = 1e-8,
    estim_lr0: Real = 1e-6,
    weight_decay: Real = 0.0,
    *,
    axis_name: AxisName = None,
    memory_dtype: Any = None,
    keep_count: bool = False,
) -> GradientTransformationExtraArgs:
    """AdamW that finds its learning rate: the distance `d` to the solution.

        step = d learning_rate sqrt(1 - b2^t) / (1 - b1^t)
        r   <- b r + (1 - b) step sum(s g / (sqrt(v) + eps))      b = sqrt(b2)
        m   <- b1 m + (1 - b1) step g
        v   <- b2 v + (1 - b2) |g|^2
        s   <- b s + (1 - b) step g
        u    = -m / (sqrt(v) + eps) - weight_decay step p
        d   <- max(d, r / ((1 - b) sum(|s|)))

    The sums are over all leaves. `d` only grows; without a gradient it stays.

    Args:
        learning_rate: multiplies `d`: a number, or a function of the count, such as a
            warmup and decay. Leave it at 1.
        betas: `(b1, b2)`: how slowly `m` and `v` forget, each in [0, 1).
        eps: keeps `u` finite where the gradient is zero.
        estim_lr0: where `d` begins: less than the distance.
        weight_decay: the pull towards zero; the learning rate multiplies it too.
        axis_name: inside `jax.shard_map`, the mesh axes over which the params are
            split. Without it, each device measures its own part.
        memory_dtype, keep_count: as for `keeping`.

    >>> from steepest import contrib
    >>> tx = contrib.dadapt_adamw(estim_lr0=0.1)
    >>> params = jnp.array([1.0, -2.0])
    >>> updates, state = tx.update(params, tx.init(params), params)
    >>> [round(float(u), 3) for u in updates]
    [-0.1, 0.1]
    """
    who = "dadapt_adamw"
    b1, b2 = both(who, betas)
    (eps,) = nonnegative(who, eps=eps)
    (weight_decay,) = finite(who, weight_decay=weight_decay)
    (estim_lr0,) = measurable(who, estim_lr0=estim_lr0)
    rate = scheduled(finite, who, learning_rate=learning_rate)
    b = b2**0.5

    def ahead(step: Step, count: Array, d: Array, r: Array) -> dict[str, Array]:
        t = increment(count)
        return {"step": d * rate(count) * jnp.sqrt(debias(b2, t)) / debias(b1, t)}

    def measure(
        n: Any, g: Array, p: Array, m: Array, v: Array, s: Array
    ) -> dict[str, Array]:
        length = jnp.sum(jnp.abs(ema(s, n.step * g, b)))
        return {"s_g": inner(s, g / (root(v) + eps)), "length": length}

    def prepare(
        step: Step, count: Array, d: Array, r: Array
    ) -> tuple[dict[str, Array], Array, Array, Array]:
        r = ema(r, step.ahead["step"] * step.total["s_g"], b)
        d = jnp.maximum(d, quotient(r, (1 - b) * step.total["length"]))
        return {**step.ahead, "next_d": d}, increment(count), d, r

    def leaf(n: Any, g: Array, p: Array, m: Array, v: Array, s: Array) -> Any:
        m = ema(m, n.step * g, b1)
        v = ema(v, after(abs_sq(g), n.next_d), b2)  # the old one is measured
        s = ema(s, n.step * g, b)
        return -m / (root(v) + eps) - weight_decay * n.step * p, m, v, s

    tx = lift(
        Rule(
            who,
            DAdaptAdamWState,
            leaf,
            remember={
                "exp_avg": wide_moment(),
                "exp_avg_sq": second_moment(),
                "grad_sum": wide_moment(),
            },
            shared={
                "count": zero_count,
                "estim_lr": scalar(estim_lr0),
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


def both(who: str, betas: Any) -> list[Any]:
    """`b1` and `b2`, if there are two numbers in [0, 1).

    Args:
        who: who speaks in an error.
        betas: what should be a pair.
    """
    try:
        b1, b2 = betas
    except (TypeError, ValueError):
        raise WrongArgument(
            f"{who}: betas is {betas!r}, and two numbers, (b1, b2), are wanted."
        ) from None
    return fraction(who, **{"betas[0]": b1, "betas[1]": b2})
