"""Skip steps whose gradient or loss is an outlier or not finite.

Groeneveld et al., OLMo: accelerating the science of language models, 2024,
arXiv:2402.00838; its later code skips steps whose loss or gradient norm lies six
standard deviations above the last 128
"""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Int

from .. import check
from ..core import (
    AnyTransformation,
    as_inner,
    AxisName,
    GradientTransformationExtraArgs,
    mesh_axes,
    MeshAxes,
    OptState,
    Params,
    Real,
    transformation,
    Updates,
)
from ..engine import Leaves, selected, WrapperInfo, wrapping
from ..numerics import increment, parts_over, split_over, sum_over, zero_count
from ._decisions import are_finite, squared_norm
from ._history import History, is_high, longer, no_history


class GuardState(NamedTuple):
    """The inner state, counts of skipped steps by cause, and the recent history."""

    inner_state: OptState
    skipped: Int[Array, ""]  # skipped steps in total
    skipped_in_a_row: Int[Array, ""]  # up to now; 0 if the last step was taken
    outliers_in_a_row: Int[Array, ""]  # those of them with a finite gradient
    not_finite: Int[Array, ""]  # steps skipped for an infinity or a NaN
    high_norm: Int[Array, ""]  # steps skipped for an unusually large gradient norm
    high_value: Int[Array, ""]  # for a loss that is unusually high, infinite or NaN
    norms: History
    values: History


_COUNTS = GuardState._fields[1:7]


class _Limits(NamedTuple):
    """The arguments of `guard`, checked."""

    window: int
    warmup: Real
    sigmas: Real
    margin: Real
    max_consecutive: Real
    axes: MeshAxes | None

    def is_outlier(self, x: Array, history: History) -> Bool[Array, ""]:
        """Whether `x` is an outlier, once `warmup` values are known.

        Args:
            x: a gradient norm or a loss.
            history: its values in the steps taken before.
        """
        known = history.seen >= self.warmup
        return known & is_high(x, history, self.sigmas, self.margin)


class _Verdict(NamedTuple):
    """Whether to take a step, and why not."""

    take: Bool[Array, ""]
    not_finite: Bool[Array, ""]
    high_norm: Bool[Array, ""]
    high_value: Bool[Array, ""]
    new_level: Bool[Array, ""]  # an outlier that is taken after too many in a row
    norm: Array
    value: Array | None


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
    """Apply `inner`, but skip steps that look wrong.

    A step is skipped if its gradient has an infinity or a NaN. It is also skipped if
    `x`, the global norm of the gradient or the loss, is an outlier:

        x > mean + max(sigmas std, margin |mean|)

    where `mean` and `std` are those of `x` over the last `window` steps taken, once
    there are `warmup` of them. A skipped step returns zeros and leaves the state of
    `inner` unchanged. This copies nothing: every array is written in place, as without
    the guard.

    The loss is the extra argument `value`; without it, only the norm is tested. An
    infinite or NaN loss is an outlier.

    After `max_consecutive` outliers in a row, the next one counts as a new level
    (another batch size, another task): the step is taken, and its history restarts. A
    gradient that is not finite is never applied.

    Args:
        inner: any transformation; it receives the extra arguments.
        window: the number of steps in the history.
        sigmas: an outlier lies more than this many standard deviations above the mean;
            with infinity, only infinities and NaNs are skipped.
        margin: an outlier also lies more than this fraction above the mean. Without it,
            the smallest rise after identical steps would be an outlier.
        warmup: the number of steps in the history before outliers are skipped; by
            default half of `window`.
        max_consecutive: the number of consecutive outliers that may be skipped.
        axis_name: inside `shard_map` or `pmap`, the axes over which gradients or losses
            differ between devices, so that all devices make the same decision.

    >>> import jax.numpy as jnp, steepest
    >>> tx = steepest.guard(steepest.sgd(1.0), window=4)
    >>> state = tx.init(jnp.array([0.0]))
    >>> for g in (1.0, 1.1, 0.9, 50.0, jnp.nan):
    ...     updates, state = tx.update(jnp.array([g]), state)
    >>> int(state.skipped), int(state.high_norm), int(state.not_finite)
    (2, 1, 1)
    """
    tx = as_inner("guard", "inner", inner)
    limits = _checked(window, sigmas, margin, warmup, max_consecutive, axis_name)

    def init(params: Params) -> GuardState:
        counts = {name: zero_count() for name in _COUNTS}
        norms, values = no_history(limits.window), no_history(limits.window)
        return GuardState(tx.init(params), norms=norms, values=values, **counts)

    def update(
        updates: Updates,
        state: GuardState,
        params: Params | None = None,
        **extra_args: object,
    ) -> tuple[Updates, GuardState]:
        check.state_of("guard", GuardState, state)
        Leaves(updates).check("guard")
        verdict = _judge(limits, updates, state, _loss(extra_args.get("value")))
        args = updates, state.inner_state, params, extra_args
        updates, inner_state = selected("guard", verdict.take, tx, *args)
        return updates, _recorded(verdict, state, inner_state)

    return wrapping(init, update, WrapperInfo("guard", tx, "inner_state"))


def _checked(
    window: int,
    sigmas: Real,
    margin: Real,
    warmup: int | None,
    max_consecutive: Real,
    axis_name: AxisName,
) -> _Limits:
    """Check the arguments of `guard`."""
    (size,) = check.period("guard", window=window)
    if not isinstance(size, int):
        raise TypeError(
            f"guard: window is a {type(window).__name__}, expected a Python int: it is "
            "the shape of the history in the state."
        )
    (enough,) = check.period(
        "guard", warmup=max(size // 2, 1) if warmup is None else warmup
    )
    if isinstance(enough, int) and enough > size:
        raise ValueError(
            f"guard: warmup is {enough} and window is {size}, expected a warmup of at "
            "most window: the history holds no more steps."
        )
    axes = mesh_axes("guard", axis_name)
    (sigmas,) = check.positive.must("guard", sigmas=sigmas)
    margin, most = check.nonnegative.must(
        "guard", margin=margin, max_consecutive=max_consecutive
    )
    return _Limits(size, enough, sigmas, margin, most, axes)


def _judge(
    limits: _Limits, updates: Updates, state: GuardState, value: Array | None
) -> _Verdict:
    """Decide whether to take a step with these updates and this loss."""
    axes = limits.axes
    square, not_finite = squared_norm(updates, axes), ~are_finite(updates, axes)
    if value is not None:
        where = split_over(axes, value)
        value = sum_over(where, value) / parts_over(where)
    # The sum of squares may overflow although the gradient itself is finite.
    norm = jnp.minimum(jnp.sqrt(square), jnp.finfo(square.dtype).max ** 0.5)

    high_norm = limits.is_outlier(norm, state.norms) & ~not_finite
    high_value = jnp.array(False)
    if value is not None:
        high_value = ~jnp.isfinite(value) | limits.is_outlier(value, state.values)
        high_value = high_value & ~not_finite
    outlier = high_norm | high_value
    new_level = outlier & (state.outliers_in_a_row >= limits.max_consecutive)
    take = ~not_finite & (~outlier | new_level)
    return _Verdict(take, not_finite, high_norm, high_value, new_level, norm, value)


def _recorded(
    verdict: _Verdict, state: GuardState, inner_state: OptState
) -> GuardState:
    """The state after a step, with its counts and histories updated."""
    take, not_finite, high_norm, high_value, new_level, norm, value = verdict
    count = lambda old, yes: jnp.where(yes & ~take, increment(old), old)
    in_a_row = lambda old, yes: jnp.where(take, 0, count(old, yes))
    norms = longer(state.norms, norm, take, new_level & high_norm)
    values = state.values
    if value is not None:
        known = take & jnp.isfinite(value)
        values = longer(values, value, known, new_level & high_value)
    outlier = high_norm | high_value
    return GuardState(
        inner_state,
        skipped=count(state.skipped, True),
        skipped_in_a_row=in_a_row(state.skipped_in_a_row, True),
        outliers_in_a_row=in_a_row(state.outliers_in_a_row, outlier),
        not_finite=count(state.not_finite, not_finite),
        high_norm=count(state.high_norm, high_norm),
        high_value=count(state.high_value, high_value),
        norms=norms,
        values=values,
    )


def _loss(value: object) -> Array | None:
    """The loss in the precision of the history; `None` if there is none."""
    if value is None:
        return None
    (value,) = check.array("guard", value=value)
    if value.ndim or jnp.iscomplexobj(value):
        raise ValueError(
            f"guard: `value` has shape {value.shape} and dtype {value.dtype}, expected "
            "the loss as one real number. Pass its mean over the batch."
        )
    return value.astype(float)
