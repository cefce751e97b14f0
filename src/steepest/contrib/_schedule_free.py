"""Schedule-Free: average the iterates instead of decaying the learning rate.

Defazio et al., The road less scheduled, 2024, arXiv:2405.15682
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike, DTypeLike
from jaxtyping import Array, Int

from .. import check
from ..combine import chain
from ..core import (
    AnyTransformation,
    At,
    gives,
    GradientTransformationExtraArgs,
    like_optax,
    OptState,
    Param,
    Params,
    Real,
    Rule,
    ScalarOrSchedule,
    transformation,
)
from ..engine import (
    lift,
    optimizer,
    plan_of,
    restore,
    sequence,
    update_dtype,
    widen,
)
from ..numerics import (
    copy_of,
    increment,
    number_or_schedule,
    scalar,
    wide_dtype,
    zero_count,
)
from ..optimizers import scale_by_rms, sgd
from ..schedules import constant_schedule, linear_schedule
from ..transforms import add_decayed_weights, scale_by_learning_rate
from ..tree import first_difference, leaf_paths

_ADVICE = "Pass the params that were trained with this state."


@like_optax
class ScheduleFreeState(NamedTuple):
    """State of Schedule-Free: the averaging weights, and the base optimizer's state."""

    b1: Array
    weight_sum: Array  # the sum of the weights
    step_count: Int[Array, ""]  # t, from 1
    max_lr: Array  # the largest learning rate so far
    base_optimizer_state: OptState
    z: Params  # the iterate of the base optimizer


class _Averages(NamedTuple):
    """The state without that of the base optimizer."""

    b1: Array
    weight_sum: Array
    step_count: Int[Array, ""]
    max_lr: Array
    z: Params


@gives("c")
def averaging_weight(
    max_lr: Array,
    step_count: Array,
    weight_sum: Array,
    *,
    rate: Real,
    weight_lr_power: Real,
) -> tuple[dict[str, Array], Array, Array, Array]:
    """`c`, the weight of the new `z` in the average. `rate` is the learning rate."""
    max_lr = jnp.maximum(max_lr, jnp.asarray(rate))
    weight = max_lr**weight_lr_power
    weight_sum = weight_sum + weight
    # There is nothing to average until the learning rate is above zero.
    some = (weight_sum != 0) & ~jnp.isinf(weight_sum)
    c = jnp.where(some, weight / jnp.where(some, weight_sum, 1), 0)
    return {"c": c}, max_lr, increment(step_count), weight_sum


def averaging_formula(
    g: Array, p: Array, z: Array, *, b1: Real, c: Array
) -> tuple[Array, Array]:
    """The update of `y`, the params `p`; `g` is the update of the base optimizer."""
    # Use the new `z`: otherwise XLA copies the old one before overwriting it.
    z = z + g
    return c * (z - p) + (1 - b1) * (1 - c) * g, z


@transformation
def schedule_free(
    base_optimizer: AnyTransformation,
    learning_rate: ScalarOrSchedule,
    b1: Real = 0.9,
    weight_lr_power: Real = 2.0,
    state_dtype: DTypeLike | None = None,
) -> GradientTransformationExtraArgs:
    """Average the iterates of `base_optimizer`, and train at a point in between.

        z <- z + base(gradient at y)
        x <- (1 - c) x + c z                c = w / (sum of all w so far)
        y  = (1 - b1) z + b1 x              w = (largest learning rate)^weight_lr_power

    The params are `y`. Evaluate at `x`, which `schedule_free_eval_params` returns. `x`
    is not stored: with `u` from the base optimizer, the update of `y` is

        c (z - y) + (1 - b1) (1 - c) u              with the new z

    Args:
        base_optimizer: any transformation without momentum; `b1` replaces momentum.
        learning_rate: that of `base_optimizer`: a number, or a schedule, whose count
            starts at 1. It only affects the weights of the average.
        b1: weight of the average in `y`, in [0, 1]; 0 for no averaging.
        weight_lr_power: power of the learning rate in the weights; larger values give
            warm-up steps less weight.
        state_dtype: dtype of `z`; by default that of the params.

    >>> import jax.numpy as jnp, steepest
    >>> tx = steepest.contrib.schedule_free(steepest.sgd(0.1), learning_rate=0.1)
    >>> params = jnp.array([1.0])
    >>> updates, state = tx.update(jnp.array([1.0]), tx.init(params), params)
    >>> round(float(updates[0]), 3), round(float(state.z[0]), 3)
    (-0.1, 0.9)
    """
    name = "schedule_free"
    base = plan_of(name, "base_optimizer", base_optimizer)
    (b1,) = check.fraction(name, b1=b1)
    (power,) = check.finite(name, weight_lr_power=weight_lr_power)
    check.dtype(name, state_dtype=state_dtype)
    rate = number_or_schedule(check.finite, name, learning_rate=learning_rate)

    averages = lift(
        Rule(
            name,
            averaging_formula,
            _Averages,
            memory={"z": partial(_first_z, dtype=state_dtype)},
            shared={
                "b1": _kept_b1,
                "max_lr": scalar(0.0),
                "step_count": _first_count,
                "weight_sum": scalar(0.0),
            },
            # Not `learning_rate`: `read` would show it a second time.
            numbers={
                "b1": b1,
                "weight_lr_power": power,
                "rate": At.of("step_count", rate),
            },
            per_step=averaging_weight,
        )
    )

    def apart(state: OptState) -> list[OptState]:
        state = check.state_of(name, ScheduleFreeState, state)
        return [state.base_optimizer_state, state]

    def together(states: list[OptState]) -> ScheduleFreeState:
        inner, mine = states
        return ScheduleFreeState(base_optimizer_state=inner, **mine._asdict())

    return sequence([base, plan_of(name, "averages", averages)], apart, together).pair


def schedule_free_eval_params(state: OptState, params: Params) -> Params:
    """The average `x` for evaluation: `(y - (1 - b1) z) / b1`.

    Args:
        state: the state of `schedule_free`, or of a chain, mask, partition or
            `MultiSteps` that contains it.
        params: `y`, the params in training. Leaves that are not under a
            `schedule_free` are returned unchanged, as are all leaves if `b1 = 0`.
    """
    name = "schedule_free_eval_params"
    inside = jax.tree.leaves(state, is_leaf=_is_schedule_free)
    parts = [part for part in inside if _is_schedule_free(part)]
    if not parts:
        raise TypeError(
            f"{name}: the state is a {type(state).__name__} without a "
            "ScheduleFreeState. Pass the state of `schedule_free`."
        )
    leaves, treedef = jax.tree.flatten(params, is_leaf=lambda x: x is None)
    averaged = list(leaves)
    for part in parts:
        try:
            zs = treedef.flatten_up_to(part.z)
        except (KeyError, TypeError, ValueError):
            difference = first_difference(params, part.z, ("params", "state's `z`"))
            raise ValueError(f"{name}: {difference}. {_ADVICE}") from None
        for k, z in enumerate(zs):
            if not hasattr(z, "dtype") or leaves[k] is None:
                continue
            if averaged[k] is not leaves[k]:
                raise ValueError(
                    f"{name}: the state holds two averages of leaf "
                    f"{leaf_paths(params)[k]}, expected one. Pass the state of one "
                    "`schedule_free`."
                )
            y = jnp.asarray(leaves[k])
            if y.shape != z.shape:
                raise ValueError(
                    f"{name}: leaf {leaf_paths(params)[k]} has shape {y.shape} in the "
                    f"params and {z.shape} in the state's `z`. {_ADVICE}"
                )
            averaged[k] = _average(part.b1, y, z)
    return treedef.unflatten(averaged)


@optimizer
def schedule_free_adamw(
    learning_rate: ScalarOrSchedule = 0.0025,
    warmup_steps: int | None = None,
    b1: Real = 0.9,
    b2: Real = 0.999,
    eps: Real = 1e-8,
    weight_decay: ScalarOrSchedule = 0.0,
    weight_lr_power: Real = 2.0,
    state_dtype: DTypeLike | None = None,
    *,
    memory_dtype: DTypeLike | None = None,
    keep_count: bool = False,
) -> GradientTransformationExtraArgs:
    """Schedule-Free AdamW: `schedule_free` of RMSProp with weight decay.

    Args:
        learning_rate: a number, or a schedule (a function of the step count).
        warmup_steps: the number of steps in which the learning rate rises from zero; by
            default there is no warm-up.
        b1: weight of the average in the params in training, in [0, 1]; it replaces
            momentum.
        b2: decay rate of the mean square of the gradients, in [0, 1).
        eps: keeps a step finite where the gradient is zero.
        weight_decay: weight decay coefficient, applied at the params in training.
        weight_lr_power: power of the learning rate in the weights of the average;
            larger values give warm-up steps less weight.
        state_dtype: dtype of `z`, the iterate of the base optimizer; by default that of
            the params.
        memory_dtype: dtype of the arrays in the state that have no option of their own,
            such as `mu_dtype`, or where it is `None`; by default that of the params, or
            wider. With "int8", "int4" or "float8", averages for large matrices are
            stored in 8 or 4 bits: see `keeping`.
        keep_count: whether to count the steps even if the learning rate is a number, so
            that a schedule can replace it later.
    """
    name = "schedule_free_adamw"
    rate = _warmed_up(name, learning_rate, warmup_steps)
    (b2,) = check.fraction(name, b2=b2)
    (eps,) = check.nonnegative(name, eps=eps)
    base = chain(
        scale_by_rms(b2, eps, eps_in_sqrt=False, bias_correction=True),
        add_decayed_weights(weight_decay),
        scale_by_learning_rate(rate),
    )
    return schedule_free(base, rate, b1, weight_lr_power, state_dtype)


@optimizer
def schedule_free_sgd(
    learning_rate: ScalarOrSchedule = 1.0,
    warmup_steps: int | None = None,
    b1: Real = 0.9,
    weight_decay: ScalarOrSchedule | None = None,
    weight_lr_power: Real = 2.0,
    state_dtype: DTypeLike | None = None,
    *,
    memory_dtype: DTypeLike | None = None,
    keep_count: bool = False,
) -> GradientTransformationExtraArgs:
    """Schedule-Free gradient descent: `schedule_free` of `sgd`.

    Args:
        learning_rate: a number, or a schedule (a function of the step count).
        warmup_steps: the number of steps in which the learning rate rises from zero; by
            default there is no warm-up.
        b1: weight of the average in the params in training, in [0, 1]; it replaces
            momentum.
        weight_decay: weight decay coefficient, applied at the params in training;
            `None` for no decay.
        weight_lr_power: power of the learning rate in the weights of the average;
            larger values give warm-up steps less weight.
        state_dtype: dtype of `z`, the iterate of the base optimizer; by default that of
            the params.
        memory_dtype: dtype of the arrays in the state that have no option of their own,
            such as `mu_dtype`, or where it is `None`; by default that of the params, or
            wider. With "int8", "int4" or "float8", averages for large matrices are
            stored in 8 or 4 bits: see `keeping`.
        keep_count: whether to count the steps even if the learning rate is a number, so
            that a schedule can replace it later.
    """
    rate = _warmed_up("schedule_free_sgd", learning_rate, warmup_steps)
    base = sgd(rate)
    if weight_decay is not None:
        base = chain(add_decayed_weights(weight_decay), base)
    return schedule_free(base, rate, b1, weight_lr_power, state_dtype)


def _warmed_up(
    name: str, learning_rate: ScalarOrSchedule, warmup_steps: int | None
) -> ScalarOrSchedule:
    """The learning rate, with a linear warm-up from zero."""
    if not callable(learning_rate):
        check.finite(name, learning_rate=learning_rate)
    if warmup_steps is None:
        return learning_rate
    (steps,) = check.whole(name, warmup_steps=warmup_steps)
    if callable(learning_rate):
        raise TypeError(
            f"{name}: learning_rate is a schedule and warmup_steps is {steps}, "
            "expected only one of them. Put the warm-up into the schedule."
        )
    if steps < 1:
        return constant_schedule(learning_rate)
    return linear_schedule(0.0, learning_rate, steps)


def _first_z(p: Param, *, dtype: DTypeLike | None) -> Array:
    """The initial `z`: the params."""
    return copy_of(p).astype(dtype or p.dtype)


def _kept_b1(*, b1: Real) -> Array:
    """`b1` in the state, for `schedule_free_eval_params`."""
    return jnp.asarray(b1, float)


def _first_count() -> Array:
    """The initial count: 1."""
    return increment(zero_count())


def _average(b1: ArrayLike, y: Array, z: Array) -> Array:
    """`x`, in the wider dtype of `y` and `z`."""
    dtype = update_dtype(y, z)
    wide = wide_dtype([y, z])
    b1, y, z = check.number(b1), widen(y, wide), widen(z, wide)
    some = b1 != 0
    return restore(
        jnp.where(some, (y - (1 - b1) * z) / jnp.where(some, b1, 1), y), dtype
    )


def _is_schedule_free(x: object) -> bool:
    return hasattr(x, "b1") and hasattr(x, "z")
