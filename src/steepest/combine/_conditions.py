"""Transformations applied only under a condition."""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, runtime_checkable

import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Bool, Int

from .. import check
from ..core import (
    AnyTransformation,
    as_inner,
    AxisName,
    GradientTransformationExtraArgs,
    like_optax,
    mesh_axes,
    OptState,
    Params,
    Real,
    transformation,
    Updates,
)
from ..engine import Decide, Leaves, selected, when, WrapperInfo, wrapping, zeros
from ..numerics import increment, zero_count
from ._decisions import are_finite, yes_or_no


@runtime_checkable
class ConditionFn(Protocol):
    """`(step, **extra_args) -> boolean`, maybe traced: whether to take this step."""

    def __call__(self, step: Array, **extra_args: Any) -> ArrayLike: ...


@like_optax
class ApplyIfFiniteState(NamedTuple):
    """Counts of gradients that were not finite, and the inner state."""

    notfinite_count: Int[Array, ""]  # consecutive ones, up to now
    last_finite: Bool[Array, ""]  # whether the last gradient was finite
    total_notfinite: Int[Array, ""]
    inner_state: OptState


@like_optax
class ConditionallyMaskState(NamedTuple):
    """The number of calls of `update`, and the inner state."""

    step: Int[Array, ""]
    inner_state: OptState


@like_optax
class ConditionallyTransformState(NamedTuple):
    """The inner state, and the number of calls of `update`."""

    inner_state: OptState
    step: Int[Array, ""]


@transformation
def apply_if_finite(
    inner: AnyTransformation,
    max_consecutive_errors: Real,
    *,
    axis_name: AxisName = None,
) -> GradientTransformationExtraArgs:
    """Apply `inner`, but skip the steps whose gradient has an infinity or a NaN.

    A skipped step returns zeros and leaves the inner state unchanged, bit for bit.
    After `max_consecutive_errors` such gradients in a row, the next one is applied: the
    loss itself is probably broken, and the failure should be visible.

    Args:
        inner: any transformation.
        max_consecutive_errors: the number of consecutive steps that may be skipped.
        axis_name: inside `jax.shard_map`, the mesh axes over which the gradients are
            sharded or differ. All devices then skip a step if one of them must.
            Without it, each device decides for itself.

    >>> import jax.numpy as jnp, steepest
    >>> tx = steepest.apply_if_finite(steepest.sgd(1.0), max_consecutive_errors=5)
    >>> updates, state = tx.update(jnp.array([jnp.nan]), tx.init(jnp.array([1.0])))
    >>> float(updates[0]), int(state.total_notfinite)
    (0.0, 1)
    """
    name = "apply_if_finite"
    tx = as_inner(name, "inner", inner)
    (most,) = check.nonnegative(name, max_consecutive_errors=max_consecutive_errors)
    axes = mesh_axes(name, axis_name)

    def init(params: Params) -> ApplyIfFiniteState:
        inner_state = tx.init(params)
        return ApplyIfFiniteState(
            zero_count(), jnp.array(True), zero_count(), inner_state
        )

    def update(
        updates: Updates,
        state: ApplyIfFiniteState,
        params: Params | None = None,
        **extra_args: object,
    ) -> tuple[Updates, ApplyIfFiniteState]:
        check.state_of(name, ApplyIfFiniteState, state)
        Leaves(updates).check(name)
        finite = are_finite(updates, axes)
        in_a_row = jnp.where(finite, 0, increment(state.notfinite_count))
        total = state.total_notfinite
        total = jnp.where(finite, total, increment(total))
        apply = finite | (in_a_row > most)
        args = updates, state.inner_state, params, extra_args
        out, new = selected(name, apply, tx, *args)
        return out, ApplyIfFiniteState(in_a_row, finite, total, new)

    return wrapping(init, update, WrapperInfo(name, tx, "inner_state"))


@transformation
def conditionally_mask(
    inner: AnyTransformation,
    should_transform_fn: ConditionFn | Callable[[Array], ArrayLike],
    forward_extra_args: bool = False,
) -> GradientTransformationExtraArgs:
    """Apply `inner` at the steps a condition selects; return zeros at the others.

    Args:
        inner: any transformation; its state changes only at the selected steps.
        should_transform_fn: a function of the number of calls, and of the extra
            arguments if they are forwarded; it returns `True` to select the step.
            Outside `jit` it gets concrete values, so it may use `if` and read Python
            objects.
        forward_extra_args: whether to pass the extra arguments to the condition.
    """
    args = inner, should_transform_fn, forward_extra_args
    return _conditionally("conditionally_mask", *args, ConditionallyMaskState, zeros)


@transformation
def conditionally_transform(
    inner: AnyTransformation,
    should_transform_fn: ConditionFn | Callable[[Array], ArrayLike],
    forward_extra_args: bool = False,
) -> GradientTransformationExtraArgs:
    """Apply `inner` at the steps a condition selects; change nothing at the others.

    Args:
        inner: any transformation; its state changes only at the selected steps.
        should_transform_fn: a function of the number of calls, and of the extra
            arguments if they are forwarded; it returns `True` to select the step.
            Outside `jit` it gets concrete values, so it may use `if` and read Python
            objects.
        forward_extra_args: whether to pass the extra arguments to the condition.

    >>> import jax.numpy as jnp, steepest
    >>> first = lambda step: step < 1
    >>> tx = steepest.conditionally_transform(steepest.clip(1.0), first)
    >>> g = jnp.array([5.0])
    >>> clipped, state = tx.update(g, tx.init(g))
    >>> passed, state = tx.update(g, state)
    >>> float(clipped[0]), float(passed[0])
    (1.0, 5.0)
    """
    args = inner, should_transform_fn, forward_extra_args
    State, same = ConditionallyTransformState, lambda updates: updates
    return _conditionally("conditionally_transform", *args, State, same)


def _conditionally(
    name: str,
    inner: AnyTransformation,
    condition: ConditionFn | Callable[[Array], ArrayLike],
    forward_extra_args: bool,
    State: type[ConditionallyMaskState] | type[ConditionallyTransformState],
    instead: Callable[[Updates], Updates],
) -> GradientTransformationExtraArgs:
    """Apply `inner` at the steps a condition selects, and `instead` at the others.

    Args:
        name: name used in error messages.
        inner, condition, forward_extra_args: as for `conditionally_mask`.
        State: class with `step` and `inner_state`, in the same order as in Optax.
        instead: a function of the updates.
    """
    tx = as_inner(name, "inner", inner)
    check.function(name, should_transform_fn=condition)
    check.flag(name, forward_extra_args=forward_extra_args)

    def init(params: Params) -> OptState:
        return State(step=zero_count(), inner_state=tx.init(params))

    def decide(
        updates: Updates, state: OptState, params: Params | None, **extra_args: object
    ) -> Bool[Array, ""]:
        check.state_of(name, State, state)
        passed = extra_args if forward_extra_args else {}
        return yes_or_no(name, "should_transform_fn", condition(state.step, **passed))

    def update(
        apply: Bool[Array, ""],
        updates: Updates,
        state: OptState,
        params: Params | None,
        **extra_args: object,
    ) -> tuple[Updates, OptState]:
        args = updates, state.inner_state, params, extra_args
        out, new = when(name, apply, tx, instead, *args)
        return out, State(step=increment(state.step), inner_state=new)

    asked = Decide(decide, ("should_transform_fn",))
    return wrapping(init, update, WrapperInfo(name, tx, "inner_state"), asked)
