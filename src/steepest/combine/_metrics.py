"""The numbers of a running optimizer, for logging."""

from collections.abc import Iterator, Mapping
from typing import Any

import jax
import jax.numpy as jnp
from jax.core import Tracer

from .. import check
from ..core import AnyTransformation, as_inner, OptState
from ..engine import shown
from ._watched import by_name

# Fields to report, by state class. Optax's classes have the same names.
_FIELDS = {
    "ApplyIfFiniteState": ("notfinite_count", "total_notfinite"),
    "BacktrackingLinesearchInfo": ("num_linesearch_steps", "decrease_error"),
    "DAdaptAdamWState": ("estim_lr",),
    "DoGState": ("max_dist",),
    "DoWGState": ("estim_sq_dist",),
    "GuardState": ("skipped", "not_finite", "high_norm", "high_value"),
    "MomoAdamState": ("barf", "lb"),
    "MomoState": ("barf", "lb"),
    "MultiStepsState": ("gradient_step", "mini_step"),
    "ProdigyState": ("estim_lr",),
    "ReduceLROnPlateauState": ("scale", "best_value"),
    "ScaleByBacktrackingLinesearchState": ("learning_rate", "value"),
    "ScaleByZoomLinesearchState": ("learning_rate", "value"),
    "WatchedState": ("gradient_norm", "update_norm"),
    "ZoomLinesearchInfo": (
        "num_linesearch_steps",
        "decrease_error",
        "curvature_error",
    ),
}
# Fields that are dictionaries of numbers by name, or by name and group.
_DICTS = {
    "InjectHyperparamsState": "hyperparams",
    "InjectStatefulHyperparamsState": "hyperparams",
    "MonitorState": "measurements",
    "MultiStepsState": "skip_state",
    "SnapshotState": "measurement",
    "WatchedState": "numbers",
}

Place = tuple[str | int, ...]  # keys of dictionaries and indices of tuples
Entry = tuple[Place, str, object]  # place in the state, name, value


def metrics(state: OptState, tx: AnyTransformation | None = None) -> dict[str, float]:
    """The numbers of a running optimizer, by name, as Python floats.

    These are, if the optimizer has them: the numbers of `watched` (`gradient_norm`,
    `update_norm`, `learning_rate`, `weight_decay`), `inject_hyperparams`, `snapshot`
    and `monitor`; counts of skipped steps (`guard`, `apply_if_finite`, `MultiSteps`);
    the step and value of a line search; the scale of `reduce_on_plateau`; and the
    learning rates estimated by DoG, DoWG, Prodigy and D-Adaptation. The label of a
    group is a prefix: `decoder/learning_rate`. If two numbers have the same name, their
    places in the chain are prefixes.

    It waits for the device. Under `jit`, use `read`, or return the state.

    Args:
        state: the state that `tx.init` or `tx.update` returned, of steepest or Optax.
        tx: the transformation. With it, the result has the learning rate and the weight
            decay of the last step, which the state of a plain `adamw` does not hold.

    >>> import jax.numpy as jnp, steepest
    >>> tx = steepest.watched(steepest.sgd(0.5))
    >>> params = jnp.array([3.0, 4.0])
    >>> _, state = tx.update(params, tx.init(params))
    >>> metrics(state)
    {'gradient_norm': 5.0, 'update_norm': 2.5, 'learning_rate': 0.5}
    """
    entries = [entry for entry in _numbers(state, ()) if _is_scalar(entry[2])]
    named: dict[str, object] = {}
    short = [
        "/".join([*(x for x in at if isinstance(x, str)), k]) for at, k, _ in entries
    ]
    for name, (at, k, value) in zip(short, entries, strict=True):
        alone = short.count(name) == 1
        named[name if alone else "/".join([*map(str, at), k])] = value
    if tx is not None:
        known = by_name(shown(as_inner("metrics", "tx", tx), state))
        for at, k, value in _by_name(known, ()):
            if _is_scalar(value):
                named.setdefault("/".join([*map(str, at), k]), value)
    for name, x in named.items():
        if isinstance(x, Tracer):
            raise TypeError(
                f"metrics: {name} is traced, expected a concrete number. Call `metrics`"
                " outside `jit`, on the state that `update` returned, or use `read`."
            )
    values = jax.device_get(list(named.values()))  # all at once
    return {name: float(x) for name, x in zip(named, values, strict=True)}


def _numbers(node: object, at: Place) -> Iterator[Entry]:
    """All numbers in a state, outermost first."""
    if isinstance(node, Mapping):
        for key, child in node.items():
            yield from _numbers(child, (*at, str(key)))
        return
    if not isinstance(node, tuple | list):
        return
    kind = type(node).__name__
    for name in _FIELDS.get(kind, ()):
        yield at, name, getattr(node, name, None)
    numbers = getattr(node, _DICTS.get(kind, ""), None)
    if isinstance(numbers, Mapping):
        yield from _by_name(numbers, at)
    named = hasattr(node, "_fields")
    for place, child in enumerate(node):
        yield from _numbers(child, at if named else (*at, place))


def _by_name(numbers: Mapping[Any, object], at: Place) -> Iterator[Entry]:
    """Numbers by name; a value that is a dictionary holds one number per group."""
    for name, value in numbers.items():
        if isinstance(value, Mapping):
            yield from (((*at, str(k)), str(name), x) for k, x in value.items())
        else:
            yield at, str(name), value


def _is_scalar(x: Any) -> bool:
    if not check.is_number(x) or isinstance(x, complex):
        return False
    return jnp.ndim(x) == 0 and not jnp.iscomplexobj(x)
