"""Keep the norms and hyperparameters of the last step in the state."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, TypeAlias, TypeVar

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

T = TypeVar("T")
Numbers: TypeAlias = dict[str, Array | dict[str, Array]]  # by name, or name and group


class WatchedState(NamedTuple):
    """The inner state, and the numbers of the last step."""

    inner_state: OptState
    gradient_norm: Float[Array, ""]  # global norm of the gradient
    update_norm: Float[Array, ""]  # global norm of the updates
    numbers: Numbers  # learning rate and weight decay, by name and group


class _Norm(NamedTuple):
    norm: Float[Array, ""]


@transformation
def watched(
    inner: AnyTransformation, *, axis_name: AxisName = None
) -> GradientTransformationExtraArgs:
    """Apply `inner`, and keep the norms and the learning rate of the last step.

    Read them with `read(state, "learning_rate")`, `"gradient_norm"`, `"update_norm"` or
    `"weight_decay"`, however deeply the state is nested. The updates are those of
    `inner`, and its rules still run in one pass.

    Args:
        inner: any transformation.
        axis_name: inside `jax.shard_map`, the mesh axes over which the params are
            sharded. Without it, each device uses only its own shard.

    >>> import jax.numpy as jnp, steepest
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


def by_name(numbers: Iterable[Shown]) -> Numbers:
    """Numbers by name; those with the same name in a dict by group."""
    groups: dict[str, dict[str, Array]] = {}
    for name, label, value in map(_named, numbers):
        groups.setdefault(name, {})[label] = value
    return {name: alone(values) for name, values in groups.items()}


def alone(values: Mapping[str, T]) -> T | dict[str, T]:
    """The value if there is only one, otherwise all values by label."""
    return next(iter(values.values())) if len(values) == 1 else dict(values)


def _named(one: Shown) -> tuple[str, str, Array]:
    return one.name, "/".join(one.groups), jnp.asarray(one.value, float)


def unchanged_formula(g: Array) -> Array:
    """`u = g`."""
    return g


@gives()
def measured_norm(norm: Array, *, total: Array) -> tuple[dict[str, Array], Array]:
    """The norm of this step, which replaces the last one."""
    return {}, sqrt_or_zero(total)


def _norm(axes: MeshAxes | None) -> GradientTransformationExtraArgs:
    """Leave the updates unchanged, and keep their norm."""
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
