"""The mean over several batches, one batch in each call."""

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Int

from .. import check
from ..combine import chain
from ..core import (
    GradientTransformationExtraArgs,
    like_optax,
    OptState,
    Params,
    transformation,
    Updates,
)
from ..engine import map_leaves
from ..numerics import zero_count
from ..transforms import identity
from ..tree import where, zeros_like
from ._aggregator import average_per_element_updates, Axis, MadeAggregator, narrow, wide


@like_optax
class AccumulateAvgUpdatesState(NamedTuple):
    """The mean so far."""

    micro_step: Int[Array, ""]  # the number of updates in the mean
    ready: Bool[Array, ""]  # whether the last call returned the complete mean
    avg_grad: Updates


@transformation
def accumulate_avg_updates(
    accumulation_steps: int,
) -> GradientTransformationExtraArgs:
    """The mean of `accumulation_steps` updates; zeros until it is complete.

    Args:
        accumulation_steps: the number of updates in a mean; with 1, this is
            `identity`.
    """
    name = "accumulate_avg_updates"
    (steps,) = check.period(name, accumulation_steps=accumulation_steps)
    if steps == 1:
        return identity()

    def init(params: Params) -> AccumulateAvgUpdatesState:
        return AccumulateAvgUpdatesState(
            zero_count(), jnp.array(False), zeros_like(params)
        )

    def update(
        updates: Updates,
        state: OptState,
        params: Params | None = None,
        **extra_args: object,
    ) -> tuple[Updates, AccumulateAvgUpdatesState]:
        del params, extra_args
        state = check.state_of(name, AccumulateAvgUpdatesState, state)
        k = state.micro_step + 1
        mean = map_leaves(name, mean_of(k), updates=updates, avg_grad=state.avg_grad)
        ready = k == steps
        new = AccumulateAvgUpdatesState(
            jnp.where(ready, 0, k), ready, where(ready, zeros_like(mean), mean)
        )
        return where(ready, mean, zeros_like(mean)), new

    return GradientTransformationExtraArgs(init, update)


@transformation
def average_incrementally_updates(
    per_elt_axis: Axis | None, accumulation_steps: int
) -> GradientTransformationExtraArgs:
    """The mean over the elements of several batches, one batch in each call.

    Args:
        per_elt_axis: the axis or axes of the elements in every leaf; `None` if the
            updates are already means.
        accumulation_steps: the number of batches.
    """
    accumulate = accumulate_avg_updates(accumulation_steps)
    if per_elt_axis is None:
        return accumulate
    return MadeAggregator(*chain(average_per_element_updates(per_elt_axis), accumulate))


def mean_of(k: Int[Array, ""]) -> Callable[[Array, Array], Array]:
    """A function of a leaf and the mean of the previous `k - 1`: the mean of `k`."""

    def mean(g: Array, m: Array) -> Array:
        old = wide(m)
        return narrow(old + (wide(g) - old) / k.astype(old.dtype), m)

    return mean
