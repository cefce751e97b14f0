"""MoMo and MoMo-Adam: momentum models of the loss.

Schaipp, Ohana, Eickenberg, Defazio and Gower, MoMo: momentum models for adaptive
learning rates, 2023, arXiv:2305.07583
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax.typing import ArrayLike, DTypeLike
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
    debias,
    ema,
    first_moment,
    increment,
    inner,
    number_or_schedule,
    root,
    scalar,
    second_moment,
    sum_of_squares,
    zero_count,
)


@like_optax
class MomoState(NamedTuple):
    """State of MoMo: one array per leaf, and a model of the loss."""

    exp_avg: Updates  # d, mean of g
    barf: Float[Array, ""]  # mean of the loss
    gamma: Float[Array, ""]  # mean of <g, p>
    lb: Float[Array, ""]  # lower bound on the loss
    count: Int[Array, ""]  # number of steps taken


@like_optax
class MomoAdamState(NamedTuple):
    """State of MoMo-Adam: two arrays per leaf, and a model of the loss."""

    exp_avg: Updates  # d, mean of g
    exp_avg_sq: Updates  # v, mean of |g|^2
    barf: Float[Array, ""]  # mean of the loss
    gamma: Float[Array, ""]  # mean of <g, p>
    lb: Float[Array, ""]  # lower bound on the loss
    count: Int[Array, ""]  # number of steps taken


def first_bound(*, lower_bound: Real) -> Array:
    """The initial `lb`."""
    return jnp.asarray(lower_bound, float)


# The model before the first step.
_MODEL = {
    "barf": scalar(),
    "count": zero_count,
    "gamma": scalar(),
    "lb": first_bound,
}


@gives("tau", "decay")
def fit_model(
    barf: Array,
    count: Array,
    gamma: Array,
    lb: Array,
    *,
    b: Real,
    rho: Real,
    loss_value: Array,
    learning_rate: Real,
    lower_bound: Real,
    weight_decay: Real,
    adapt_lower_bound: bool,
    total: dict[str, Array],
) -> tuple[dict[str, Array], Array, Array, Array, Array]:
    """The step size `tau`, and the model of the loss after this step.

    `b` is the decay rate of the model, and `rho` its bias correction.
    """
    d_p, g_p, d_sq = (total[name] for name in ("d_p", "g_p", "d_sq"))
    # A large sum may overflow. Then `tau * d_sq` would be 0 times infinity.
    d_sq = jnp.minimum(d_sq, jnp.finfo(d_sq.dtype).max)
    barf = ema(barf, loss_value, b)
    gamma = ema(gamma, g_p, b)
    alpha = jnp.asarray(learning_rate)
    c = 1 + alpha * weight_decay
    h = c * (barf - gamma) + d_p
    if adapt_lower_bound:
        half = jnp.maximum(h / (2 * c * rho), lower_bound)
        lb = jnp.where(h < c * rho * lb, half, lb)
    some = d_sq > 0
    most = alpha / rho
    end = jnp.maximum(h - c * rho * lb, 0) / jnp.where(some, d_sq, 1)
    tau = jnp.where(some, jnp.minimum(most, end), most)
    if adapt_lower_bound:
        predicted = (barf + d_p - gamma - tau * d_sq / 2) / rho
        # A zero gradient gives no information: the bound would become the loss, and no
        # further step would be taken. Without params there are no steps; then use
        # Optax's bound.
        known = some | (total["size"] == 0)
        lb = jnp.where(known, jnp.maximum(predicted, lower_bound), lb)
    numbers = {"tau": tau, "decay": jnp.asarray(alpha * weight_decay / c, float)}
    return numbers, barf, increment(count), gamma, lb


def _measured(g: Array, p: Array, d: Array, d_sq: Array) -> dict[str, Array]:
    """The terms of the model from one leaf."""
    size = jnp.asarray(g.size, float)
    return {"d_p": inner(d, p), "g_p": inner(g, p), "d_sq": d_sq, "size": size}


def _checked(
    name: str,
    learning_rate: ScalarOrSchedule,
    lower_bound: Real,
    weight_decay: Real,
    adapt_lower_bound: bool,
) -> dict[str, ScalarOrSchedule]:
    """The options of the model by name, after checking them."""
    rate = number_or_schedule(check.finite, name, learning_rate=learning_rate)
    (lower_bound,) = check.finite(name, lower_bound=lower_bound)
    (weight_decay,) = check.finite(name, weight_decay=weight_decay)
    check.flag(name, adapt_lower_bound=adapt_lower_bound)
    return {
        "learning_rate": rate,
        "lower_bound": lower_bound,
        "weight_decay": weight_decay,
        "adapt_lower_bound": adapt_lower_bound,
    }


def _as_loss(name: str, value: ArrayLike) -> Array:
    (value,) = check.loss(name, value=value)
    return jnp.asarray(value, float)


@gives("b", "loss_value")
def momo_decay(count: Array, *, beta: Real, value: ArrayLike) -> dict[str, Array]:
    """`b = beta`, or 0 at the first step; and the loss."""
    b = jnp.where(count == 0, 0.0, jnp.asarray(beta))
    return {"b": b, "loss_value": _as_loss("momo", value)}


def momo_measure(g: Array, p: Array, exp_avg: Array, *, b: Array) -> dict[str, Array]:
    """The sums that MoMo needs from one array."""
    d = ema(exp_avg, g, b)
    return _measured(g, p, d, sum_of_squares(d))


def momo_formula(
    g: Array, p: Array, exp_avg: Array, *, b: Array, tau: Array, decay: Array
) -> tuple[Array, Array]:
    """One step of MoMo for one array."""
    d = ema(exp_avg, g, b)
    return -tau * d - decay * p, d


@optimizer
def momo(
    learning_rate: ScalarOrSchedule = 1.0,
    beta: Real = 0.9,
    lower_bound: Real = 0.0,
    weight_decay: Real = 0.0,
    adapt_lower_bound: bool = False,
    *,
    axis_name: AxisName = None,
    memory_dtype: DTypeLike | None = None,
    keep_count: bool = False,
) -> GradientTransformationExtraArgs:
    """MoMo: SGD with momentum, with steps bounded by a model of the loss.

        d     <- beta d + (1 - beta) g
        barf  <- beta barf + (1 - beta) value
        gamma <- beta gamma + (1 - beta) <g, p>
        c      = 1 + learning_rate weight_decay
        h      = c (barf - gamma) + <d, p>
        tau    = min(learning_rate, max(h - c lb, 0) / ||d||^2)
        u      = -tau d - learning_rate weight_decay / c p

    At the first step `beta` is 0. `update` needs the loss, as `value=...`.

    Args:
        learning_rate: the largest step size: a number, or a schedule.
        beta: decay rate of the model, in [0, 1).
        lower_bound: `lb`, a lower bound on the loss.
        weight_decay: weight decay coefficient, multiplied by the learning rate.
        adapt_lower_bound: whether to raise `lb` to the loss that the model predicts,
            and to halve it if the loss falls below it.
        axis_name: inside `jax.shard_map`, the mesh axes over which the params are
            sharded. Without it, each device measures only its own shard.
        memory_dtype: dtype of the arrays in the state that have no option of their own,
            such as `mu_dtype`, or where it is `None`; by default that of the params, or
            wider. With "int8", "int4" or "float8", averages for large matrices are
            stored in 8 or 4 bits: see `keeping`.
        keep_count: whether to count the steps even if the learning rate is a number, so
            that a schedule can replace it later.

    >>> import jax.numpy as jnp, jax, steepest
    >>> from steepest import contrib
    >>> tx, params = contrib.momo(), jnp.array([3.0, -4.0])
    >>> value, grads = jax.value_and_grad(lambda p: jnp.sum(p**2))(params)
    >>> updates, state = tx.update(grads, tx.init(params), params, value=value)
    >>> [round(float(u), 3) for u in updates]
    [-1.5, 2.0]
    """
    (beta,) = check.fraction("momo", beta=beta)
    model = _checked(
        "momo", learning_rate, lower_bound, weight_decay, adapt_lower_bound
    )
    return lift(
        Rule(
            "momo",
            momo_formula,
            MomoState,
            memory={"exp_avg": first_moment()},
            shared=_MODEL,
            numbers={**model, "beta": beta, "rho": 1.0},
            per_step=fit_model,
            measure=Measure(
                momo_measure, momo_decay, axes=mesh_axes("momo", axis_name)
            ),
            extra=("value",),
        )
    )


@gives("rho", "c2", "loss_value")
def momo_adam_corrections(
    count: Array, *, b1: Real, b2: Real, value: ArrayLike
) -> dict[str, Array]:
    """`rho = 1 - b1^t` and `c2 = 1 - b2^t`; and the loss."""
    t = increment(count)
    numbers = {"rho": debias(b1, t), "c2": debias(b2, t)}
    return {**numbers, "loss_value": _as_loss("momo_adam", value)}


def _moved(
    g: Array, d: Array, v: Array, b1: Real, b2: Real, eps: Real, c2: Array
) -> tuple[Array, Array, Array]:
    """`d` and `v` after this step, and `D`."""
    d = ema(d, g, b1)
    v = ema(v, abs_sq(g), b2)
    return d, v, eps + root(v / c2)


def momo_adam_measure(
    g: Array,
    p: Array,
    exp_avg: Array,
    exp_avg_sq: Array,
    *,
    b1: Real,
    b2: Real,
    eps: Real,
    c2: Array,
) -> dict[str, Array]:
    """The sums that MoMo-Adam needs from one array."""
    d, _, D = _moved(g, exp_avg, exp_avg_sq, b1, b2, eps, c2)
    return _measured(g, p, d, inner(d, d / D))


def momo_adam_formula(
    g: Array,
    p: Array,
    exp_avg: Array,
    exp_avg_sq: Array,
    *,
    b1: Real,
    b2: Real,
    eps: Real,
    c2: Array,
    tau: Array,
    decay: Array,
) -> tuple[Array, Array, Array]:
    """One step of MoMo-Adam for one array."""
    d, v, D = _moved(g, exp_avg, exp_avg_sq, b1, b2, eps, c2)
    return -tau * (d / D) - decay * p, d, v


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
    memory_dtype: DTypeLike | None = None,
    keep_count: bool = False,
) -> GradientTransformationExtraArgs:
    """MoMo-Adam: Adam with steps bounded by a model of the loss.

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

    `update` needs the loss, as `value=...`.

    Args:
        learning_rate: the largest step size: a number, or a schedule.
        b1: decay rate of the model, in [0, 1).
        b2: decay rate of `v`, in [0, 1).
        eps: keeps `u` finite where the gradient is zero.
        lower_bound: `lb`, a lower bound on the loss.
        weight_decay: weight decay coefficient, multiplied by the learning rate.
        adapt_lower_bound: whether to raise `lb` to the loss that the model predicts,
            and to halve it if the loss falls below it.
        axis_name: inside `jax.shard_map`, the mesh axes over which the params are
            sharded. Without it, each device measures only its own shard.
        memory_dtype: dtype of the arrays in the state that have no option of their own,
            such as `mu_dtype`, or where it is `None`; by default that of the params, or
            wider. With "int8", "int4" or "float8", averages for large matrices are
            stored in 8 or 4 bits: see `keeping`.
        keep_count: whether to count the steps even if the learning rate is a number, so
            that a schedule can replace it later.
    """
    b1, b2 = check.fraction("momo_adam", b1=b1, b2=b2)
    (eps,) = check.nonnegative("momo_adam", eps=eps)
    model = _checked(
        "momo_adam", learning_rate, lower_bound, weight_decay, adapt_lower_bound
    )
    return lift(
        Rule(
            "momo_adam",
            momo_adam_formula,
            MomoAdamState,
            memory={"exp_avg": first_moment(), "exp_avg_sq": second_moment()},
            shared=_MODEL,
            numbers={**model, "b": b1, "b1": b1, "b2": b2, "eps": eps},
            per_step=fit_model,
            measure=Measure(
                momo_adam_measure,
                momo_adam_corrections,
                axes=mesh_axes("momo_adam", axis_name),
            ),
            extra=("value",),
        )
    )
