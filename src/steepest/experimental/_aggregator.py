"""Aggregate the gradients of the elements of a batch into one update."""

from collections.abc import Sequence
from math import prod
from typing import Any, Protocol, TypeAlias

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array

from .. import check
from ..core import (
    AnyTransformation,
    as_inner,
    GradientTransformationExtraArgs,
    init_empty_state,
    like_optax,
    OptState,
    Params,
    Rule,
    Transformation,
    transformation,
    Updates,
)
from ..engine import Leaves, Plan, plan_of, restore, update_dtype, widen
from ..numerics import wide_dtype
from ..tree import get

Axis: TypeAlias = int | Sequence[int]


class AggregatorUpdateFn(Protocol):
    """`update` of an aggregator, which removes the element axes of the updates."""

    def __call__(
        self,
        per_elt_updates: Updates,
        state: OptState,
        params: Params | None = None,
        **extra_args: Any,
    ) -> tuple[Updates, OptState]: ...


@like_optax
class Aggregator(GradientTransformationExtraArgs):
    """A pair whose `update` aggregates the gradients of single elements.

    The leaves of its updates have the shapes of the params with additional axes for the
    elements, as from `jax.vmap(jax.grad(loss), (None, 0))`.
    """


class MadeAggregator(Transformation, Aggregator):
    """An aggregator that records the call that made it, like a `Transformation`."""


@transformation
def process(
    preprocessor: AnyTransformation,
    aggregator: AnyTransformation,
    postprocessor: AnyTransformation,
    aggregator_has_aux: bool = False,
) -> GradientTransformationExtraArgs:
    """Transform the gradients of the elements, aggregate them, and apply an optimizer.

    The state is the tuple of their three states. If the aggregator's state has a field
    `ready`, the optimizer waits while it is false: the updates are zero, and its state
    is unchanged.

    Args:
        preprocessor: transforms the gradients of the elements.
        aggregator: combines them into one update.
        postprocessor: transforms that update.
        aggregator_has_aux: whether the aggregator returns a pair, the update and a
            dictionary of extra arguments for the postprocessor.

    >>> import jax.numpy as jnp, steepest
    >>> from steepest.experimental import aggregating
    >>> mean = aggregating.average_per_element_updates()
    >>> tx = aggregating.process(steepest.clip(1.0), mean, steepest.sgd(0.1))
    >>> each = jnp.array([[3.0], [-0.5]])
    >>> updates, state = tx.update(each, tx.init(jnp.zeros(1)))
    >>> round(float(updates[0]), 3)
    -0.025
    """
    name = "process"
    before = as_inner(name, "preprocessor", preprocessor)
    join = as_inner(name, "aggregator", aggregator)
    after = as_inner(name, "postprocessor", postprocessor)
    check.flag(name, aggregator_has_aux=aggregator_has_aux)
    # Rules expect params in the shapes of the updates. Here the updates have additional
    # axes, so rules that do not need the params do not get them.
    unseen = _needs_no_params(plan_of(name, "preprocessor", before))

    def init(params: Params) -> tuple[OptState, OptState, OptState]:
        return before.init(params), join.init(params), after.init(params)

    def update(
        updates: Updates,
        state: tuple[OptState, OptState, OptState],
        params: Params | None = None,
        **extra_args: object,
    ) -> tuple[Updates, tuple[OptState, OptState, OptState]]:
        first, second, third = state
        seen = None if unseen else params
        updates, first = before.update(updates, first, seen, **extra_args)
        updates, second = join.update(updates, second, params, **extra_args)
        if aggregator_has_aux:
            updates, aux = updates
            extra_args = extra_args | aux

        def step() -> tuple[Updates, OptState]:
            return after.update(updates, third, params, **extra_args)

        def wait() -> tuple[Updates, OptState]:
            shapes, _ = jax.eval_shape(step)
            return jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), shapes), third

        ready = get(second, "ready", True)
        updates, third = step() if ready is True else jax.lax.cond(ready, step, wait)
        return updates, (first, second, third)

    if isinstance(aggregator, Aggregator):
        return MadeAggregator(init, update)
    return GradientTransformationExtraArgs(init, update)


def _needs_no_params(plan: Plan) -> bool:
    bodies = [link.body for link in plan.links]
    return all(isinstance(x, Rule) and "params" not in x.needs for x in bodies)


@transformation
def average_per_element_updates(per_elt_axis: Axis = 0) -> Aggregator:
    """The mean over the elements.

    Args:
        per_elt_axis: the axis or axes of the elements in every leaf.
    """
    name = "average_per_element_updates"

    def update(
        updates: Updates,
        state: OptState,
        params: Params | None = None,
        **extra_args: object,
    ) -> tuple[Updates, OptState]:
        del params, extra_args
        batch_size(name, updates, per_elt_axis)
        mean = lambda g: narrow(wide(g).mean(check.axes(name, per_elt_axis, g.ndim)), g)
        return jax.tree.map(mean, updates), state

    return MadeAggregator(init_empty_state, update)


def get_batch_size_from_per_elt_updates(
    per_elt_updates: Updates, per_elt_axis: Axis
) -> int:
    """The number of elements, which must be the same in all leaves.

    Args:
        per_elt_updates: the gradients of the elements.
        per_elt_axis: the axis or axes of the elements in every leaf.
    """
    return batch_size(
        "get_batch_size_from_per_elt_updates", per_elt_updates, per_elt_axis
    )


def batch_size(name: str, updates: Updates, axis: Axis) -> int:
    """The number of elements along `axis`, which must be the same in all leaves.

    Args:
        name: name used in error messages.
        updates: the gradients of the elements.
        axis: the axis or axes of the elements in every leaf.
    """
    leaves = Leaves(updates)
    leaves.check(name)
    shapes = [x.shape for x in leaves.arrays if x is not None]
    size = lambda shape: prod(shape[i] for i in check.axes(name, axis, len(shape)))
    sizes = sorted({size(shape) for shape in shapes})
    if len(sizes) != 1:
        raise ValueError(
            f"{name}: the updates have shapes {shapes}, with batch sizes {sizes} along "
            f"axis {axis}; expected at least one leaf, and the same size for all. "
            "Compute the gradients with `jax.vmap(jax.grad(loss), (None, 0))`."
        )
    return sizes[0]


def wide(x: ArrayLike) -> Array:
    """`x` in float32 or wider, including integers."""
    x = jnp.asarray(x)
    return widen(x, wide_dtype([x]), integers=True)


def narrow(x: Array, like: ArrayLike) -> Array:
    """`x` in the dtype of a leaf, or in float32 if the leaf has integers."""
    return restore(x, update_dtype(jnp.asarray(like), None))
