"""Mean and variance of the gradients of single elements, tracked during training."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Bool, Float, Int

from .. import check
from ..combine import chain
from ..core import (
    AnyTransformation,
    GradientTransformationExtraArgs,
    init_empty_state,
    like_optax,
    missing,
    OptState,
    Params,
    Real,
    transformation,
    Updates,
)
from ..engine import map_leaves
from ..numerics import abs_sq, debias, ema, increment, zero_count
from ..transforms import identity
from ..tree import get, where, zeros_like
from ._accumulate import mean_of
from ._aggregator import (
    Aggregator,
    Axis,
    batch_size,
    MadeAggregator,
    narrow,
    process,
    wide,
)


@like_optax
class PerElementMeanAndSumSqDiffGradsState(NamedTuple):
    """Mean and sum of squared deviations of the elements seen so far."""

    micro_step: Int[Array, ""]  # the number of batches seen
    ready: Bool[Array, ""]  # whether the last call returned the result of all batches
    mean_grads: Updates
    sum_sq_diff_grads: Updates


@like_optax
class PerElementMeanAndVarianceEMAState(NamedTuple):
    """Moving averages over the steps, without bias correction."""

    count: Int[Array, ""]  # the number of steps taken
    ema_decay: Float[Array, ""]
    mean_grads_ema: Updates
    variance_grads_ema: Updates


@transformation
def get_per_element_mean_and_sum_sq_diff_grads(
    per_elt_axis: Axis = 0, accumulation_steps: int = 1
) -> Aggregator:
    """The mean over the elements, and the sum of squared deviations from it.

        m = mean of g_i
        s = sum of |g_i - m|^2

    `update` returns the pair of `m` and a dictionary, where `sum_sq_diff_grads` is `s`
    and `sample_size` is the number of elements. Use it in `process`.

    Args:
        per_elt_axis: the axis or axes of the elements in every leaf.
        accumulation_steps: the number of batches to combine, one in each call.
    """
    name = "get_per_element_mean_and_sum_sq_diff_grads"
    (steps,) = check.period(name, accumulation_steps=accumulation_steps)
    if steps == 1:
        return _of_one_batch(name, per_elt_axis)

    def init(params: Params) -> PerElementMeanAndSumSqDiffGradsState:
        # Each field has arrays of its own, so that all can be donated.
        return PerElementMeanAndSumSqDiffGradsState(
            zero_count(), jnp.array(False), zeros_like(params), zeros_like(params)
        )

    def update(
        updates: Updates,
        state: OptState,
        params: Params | None = None,
        **extra_args: object,
    ) -> tuple[Updates, PerElementMeanAndSumSqDiffGradsState]:
        del params, extra_args
        state = check.state_of(name, PerElementMeanAndSumSqDiffGradsState, state)
        m, s, size = _batch_statistics(name, updates, per_elt_axis)
        k = state.micro_step + 1
        both = map_leaves(
            name,
            _sum_of_both(k, size),
            sums=s,
            updates=m,
            mean_grads=state.mean_grads,
            sum_sq_diff_grads=state.sum_sq_diff_grads,
        )
        mean = map_leaves(name, mean_of(k), updates=m, mean_grads=state.mean_grads)
        result = mean, {"sum_sq_diff_grads": both, "sample_size": size * k}
        ready = k == steps
        new = PerElementMeanAndSumSqDiffGradsState(
            jnp.where(ready, 0, k),
            ready,
            where(ready, zeros_like(mean), mean),
            where(ready, zeros_like(both), both),
        )
        return where(ready, result, zeros_like(result)), new

    return MadeAggregator(init, update)


def _of_one_batch(name: str, axis: Axis) -> Aggregator:
    """The mean and the sum of squared deviations of each batch alone."""

    def update(
        updates: Updates,
        state: OptState,
        params: Params | None = None,
        **extra_args: object,
    ) -> tuple[Updates, OptState]:
        del params, extra_args
        m, s, size = _batch_statistics(name, updates, axis)
        s = jax.tree.map(narrow, s, updates)
        aux = {"sum_sq_diff_grads": s, "sample_size": size}
        return (jax.tree.map(narrow, m, updates), aux), state

    return MadeAggregator(init_empty_state, update)


def _batch_statistics(
    name: str, updates: Updates, axis: Axis
) -> tuple[Updates, Updates, int]:
    """`m`, `s` and the number of elements of one batch, in float32 or wider."""
    size = batch_size(name, updates, axis)
    along = lambda g: check.axes(name, axis, jnp.ndim(g))
    m = jax.tree.map(lambda g: wide(g).mean(along(g), keepdims=True), updates)
    distance = lambda g, m: abs_sq(wide(g) - m).sum(along(g))
    s = jax.tree.map(distance, updates, m)
    return jax.tree.map(lambda m, g: m.squeeze(along(g)), m, updates), s, size


def _sum_of_both(k: Int[Array, ""], size: int) -> Callable[..., Array]:
    """A function that adds the `s` of the `k`-th batch to that of the batches before.

    Chan, Golub and LeVeque 1983: combine the means and sums of squares of two samples,
    here of (k - 1) size elements and of size elements.
    """

    def sum_of_both(s: Array, m: Array, old_m: Array, old_s: Array) -> Array:
        share = ((k - 1) * size / k).astype(s.dtype)
        return narrow(wide(old_s) + s + abs_sq(m - wide(old_m)) * share, old_s)

    return sum_of_both


@transformation
def track_per_element_mean_and_variance_with_ema(
    ema_decay: Real = 0.9,
) -> GradientTransformationExtraArgs:
    """Track moving averages of the mean and the variance of the elements.

    The updates are unchanged. `update` needs the extra arguments `sum_sq_diff_grads`
    and `sample_size`, from `get_per_element_mean_and_sum_sq_diff_grads`.

    Args:
        ema_decay: decay rate of the averages, in [0, 1).
    """
    name = "track_per_element_mean_and_variance_with_ema"
    (decay,) = check.fraction(name, ema_decay=ema_decay)

    def init(params: Params) -> PerElementMeanAndVarianceEMAState:
        decay = jnp.asarray(ema_decay, float)
        return PerElementMeanAndVarianceEMAState(
            zero_count(), decay, zeros_like(params), zeros_like(params)
        )

    def update(
        updates: Updates,
        state: OptState,
        params: Params | None = None,
        *,
        sum_sq_diff_grads: Updates | None = None,
        sample_size: ArrayLike | None = None,
        **extra_args: object,
    ) -> tuple[Updates, PerElementMeanAndVarianceEMAState]:
        del params, extra_args
        state = check.state_of(name, PerElementMeanAndVarianceEMAState, state)
        if sum_sq_diff_grads is None:
            raise missing(name, "sum_sq_diff_grads")
        _check_size(name, sample_size)

        def averaged(x: Array, average: Array) -> Array:
            return narrow(ema(wide(average), wide(x), decay), average)

        def variance(s: Array, average: Array) -> Array:
            n = jnp.asarray(sample_size).astype(wide(s).real.dtype)
            return averaged(wide(s) / (n - 1), average)

        return updates, PerElementMeanAndVarianceEMAState(
            increment(state.count),
            state.ema_decay,
            map_leaves(name, averaged, updates=updates, average=state.mean_grads_ema),
            map_leaves(
                name,
                variance,
                sum_sq_diff_grads=sum_sq_diff_grads,
                average=state.variance_grads_ema,
            ),
        )

    return GradientTransformationExtraArgs(init, update)


def _check_size(name: str, sample_size: ArrayLike | None) -> None:
    if sample_size is None:
        raise missing(name, "sample_size")
    if isinstance(sample_size, int) and sample_size < 2:
        raise ValueError(
            f"{name}: sample_size is {sample_size}, expected at least 2, since one "
            "element has no variance. Use larger batches."
        )


def get_unbiased_mean_and_variance_ema(state: OptState) -> tuple[Updates, Updates]:
    """The averages in a state, with bias correction.

    Args:
        state: a state that holds one `PerElementMeanAndVarianceEMAState`.
    """
    name = "get_unbiased_mean_and_variance_ema"
    tracked = get(state, PerElementMeanAndVarianceEMAState.__name__, None)
    if tracked is None:
        raise ValueError(
            f"{name}: the state has no PerElementMeanAndVarianceEMAState. Make the "
            "optimizer with `add_mean_variance_to_opt`."
        )
    correction = debias(tracked.ema_decay, tracked.count)
    unbiased = lambda x: narrow(wide(x) / correction.astype(wide(x).dtype), x)
    averages = tracked.mean_grads_ema, tracked.variance_grads_ema
    mean, variance = jax.tree.map(unbiased, averages)
    return mean, variance


@transformation
def add_mean_variance_to_opt(
    opt: AnyTransformation,
    ema_decay: Real = 0.9,
    per_elt_axis: Axis = 0,
    accumulation_steps: int = 1,
) -> GradientTransformationExtraArgs:
    """Apply `opt` to the mean over the elements, and track their mean and variance.

    Read them with `get_unbiased_mean_and_variance_ema`.

    Args:
        opt: any optimizer.
        ema_decay: decay rate of the averages over the steps, in [0, 1).
        per_elt_axis: the axis or axes of the elements in every leaf.
        accumulation_steps: the number of batches per step, one in each call.

    >>> import jax.numpy as jnp, steepest
    >>> from steepest.experimental import aggregating
    >>> tx = aggregating.add_mean_variance_to_opt(steepest.sgd(0.1))
    >>> each = jnp.array([[3.0], [1.0]])
    >>> updates, state = tx.update(each, tx.init(jnp.zeros(1)))
    >>> mean, variance = aggregating.get_unbiased_mean_and_variance_ema(state)
    >>> round(float(mean[0]), 3), round(float(variance[0]), 3)
    (2.0, 2.0)
    """
    return process(
        identity(),
        get_per_element_mean_and_sum_sq_diff_grads(per_elt_axis, accumulation_steps),
        chain(track_per_element_mean_and_variance_with_ema(ema_decay), opt),
        aggregator_has_aux=True,
    )
