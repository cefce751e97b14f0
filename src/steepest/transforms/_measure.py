"""Measuring the updates without changing them."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.typing import DTypeLike
from jaxtyping import PyTree

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

Measure = Callable[[Updates], PyTree]  # updates -> a tree of numbers


@like_optax
class SnapshotState(NamedTuple):
    """The last measurement."""

    measurement: dict[str, PyTree]  # one entry, under `measure_name`


@like_optax
class MonitorState(NamedTuple):
    """The last measurements, and the states of the measures."""

    measurements: dict[str, PyTree]  # by name; empty before the first step
    measure_states: tuple[OptState, ...]


@transformation
def snapshot(measure_name: str, measure: Measure) -> GradientTransformationExtraArgs:
    """Store `measure(g)` in the state under a name; `u = g`.

    Before the first step the state holds `measure(params)`, so its structure never
    changes and it can be the carry of a `scan`. `tree.get(state, measure_name)` finds
    the measurement anywhere in a chain.

    Args:
        measure_name: the name of the measurement.
        measure: a function of the updates.

    >>> import jax.numpy as jnp, steepest
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
        **extra_args: object,
    ) -> tuple[Updates, SnapshotState]:
        del state, params, extra_args
        return updates, SnapshotState({measure_name: _typed(measure(updates))})

    return GradientTransformationExtraArgs(init, update)


@transformation
def measure_with_ema(
    measure: Measure,
    decay: Real,
    debias: bool = True,
    accumulator_dtype: DTypeLike | None = None,
) -> GradientTransformationExtraArgs:
    """`u` is the exponential moving average of `measure(g)`, for use in `monitor`.

    Args:
        measure: a function of the updates.
        decay: decay rate of the average, in [0, 1).
        debias: whether to apply bias correction, since the average starts at zero.
        accumulator_dtype: the dtype in which the average is stored; by default that of
            the measurement.
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
        **extra_args: object,
    ) -> tuple[Updates, OptState]:
        del params, extra_args  # the measurement does not have the params' structure
        return both.update(updates, state)

    return GradientTransformationExtraArgs(init, update)


@transformation
def monitor(
    measures: Mapping[str, Measure | AnyTransformation],
) -> GradientTransformationExtraArgs:
    """Store several measurements of `g` in the state, by name; `u = g`.

    The state has no measurements before the first step, so its structure changes. In a
    `scan`, take one step before the loop, or use `snapshot`.

    Args:
        measures: name -> a function of the updates, or a transformation whose updates
            are the measurement, such as `measure_with_ema`.

    >>> import jax.numpy as jnp, steepest
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
        **extra_args: object,
    ) -> tuple[Updates, MonitorState]:
        states = check.state_of("monitor", MonitorState, state).measure_states
        pairs = zip(txs.values(), states, strict=True)
        results = [tx.update(updates, old, params, **extra_args) for tx, old in pairs]
        measured = dict(zip(txs, (x for x, _ in results), strict=True))
        return updates, MonitorState(measured, tuple(new for _, new in results))

    return GradientTransformationExtraArgs(init, update)


def _first(measure: Measure, params: Params) -> PyTree:
    """The measurement before the first step: of the params, or zeros for shapes."""
    if any(isinstance(p, jax.ShapeDtypeStruct) for p in jax.tree.leaves(params)):
        return jax.tree.map(jnp.zeros_like, jax.eval_shape(measure, params))
    return _typed(measure(params))


def _typed(measured: PyTree) -> PyTree:
    """A measurement without weak types: with them, a step might compile twice."""
    weak = lambda x: isinstance(x, jax.Array) and x.weak_type
    return jax.tree.map(lambda x: x.astype(x.dtype) if weak(x) else x, measured)


def _check_name(name: str, measure_name: object) -> None:
    if not isinstance(measure_name, str):
        kind = type(measure_name).__name__
        raise TypeError(f"{name}: measure_name is a {kind}, expected a string.")


def _as_transformation(
    key: str, measure: Measure | AnyTransformation
) -> GradientTransformationExtraArgs:
    if isinstance(measure, AnyTransformation):
        return with_extra_args_support(measure)
    check.function("monitor", **{f"measures[{key!r}]": measure})
    return stateless(lambda updates, params: measure(updates))
