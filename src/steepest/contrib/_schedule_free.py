"""Schedule-Free: averaging instead of a falling learning rate.

Defazio et al., The road less scheduled, 2024, arXiv:2405.15682
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int

from ..combine import chain
from ..core import (
    AnyTransformation,
    dtype,
    finite,
    fraction,
    GradientTransformationExtraArgs,
    like_optax,
    nonnegative,
    number,
    OptState,
    Params,
    Real,
    Rule,
    ScalarOrSchedule,
    share,
    state_of,
    Step,
    transformation,
    whole,
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
from ..numerics import copy_of, increment, scalar, scheduled, wide_dtype, zero_count
from ..optimizers import scale_by_rms, sgd
from ..schedules import constant_schedule, linear_schedule
from ..transforms import add_decayed_weights, scale_by_learning_rate
from ..tree import first_difference, leaf_paths

_ADVICE = "Pass the params that were trained with this state."


@like_optax
class ScheduleFreeState(NamedTuple):
    """What is averaged how, and the state of the optimizer inside."""

    b1: Array
    weight_sum: Array  # the sum of the weights
    step_count: Int[Array, ""]  # t, from 1
    max_lr: Array  # the largest learning rate so far
    base_optimizer_state: OptState
    z: Params  # where the optimizer inside stands


class _Averages(NamedTuple):
    """The part that is not the optimizer's."""

    b1: Array
    weight_sum: Array
    step_count: Int[Array, ""]
    max_lr: Array
    z: Params


@transformation
def schedule_free(
    base_optimizer: AnyTransformation,
    learning_rate: ScalarOrSchedule,
    b1: Real = 0.9,
    weight_lr_power: Real = 2.0,
    state_dtype: Any = None,
) -> GradientTransformationExtraArgs:
    """Let `base_optimizer` run, average where it was, and train between the two.

        z <- z + base(gradient at y)
        x <- (1 - c) x + c z                c = w / (sum of all w until now)
        y  = (1 - b1) z + b1 x              w = (largest learning rate)^weight_lr_power

    The params are `y`. Evaluate at `x`, which `schedule_free_eval_params` finds. `x` is
    not kept: with `u` from the optimizer, the update of `y` is

        c (z - y) + (1 - b1) (1 - c) u              with the new z

    Args:
        base_optimizer: any transformation, without momentum, for `b1` replaces it.
        learning_rate: that of `base_optimizer`; a number, or a function of the count,
            which begins at 1. Only the weights depend on it.
        b1: how near `y` is to the average, in [0, 1]; 0 for none.
        weight_lr_power: how little the steps of a warm-up weigh.
        state_dtype: the dtype `z` is kept in; by default that of the params.

    >>> import steepest
    >>> tx = steepest.contrib.schedule_free(steepest.sgd(0.1), learning_rate=0.1)
    >>> params = jnp.array([1.0])
    >>> updates, state = tx.update(jnp.array([1.0]), tx.init(params), params)
    >>> round(float(updates[0]), 3), round(float(state.z[0]), 3)
    (-0.1, 0.9)
    """
    who = "schedule_free"
    base = plan_of(who, "base_optimizer", base_optimizer)
    (b1,) = share(who, b1=b1)
    (power,) = finite(who, weight_lr_power=weight_lr_power)
    dtype(who, state_dtype=state_dtype)
    rate = scheduled(finite, who, learning_rate=learning_rate)

    def prepare(
        step: Step, kept_b1: Array, max_lr: Array, t: Array, weight_sum: Array
    ) -> tuple[Any, ...]:
        max_lr = jnp.maximum(max_lr, rate(t))
        weight = max_lr**power
        weight_sum = weight_sum + weight
        # Until the learning rate rises above zero there is nothing to average.
        some = (weight_sum != 0) & ~jnp.isinf(weight_sum)
        c = jnp.where(some, weight / jnp.where(some, weight_sum, 1), 0)
        return {"c": c}, kept_b1, max_lr, increment(t), weight_sum

    def leaf(n: Any, u: Array, y: Array, z: Array) -> tuple[Array, Array]:
        # Of the new `z`: XLA would copy the old one before it is overwritten.
        z = z + u
        return n.c * (z - y) + (1 - b1) * (1 - n.c) * u, z

    def begin(p: Any) -> Array:
        return copy_of(p).astype(state_dtype or p.dtype)

    averages = lift(
        Rule(
            who,
            _Averages,
            leaf,
            remember={"z": begin},
            shared={
                "b1": scalar(b1),
                "max_lr": scalar(0.0),
                "step_count": lambda: increment(zero_count()),
                "weight_sum": scalar(0.0),
            },
            prepare=prepare,
            needs=("params",),
        )
    )

    def apart(state: OptState) -> list[OptState]:
        state = state_of(who, ScheduleFreeState, state)
        return [state.base_optimizer_state, state]

    def together(states: list[OptState]) -> ScheduleFreeState:
        inner, mine = states
        return ScheduleFreeState(base_optimizer_state=inner, **mine._asdict())

    return sequence([base, plan_of(who, "averages", averages)], apart, together).pair


def schedule_free_eval_params(state: OptState, params: Params) -> Params:
    """The average `x`, at which to evaluate: `(y - (1 - b1) z) / b1`.

    Args:
        state: that of `schedule_free`, or one that has it inside: of a chain, a mask,
            a partition, `MultiSteps`.
        params: `y`, the params in training. Leaves that no `schedule_free` has seen
            come back as they are; so do all with `b1 = 0`, where nothing is averaged.
    """
    who = "schedule_free_eval_params"
    inside = jax.tree.leaves(state, is_leaf=_is_schedule_free)
    found = [part for part in inside if _is_schedule_free(part)]
    if not found:
        raise TypeError(
            f"{who}: there is no ScheduleFreeState in the state, a "
            f"{type(state).__name__}. Pass the state of `schedule_free`."
        )
    leaves, treedef = jax.tree.flatten(params, is_leaf=lambda x: x is None)
    averaged = list(leaves)
    for part in found:
        try:
            zs = treedef.flatten_up_to(part.z)
        except (KeyError, TypeError, ValueError):
            difference = first_difference(params, part.z, ("params", "state's `z`"))
            raise ValueError(f"{who}: {difference}. {_ADVICE}") from None
        for k, z in enumerate(zs):
            if not hasattr(z, "dtype") or leaves[k] is None:
                continue
            if averaged[k] is not leaves[k]:
                raise ValueError(
                    f"{who}: the state holds two averages of leaf "
                    f"{leaf_paths(params)[k]}. Pass the one that is meant."
                )
            y = jnp.asarray(leaves[k])
            if y.shape != z.shape:
                raise ValueError(
                    f"{who}: leaf {leaf_paths(params)[k]} has shape {y.shape} in the "
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
    state_dtype: Any = None,
    *,
    memory_dtype: Any = None,
    keep_count: bool = False,
) -> GradientTransformationExtraArgs:
    """Schedule-Free AdamW: `schedule_free` around RMSProp with weight decay.

    Args:
        learning_rate: how far a step goes.
        warmup_steps: over how many steps it rises from zero; by default it does not.
        b1: that of `schedule_free`.
        b2: how slowly the mean square of the gradients forgets.
        eps: keeps a step finite where the gradient is zero.
        weight_decay: the pull towards zero, at the params in training.
        weight_lr_power, state_dtype: as for `schedule_free`.
        memory_dtype, keep_count: as for `keeping`.
    """
    who = "schedule_free_adamw"
    rate = _warmed_up(who, learning_rate, warmup_steps)
    (b2,) = fraction(who, b2=b2)
    (eps,) = nonnegative(who, eps=eps)
    base = chain(
        scale_by_rms(b2, eps, eps_in_sqrt=False, bias_correction=True),
        add_decayed_weights(weight_decay),
        scale_by_learning_rate(rate),
    )
    tx = schedule_free(base, rate, b1, weight_lr_power, state_dtype)
    return tx


@optimizer
def schedule_free_sgd(
    learning_rate: ScalarOrSchedule = 1.0,
    warmup_steps: int | None = None,
    b1: Real = 0.9,
    weight_decay: ScalarOrSchedule | None = None,
    weight_lr_power: Real = 2.0,
    state_dtype: Any = None,
    *,
    memory_dtype: Any = None,
    keep_count: bool = False,
) -> GradientTransformationExtraArgs:
    """Schedule-Free gradient descent: `schedule_free` around `sgd`.

    Args:
        learning_rate: how far a step goes.
        warmup_steps: over how many steps it rises from zero; by default it does not.
        b1: that of `schedule_free`.
        weight_decay: the pull towards zero, at the params in training; `None` for none.
        weight_lr_power, state_dtype: as for `schedule_free`.
        memory_dtype, keep_count: as for `keeping`.
    """
    rate = _warmed_up("schedule_free_sgd", learning_rate, warmup_steps)
    base = sgd(rate)
    if weight_decay is not None:
        base = chain(add_decayed_weights(weight_decay), base)
    tx = schedule_free(base, rate, b1, weight_lr_power, state_dtype)
    return tx


def _warmed_up(who: str, learning_rate: Any, warmup_steps: int | None) -> Any:
    """The learning rate, from zero over this many steps."""
    if not callable(learning_rate):
        finite(who, learning_rate=learning_rate)
    if warmup_steps is None:
        return learning_rate
    (steps,) = whole(who, warmup_steps=warmup_steps)
    if callable(learning_rate):
        raise TypeError(
            f"{who}: learning_rate is a function and warmup_steps is {steps}. Put the "
            "warm-up into the function."
        )
    if steps < 1:
        return constant_schedule(learning_rate)
    return linear_schedule(0.0, learning_rate, steps)


def _average(b1: Any, y: Array, z: Array) -> Array:
    """`x`, in the wider of their dtypes."""
    dtype = update_dtype(y, z)
    wide = wide_dtype([y, z])
    b1, y, z = number(b1), widen(y, wide), widen(z, wide)
    some = b1 != 0
    return restore(
        jnp.where(some, (y - (1 - b1) * z) / jnp.where(some, b1, 1), y), dtype
    )


def _is_schedule_free(x: Any) -> bool:
    return hasattr(x, "b1") and hasattr(x, "z")
