"""The numbers of a running optimizer, kept where they can be read."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from .. import check
from ..core import (
    AnyTransformation,
    AxisName,
    gives,
    GradientTransformationExtraArgs,
    Measure,
    mesh_axes,
    MeshAxes,
    OptState,
    Rule,
    transformation,
)
from ..engine import lift, plan_of, sequence, Shown, shown
from ..numerics import gradient_norm_squared, scalar, sqrt_or_zero


class WatchedState(NamedTuple):
    """What happened in the last step."""

    inner_state: OptState
    gradient_norm: Float[Array, ""]  # the length of all that went in
    update_norm: Float[Array, ""]  # and of all that came out
    numbers: dict[str, Any]  # by name, perhaps by group: the learning rate, the decay


class _Norm(NamedTuple):
    norm: Float[Array, ""]


@transformation
def watched(
    inner: AnyTransformation, *, axis_name: AxisName = None
) -> GradientTransformationExtraArgs:
    """`inner`, with the norms and the learning rate of the last step in its state.

    Read them with `read(state, "learning_rate")`, also `"gradient_norm"`,
    `"update_norm"`, `"weight_decay"`, however deep the state is inside another. The
    updates are those of `inner`, and its rules still run in one pass.

    Args:
        inner: any transformation.
        axis_name: inside `jax.shard_map`, the mesh axes over which the params are
            split. Without it, each device measures its own part.

    >>> import steepest
    >>> tx = steepest.watched(steepest.sgd(steepest.linear_schedule(1.0, 0.0, 4)))
    >>> params = jnp.array([3.0, 4.0])
    >>> _, state = tx.update(params, tx.init(params))
    >>> _, state = tx.update(params, state)
    >>> [float(steepest.read(state, x)) for x in ("learning_rate", "update_norm")]
    [0.75, 3.75]
    """
    axes = mesh_axes("watched", axis_name)
    norm = plan_of("watched", "norm", _norm(axes))

    def apart(state: OptState) -> Sequence[OptState]:
        state = check.state_of("watched", WatchedState, state)
        before, after = _Norm(state.gradient_norm), _Norm(state.update_norm)
        return before, state.inner_state, after

    def together(states: list[OptState]) -> WatchedState:
        before, state, after = states
        numbers = by_name(shown(inner, state))
        return WatchedState(state, before.norm, after.norm, numbers)

    plans = [norm, plan_of("watched", "inner", inner), norm]
    return sequence(plans, apart, together).pair


def by_name(found: Any) -> dict[str, Any]:
    """Numbers by name; by group where there are several of that name."""
    groups: dict[str, dict[str, Any]] = {}
    for name, label, value in map(_named, found):
        groups.setdefault(name, {})[label] = value
    return {name: alone(values) for name, values in groups.items()}


def alone(values: Mapping[str, Any]) -> Any:
    """The value, if there is only one; else all, by label."""
    return next(iter(values.values())) if len(values) == 1 else dict(values)


def _named(one: Shown) -> tuple[str, str, Array]:
    return one.name, "/".join(one.groups), jnp.asarray(one.value, float)


def unchanged_formula(g: Array) -> Array:
    """`u = g`."""
    return g


@gives()
def measured_norm(norm: Array, *, total: Array) -> tuple[dict[str, Any], Array]:
    """The norm of this step takes the place of the last one."""
    return {}, sqrt_or_zero(total)


def _norm(axes: MeshAxes | None) -> GradientTransformationExtraArgs:
    """Updates as they are, and how long they are."""
    return lift(
        Rule(
            "watched",
            unchanged_formula,
            _Norm,
            shared={"norm": scalar()},
            per_step=measured_norm,
            measure=Measure(gradient_norm_squared, axes=axes),
        )
    )
