"""Looking at the updates as they pass."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from .. import check
from ..combine import chain
from ..core import (
    AnyTransformation,
    GradientTransformationExtraArgs,
    like_optax,
    OptState,
    Params,
    Real,
    stateless,
    transformation,
    Updates,
    with_extra_args_support,
)
from ._ema import ema

Measure = Callable[[Updates], Any]  # updates -> a tree of numbers


@like_optax
class SnapshotState(NamedTuple):
    """What was measured last."""

    measurement: dict[str, Any]  # of the one name it goes by


@like_optax
class MonitorState(NamedTuple):
    """What was measured last, and what the measures remember."""

    measurements: dict[str, Any]  # by name; empty before the first step
    measure_states: tuple[OptState, ...]


@transformation
def snapshot(measure_name: str, measure: Measure) -> GradientTransformationExtraArgs:
    """`u = g`, and `measure(g)` is kept in the state, under its name.

    Before the first step it is `measure(params)`, so that the state never changes its
    structure, and can be the carry of a `scan`. `tree.get(state, measure_name)` finds
    it, wherever in a chain it is.

    Args:
        measure_name: the name.
        measure: a function of the updates.

    >>> import steepest
    >>> tx = steepest.chain(steepest.snapshot("largest", jnp.max), steepest.scale(2.0))
    >>> g = jnp.array([1.0, 3.0])
    >>> u, state = tx.update(g, tx.init(g))
    >>> float(state[0].measurement["largest"])
    3.0
    """
    _check_name("snapshot", measure_name)
    check.function("snapshot", measure=measure)

    def init(params: Params) -> SnapshotState:
        return SnapshotState({measure_name: _first(measure, params)})

    def update(
        updates: Updates,
        state: SnapshotState,
        params: Params | None = None,
        **extra_args: Any,
    ) -> tuple[Updates, SnapshotState]:
        del state, params, extra_args
        return updates, SnapshotState({measure_name: measure(updates)})

    return GradientTransformationExtraArgs(init, update)


@transformation
def measure_with_ema(
    measure: Measure, decay: Real, debias: bool = True, accumulator_dtype: Any = None
) -> GradientTransformationExtraArgs:
    """`u` is the mean, over the steps, of `measure(g)`: made for `monitor`.

    Args:
        measure: a function of the updates.
        decay, debias, accumulator_dtype: as for `ema`.
    """
    check.function("measure_with_ema", measure=measure)
    (decay,) = check.fraction("measure_with_ema", decay=decay)
    mean = ema(decay, debias, accumulator_dtype)
    both = chain(stateless(lambda updates, params: measure(updates)), mean)

    def init(params: Params) -> OptState:
        first, _ = both.init(())
        return first, mean.init(_first(measure, params))

    def update(
        updates: Updates,
        state: OptState,
        params: Params | None = None,
        **extra_args: Any,
    ) -> tuple[Updates, OptState]:
        del params, extra_args  # what is measured looks like nobody's params
        return both.update(updates, state)

    return GradientTransformationExtraArgs(init, update)


@transformation
def monitor(
    measures: Mapping[str, Measure | AnyTransformation],
) -> GradientTransformationExtraArgs:
    """`u = g`, and what `measures` say of `g` is kept in the state, by name.

    Before the first step nothing is measured, and the state has none of the names: for
    a `scan`, take one step before, or `snapshot`.

    Args:
        measures: functions of the updates, or transformations whose updates are the
            measurement, such as `measure_with_ema` makes; by name.

    >>> import steepest
    >>> tx = steepest.monitor({"largest": jnp.max})
    >>> g = jnp.array([1.0, 3.0])
    >>> u, state = tx.update(g, tx.init(g))
    >>> float(state.measurements["largest"])
    3.0
    """
    if not isinstance(measures, Mapping):
        raise TypeError(
            f"monitor: measures is a {type(measures).__name__}, expected a dict "
            "{name: function}."
        )
    txs = {name: _as_transformation(name, x) for name, x in measures.items()}

    def init(params: Params) -> MonitorState:
        return MonitorState({}, tuple(tx.init(params) for tx in txs.values()))

    def update(
        updates: Updates,
        state: MonitorState,
        params: Params | None = None,
        **extra_args: Any,
    ) -> tuple[Updates, MonitorState]:
        states = check.state_of("monitor", MonitorState, state).measure_states
        pairs = zip(txs.values(), states, strict=True)
        found = [tx.update(updates, old, params, **extra_args) for tx, old in pairs]
        measured = dict(zip(txs, (x for x, _ in found), strict=True))
        return updates, MonitorState(measured, tuple(new for _, new in found))

    return GradientTransformationExtraArgs(init, update)


def _first(measure: Measure, params: Params) -> Any:
    """What is measured before there are updates: of the params; of shapes, zeros."""
    if any(isinstance(p, jax.ShapeDtypeStruct) for p in jax.tree.leaves(params)):
        return jax.tree.map(jnp.zeros_like, jax.eval_shape(measure, params))
    return measure(params)


def _check_name(who: str, name: Any) -> None:
    if not isinstance(name, str):
        raise TypeError(
            f"{who}: measure_name is a {type(name).__name__}, expected a string."
        )


def _as_transformation(name: str, measure: Any) -> GradientTransformationExtraArgs:
    if isinstance(measure, AnyTransformation):
        return with_extra_args_support(measure)
    check.function("monitor", **{f"measures[{name!r}]": measure})
    return stateless(lambda updates, params: measure(updates))
