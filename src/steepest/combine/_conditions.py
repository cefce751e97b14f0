"""Steps that are taken only under a condition."""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, runtime_checkable

import jax.numpy as jnp
from jaxtyping import Array, Bool, Int

from ..core import (
    AnyTransformation,
    as_inner,
    flag,
    function,
    GradientTransformationExtraArgs,
    like_optax,
    nonnegative,
    OptState,
    Params,
    Real,
    state_of,
    Updates,
)
from ..engine import Around, Leaves, when, wrapping, zeros
from ..numerics import increment, zero_count
from ._hold import are_finite, held, yes_or_no


@runtime_checkable
class ConditionFn(Protocol):
    """`(step, **extra_args) -> boolean`: whether to take this step, maybe traced."""

    def __call__(self, step: Array, **extra_args: Any) -> Any: ...


@like_optax
class ApplyIfFiniteState(NamedTuple):
    """How often a gradient was not finite, and the inner state."""

    notfinite_count: Int[Array, ""]  # in a row, until now
    last_finite: Bool[Array, ""]
    total_notfinite: Int[Array, ""]
    inner_state: OptState


@like_optax
class ConditionallyMaskState(NamedTuple):
    """How often `update` was called, and the inner state."""

    step: Int[Array, ""]
    inner_state: OptState


@like_optax
class ConditionallyTransformState(NamedTuple):
    """The inner state, and how often `update` was called."""

    inner_state: OptState
    step: Int[Array, ""]


def apply_if_finite(
    inner: AnyTransformation, max_consecutive_errors: Real
) -> GradientTransformationExtraArgs:
    """`inner`, except where the gradient has an infinity or a NaN: then hold still.

    The inner state stays as it was, too. After `max_consecutive_errors` such gradients
    in a row the next one is let through: the loss itself must be broken, and should be
    seen to be.

    Args:
        inner: any transformation.
        max_consecutive_errors: how many to forgive in a row.

    >>> import steepest
    >>> tx = steepest.apply_if_finite(steepest.sgd(1.0), max_consecutive_errors=5)
    >>> updates, state = tx.update(jnp.array([jnp.nan]), tx.init(jnp.array([1.0])))
    >>> float(updates[0]), int(state.total_notfinite)
    (0.0, 1)
    """
    who = "apply_if_finite"
    tx = as_inner(who, "inner", inner)
    (most,) = nonnegative(who, max_consecutive_errors=max_consecutive_errors)

    def init(params: Params) -> ApplyIfFiniteState:
        inner_state = tx.init(params)
        return ApplyIfFiniteState(
            zero_count(), jnp.array(True), zero_count(), inner_state
        )

    def update(
        updates: Updates,
        state: ApplyIfFiniteState,
        params: Params | None = None,
        **extra_args: Any,
    ) -> tuple[Updates, ApplyIfFiniteState]:
        state_of(who, ApplyIfFiniteState, state)
        Leaves(updates).check(who)
        finite = are_finite(updates)
        in_a_row = jnp.where(finite, 0, increment(state.notfinite_count))
        total = state.total_notfinite
        total = jnp.where(finite, total, increment(total))
        apply = finite | (in_a_row > most)
        old = state.inner_state
        found, new = held(who, apply, tx, updates, old, params, extra_args)
        return found, ApplyIfFiniteState(in_a_row, finite, total, new)

    return wrapping(init, update, Around(who, tx, "inner_state"))


def conditionally_mask(
    inner: AnyTransformation,
    should_transform_fn: ConditionFn,
    forward_extra_args: bool = False,
) -> GradientTransformationExtraArgs:
    """`inner` in the steps that a condition picks; in the others, hold still.

    Args:
        inner: any transformation; its state changes only in the steps it takes.
        should_transform_fn: a function of the count of calls, and of the extra
            arguments if they are forwarded; `True` to take the step.
        forward_extra_args: whether the condition hears the extra arguments.
    """
    given = inner, should_transform_fn, forward_extra_args
    return _conditionally("conditionally_mask", *given, ConditionallyMaskState, zeros)


def conditionally_transform(
    inner: AnyTransformation,
    should_transform_fn: ConditionFn,
    forward_extra_args: bool = False,
) -> GradientTransformationExtraArgs:
    """`inner` in the steps that a condition picks; in the others, pass as they are.

    Args:
        inner, should_transform_fn, forward_extra_args: as for `conditionally_mask`.

    >>> import steepest
    >>> first = lambda step: step < 1
    >>> tx = steepest.conditionally_transform(steepest.clip(1.0), first)
    >>> g = jnp.array([5.0])
    >>> clipped, state = tx.update(g, tx.init(g))
    >>> passed, state = tx.update(g, state)
    >>> float(clipped[0]), float(passed[0])
    (1.0, 5.0)
    """
    given = inner, should_transform_fn, forward_extra_args
    State, same = ConditionallyTransformState, lambda updates: updates
    return _conditionally("conditionally_transform", *given, State, same)


def _conditionally(
    who: str,
    inner: AnyTransformation,
    condition: ConditionFn,
    forward_extra_args: bool,
    State: type[Any],
    instead: Callable[[Updates], Updates],
) -> GradientTransformationExtraArgs:
    """`inner` in the steps that a condition picks, `instead` in the others.

    Args:
        who: who speaks in an error.
        inner, condition, forward_extra_args: as for `conditionally_mask`.
        State: with `step` and `inner_state`, in the order that Optax has them.
        instead: a function of the updates.
    """
    tx = as_inner(who, "inner", inner)
    function(who, should_transform_fn=condition)
    flag(who, forward_extra_args=forward_extra_args)

    def init(params: Params) -> Any:
        return State(step=zero_count(), inner_state=tx.init(params))

    def update(
        updates: Updates, state: Any, params: Params | None = None, **extra_args: Any
    ) -> tuple[Updates, Any]:
        state_of(who, State, state)
        heard = extra_args if forward_extra_args else {}
        apply = condition(state.step, **heard)
        apply = yes_or_no(who, "should_transform_fn", apply)
        old = state.inner_state
        found, new = when(apply, tx, instead, updates, old, params, extra_args)
        return found, State(step=increment(state.step), inner_state=new)

    return wrapping(init, update, Around(who, tx, "inner_state"))
