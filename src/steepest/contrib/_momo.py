"""MoMo and MoMo-Adam: momentum models of the loss.

Schaipp, Ohana, Eickenberg, Defazio and Gower, MoMo: momentum models for adaptive
learning rates, 2023, arXiv:2305.07583
"""

from collections.abc import Callable
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
    loss,
    mesh_axes,
    nonnegative,
    Real,
    Rule,
    ScalarOrSchedule,
    Schedule,
    Step,
    Updates,
)
from ..engine import lift, optimizer
from ..numerics import (
    abs_sq,
    debias,
    ema,
    first_moment,
    increment,
    inner,
    root,
    scalar,
    scheduled,
    second_moment,
    sum_of_squares,
    zero_count,
)


@like_optax
class MomoState(NamedTuple):
    """What MoMo remembers: an array for each leaf, and for the tree a model."""

    exp_avg: Updates  # d, mean of g
    barf: Float[Array, ""]  # mean of the loss
    gamma: Float[Array, ""]  # mean of <g, p>
    lb: Float[Array, ""]  # what the loss cannot go below
    count: Int[Array, ""]  # the steps taken


@like_optax
class MomoAdamState(NamedTuple):
    """What MoMo-Adam remembers: two arrays for each leaf, and for the tree a model."""

    exp_avg: Updates  # d, mean of g
    exp_avg_sq: Updates  # v, mean of |g|^2
    barf: Float[Array, ""]  # mean of the loss
    gamma: Float[Array, ""]  # mean of <g, p>
    lb: Float[Array, ""]  # what the loss cannot go below
    count: Int[Array, ""]  # the steps taken


@optimizer
def momo(
    learning_rate: ScalarOrSchedule = 1.0,
    beta: Real = 0.9,
    lower_bound: Real = 0.0,
    weight_decay: Real = 0.0,
    adapt_lower_bound: bool = False,
    *,
    axis_name: AxisName = None,
    memory_dtype: Any = None,
    keep_count: bool = False,
) -> GradientTransformationExtraArgs:
    """SGD with momentum that goes no farther than to where its model of the loss ends.

        d     <- beta d + (1 - beta) g
        barf  <- beta barf + (1 - beta) value
        gamma <- beta gamma + (1 - beta) <g, p>
        c      = 1 + learning_rate weight_decay
        h      = c (barf - gamma) + <d, p>
        tau    = min(learning_rate, max(h - c lb, 0) / ||d||^2)
        u      = -tau d - learning_rate weight_decay / c p

    In the first step `beta` is 0. `update` needs the loss: `value=...`.

    Args:
        learning_rate: the largest step: a number, or a function of the count.
        beta: how slowly the model forgets, in [0, 1).
        lower_bound: `lb`: what the loss cannot go below.
        weight_decay: the pull towards zero; the learning rate multiplies it too.
        adapt_lower_bound: whether `lb` is raised to what the model promises, and
            halved where the loss falls below it.
        axis_name: inside `jax.shard_map`, the mesh axes over which the params are
            split. Without it, each device measures its own part.
        memory_dtype, keep_count: as for `keeping`.

    >>> import jax, steepest
    >>> from steepest import contrib
    >>> tx, params = contrib.momo(), jnp.array([3.0, -4.0])
    >>> value, grads = jax.value_and_grad(lambda p: jnp.sum(p**2))(params)
    >>> updates, state = tx.update(grads, tx.init(params), params, value=value)
    >>> [round(float(u), 3) for u in updates]
    [-1.5, 2.0]
    """
    (beta,) = fraction("momo", beta=beta)
    fit = _model(
        "momo", learning_rate, lower_bound, weight_decay, adapt=adapt_lower_bound
    )

    def ahead(step: Step, barf: Array, count: Array, *rest: Array) -> dict[str, Array]:
        return {"beta": jnp.where(count == 0, 0.0, jnp.asarray(beta))}

    def measure(n: Any, g: Array, p: Array, d: Array) -> dict[str, Array]:
        d = ema(d, g, n.beta)
        return _measured(g, p, d, sum_of_squares(d))

    def prepare(step: Step, *old: Array) -> tuple[Any, ...]:
        found, *model = fit(step, step.ahead["beta"], jnp.ones(()), *old)
        return {**step.ahead, **found}, *model

    def leaf(n: Any, g: Array, p: Array, d: Array) -> tuple[Array, Array]:
        d = ema(d, g, n.beta)
        return -n.tau * d - n.decay * p, d

    tx = lift(
        Rule(
            "momo",
            MomoState,
            leaf,
            remember={"exp_avg": first_moment()},
            shared=_beginning(lower_bound),
            prepare=prepare,
            measure=measure,
            ahead=ahead,
            axes=mesh_axes("momo", axis_name),
            needs=("params", "value"),
        )
    )
    return tx


@optimizer
def momo_adam(
    learning_rate: ScalarOrSchedule = 1e-2,
    b1: Real = 0.9,
    b2: Real = 0.999,
    eps: Real = 1e-8,
    lower_bound: Real = 0.0,
    weight_decay: Real = 0.0,
    adapt_lower_bound: bool = False,
    *,
    axis_name: AxisName = None,
    memory_dtype: Any = None,
    keep_count: bool = False,
) -> GradientTransformationExtraArgs:
    """Adam that goes no farther than to where its model of the loss ends.

        d     <- b1 d + (1 - b1) g
        v     <- b2 v + (1 - b2) |g|^2
        D      = eps + sqrt(v / (1 - b2^t))
        barf  <- b1 barf + (1 - b1) value
        gamma <- b1 gamma + (1 - b1) <g, p>
        rho    = 1 - b1^t
        c      = 1 + learning_rate weight_decay
        h      = c (barf - gamma) + <d, p>
        tau    = min(learning_rate / rho, max(h - c rho lb, 0) / <d, d / D>)
        u      = -tau d / D - learning_rate weight_decay / c p

    `update` needs the loss: `value=...`.

    Args:
        learning_rate: the largest step: a number, or a function of the count.
        b1: how slowly the model forgets, in [0, 1).
        b2: how slowly `v` forgets, in [0, 1).
        eps: keeps `u` finite where the gradient is zero.
        lower_bound, weight_decay, adapt_lower_bound: as for `momo`.
        axis_name: inside `jax.shard_map`, the mesh axes over which the params are
            split. Without it, each device measures its own part.
        memory_dtype, keep_count: as for `keeping`.
    """
    b1, b2 = fraction("momo_adam", b1=b1, b2=b2)
    (eps,) = nonnegative("momo_adam", eps=eps)
    fit = _model(
        "momo_adam", learning_rate, lower_bound, weight_decay, adapt=adapt_lower_bound
    )

    def moved(n: Any, g: Array, d: Array, v: Array) -> tuple[Array, Array, Array]:
        d = ema(d, g, b1)
        v = ema(v, abs_sq(g), b2)
        return d, v, eps + root(v / n.c2)

    def ahead(step: Step, barf: Array, count: Array, *rest: Array) -> dict[str, Array]:
        t = increment(count)
        return {"rho": debias(b1, t), "c2": debias(b2, t)}

    def measure(n: Any, g: Array, p: Array, d: Array, v: Array) -> dict[str, Array]:
        d, v, D = moved(n, g, d, v)
        return _measured(g, p, d, inner(d, d / D))

    def prepare(step: Step, *old: Array) -> tuple[Any, ...]:
        found, *model = fit(step, b1, step.ahead["rho"], *old)
        return {**step.ahead, **found}, *model

    def leaf(n: Any, g: Array, p: Array, d: Array, v: Array) -> Any:
        d, v, D = moved(n, g, d, v)
        return -n.tau * (d / D) - n.decay * p, d, v

    tx = lift(
        Rule(
            "momo_adam",
            MomoAdamState,
            leaf,
            remember={"exp_avg": first_moment(), "exp_avg_sq": second_moment()},
            shared=_beginning(lower_bound),
            prepare=prepare,
            measure=measure,
            ahead=ahead,
            axes=mesh_axes("momo_adam", axis_name),
            needs=("params", "value"),
        )
    )
    return tx


def _measured(g: Array, p: Array, d: Array, d_sq: Array) -> dict[str, Array]:
    """What the model needs of a leaf."""
    size = jnp.asarray(g.size, float)
    return {"d_p": inner(d, p), "g_p": inner(g, p), "d_sq": d_sq, "size": size}


def _beginning(lower_bound: Real) -> dict[str, Callable[[], Array]]:
    """The model before the first step."""
    return {
        "barf": scalar(),
        "count": zero_count,
        "gamma": scalar(),
        "lb": scalar(lower_bound),
    }


def _model(
    who: str,
    learning_rate: ScalarOrSchedule,
    lower_bound: Real,
    weight_decay: Real,
    *,
    adapt: bool,
) -> Callable[..., tuple[Any, ...]]:
    """How far to go: `(step, beta, rho, *model) -> ({tau, decay}, *model)`."""
    rate: Schedule = scheduled(finite, who, learning_rate=learning_rate)
    (lower_bound,) = finite(who, lower_bound=lower_bound)
    (weight_decay,) = finite(who, weight_decay=weight_decay)
    flag(who, adapt_lower_bound=adapt)

    def fit(
        step: Step,
        beta: Real,
        rho: Array,
        barf: Array,
        count: Array,
        gamma: Array,
        lb: Array,
    ) -> tuple[Any, ...]:
        d_p, g_p, d_sq = (step.total[name] for name in ("d_p", "g_p", "d_sq"))
        (value,) = loss(who, value=step.extra["value"])
        barf = ema(barf, jnp.asarray(value, float), beta)
        gamma = ema(gamma, g_p, beta)
        alpha = rate(count)
        c = 1 + alpha * weight_decay
        h = c * (barf - gamma) + d_p
        if adapt:
            half = jnp.maximum(h / (2 * c * rho), lower_bound)
            lb = jnp.where(h < c * rho * lb, half, lb)
        some = d_sq > 0
        most = alpha / rho
        end = jnp.maximum(h - c * rho * lb, 0) / jnp.where(some, d_sq, 1)
        tau = jnp.where(some, jnp.minimum(most, end), most)
        if adapt:
            promised = (barf + d_p - gamma - tau * d_sq / 2) / rho
            # A zero gradient promises nothing: the bound would be the loss, and the end
            # of the way. Without params there is no way to end, and Optax's bound is as
            # good as any.
            known = some | (step.total["size"] == 0)
            lb = jnp.where(known, jnp.maximum(promised, lower_bound), lb)
        numbers = {"tau": tau, "decay": jnp.asarray(alpha * weight_decay / c, float)}
        return numbers, barf, increment(count), gamma, lb

    return fit
