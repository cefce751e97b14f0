"""Steps that are left out because something is wrong with them.

Groeneveld et al., OLMo: accelerating the science of language models, 2024,
arXiv:2402.00838; its later code leaves out steps whose loss or gradient norm lies six
standard deviations above the last 128
"""

from typing import Any, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Int

from .. import check
from ..core import (
    AnyTransformation,
    as_inner,
    AxisName,
    GradientTransformationExtraArgs,
    mesh_axes,
    OptState,
    Params,
    Real,
    transformation,
    Updates,
)
from ..engine import held, Leaves, WrapperInfo, wrapping
from ..numerics import increment, parts_over, split_over, sum_over, zero_count
from ._decisions import are_finite, squared_norm
from ._history import History, is_high, longer, no_history


class GuardState(NamedTuple):
    """The inner state, what was left out and why, and what is usual."""

    inner_state: OptState
    skipped: Int[Array, ""]  # steps left out, all in all
    skipped_in_a_row: Int[Array, ""]  # until now; 0 where the last step was taken
    outliers_in_a_row: Int[Array, ""]  # of these, those with a finite gradient
    not_finite: Int[Array, ""]  # steps left out for an infinity or a NaN
    high_norm: Int[Array, ""]  # for a gradient that is unusually long
    high_value: Int[Array, ""]  # for a loss that is unusually high, infinite or NaN
    norms: History
    values: History


_COUNTS = GuardState._fields[1:7]


@transformation
def guard(
    inner: AnyTransformation,
    *,
    window: int = 128,
    sigmas: Real = 6.0,
    margin: Real = 0.1,
    warmup: int | None = None,
    max_consecutive: Real = 10,
    axis_name: AxisName = None,
) -> GradientTransformationExtraArgs:
    """`inner`, except in steps that look wrong: then hold still.

    A step is left out if its gradient has an infinity or a NaN, or if `x`, the global
    norm of the gradient or the loss, is an outlier of the steps taken before:

        x > mean + max(sigmas std, margin |mean|)

    where `mean` and `std` are those of `x` in the last `window` steps taken, once there
    are `warmup` of them. The update is then zero, and the state of `inner` is what it
    was, so that the step leaves no trace in it. Nothing is copied for that: every array
    is written in place, as without the guard.

    The loss is the extra argument `value`; without it, the norm alone is looked at. An
    infinite loss is an outlier, and NaN too.

    After `max_consecutive` outliers in a row the next one is no outlier but a new level
    (another batch size, another task): it is taken, and its history begins again. A
    gradient that is not finite is never taken.

    Args:
        inner: any transformation; it hears the extra arguments.
        window: how many steps the history holds.
        sigmas: how many standard deviations above the mean are too many; infinity to
            look for infinities and NaN alone.
        margin: what part of the mean a step may lie above it in any case, since after
            steps that are all alike the least rise would be an outlier.
        warmup: how many steps must be known before one can be an outlier; by default
            half of `window`.
        max_consecutive: how many outliers to leave out in a row.
        axis_name: inside `shard_map` or `pmap`, the axes over which gradients or losses
            differ from device to device, so that all devices decide alike.

    >>> import steepest
    >>> tx = steepest.guard(steepest.sgd(1.0), window=4)
    >>> state = tx.init(jnp.array([0.0]))
    >>> for g in (1.0, 1.1, 0.9, 50.0, jnp.nan):
    ...     updates, state = tx.update(jnp.array([g]), state)
    >>> int(state.skipped), int(state.high_norm), int(state.not_finite)
    (2, 1, 1)
    """
    tx = as_inner("guard", "inner", inner)
    (size,) = check.period("guard", window=window)
    if not isinstance(size, int):
        raise TypeError(
            f"guard: window is a {type(window).__name__}, expected an int of Python: "
            "the state has room for so many steps."
        )
    (enough,) = check.period(
        "guard", warmup=max(size // 2, 1) if warmup is None else warmup
    )
    if isinstance(enough, int) and enough > size:
        raise ValueError(
            f"guard: warmup is {enough} and window is {size}, expected a warmup of at "
            "most the window: no more steps are known."
        )
    axes = mesh_axes("guard", axis_name)
    (sigma,) = check.positive.must("guard", sigmas=sigmas)
    rise, most = check.nonnegative.must(
        "guard", margin=margin, max_consecutive=max_consecutive
    )

    def high(x: Array, history: History) -> Bool[Array, ""]:
        return (history.seen >= enough) & is_high(x, history, sigma, rise)

    def init(params: Params) -> GuardState:
        counts = {name: zero_count() for name in _COUNTS}
        norms, values = no_history(size), no_history(size)
        return GuardState(tx.init(params), norms=norms, values=values, **counts)

    def update(
        updates: Updates,
        state: GuardState,
        params: Params | None = None,
        **extra_args: Any,
    ) -> tuple[Updates, GuardState]:
        check.state_of("guard", GuardState, state)
        Leaves(updates).check("guard")
        value = _loss(extra_args.get("value"))
        square, bad = squared_norm(updates, axes), ~are_finite(updates, axes)
        if value is not None:
            where = split_over(axes, value)
            value = sum_over(where, value) / parts_over(where)
        # The square of a long gradient may overflow where the gradient does not.
        norm = jnp.minimum(jnp.sqrt(square), jnp.finfo(square.dtype).max ** 0.5)

        high_norm = high(norm, state.norms) & ~bad
        high_value = jnp.array(False)
        if value is not None:
            high_value = (~jnp.isfinite(value) | high(value, state.values)) & ~bad
        outlier = high_norm | high_value
        new_level = outlier & (state.outliers_in_a_row >= most)
        take = ~bad & (~outlier | new_level)

        args = updates, state.inner_state, params, extra_args
        found, inner_state = held("guard", take, tx, *args)
        count = lambda old, yes: jnp.where(yes & ~take, increment(old), old)
        in_a_row = lambda old, yes: jnp.where(take, 0, count(old, yes))
        norms = longer(state.norms, norm, take, new_level & high_norm)
        values = state.values
        if value is not None:
            known = take & jnp.isfinite(value)
            values = longer(values, value, known, new_level & high_value)
        return found, GuardState(
            inner_state,
            skipped=count(state.skipped, True),
            skipped_in_a_row=in_a_row(state.skipped_in_a_row, True),
            outliers_in_a_row=in_a_row(state.outliers_in_a_row, outlier),
            not_finite=count(state.not_finite, bad),
            high_norm=count(state.high_norm, high_norm),
            high_value=count(state.high_value, high_value),
            norms=norms,
            values=values,
        )

    return wrapping(init, update, WrapperInfo("guard", tx, "inner_state"))


def _loss(value: Any) -> Array | None:
    """The loss as a number of the precision that history has, if there is one."""
    if value is None:
        return None
    (value,) = check.array("guard", value=value)
    if value.ndim or jnp.iscomplexobj(value):
        raise ValueError(
            f"guard: `value` has shape {value.shape} and dtype {value.dtype}, expected "
            "the loss, one real number. Pass its mean over the batch."
        )
    return value.astype(float)
