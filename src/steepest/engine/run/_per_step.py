"""What a rule computes once in a step, for the whole tree."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import jax
import jax.numpy as jnp
from jax.core import Tracer

from ...core import At, call_by_name, is_schedule, names_of, OptState, PerStep, Rule
from ...numerics import increment
from ._formula import result


@dataclass(frozen=True, eq=False)
class Step:
    """A rule in the middle of a step: its numbers, and what it keeps for the tree."""

    rule: Rule
    numbers: dict[str, Any]  # all that its functions may ask for, by name
    shared: dict[str, Any]  # what it keeps for the tree, by name
    begun: dict[str, Any]  # the same, before this step
    before: dict[str, Any] = field(default_factory=dict)  # given before it measures


def begin_step(rule: Rule, state: OptState, extra: Mapping[str, Any]) -> Step:
    """A step before anything is measured.

    Args:
        rule: the rule.
        state: its state.
        extra: the extra arguments of `update`.
    """
    shared = {
        name: jax.tree.map(jnp.asarray, getattr(state, name)) for name in rule.shared
    }
    heard = {name: extra[name] for name in rule.extra if name in extra}
    numbers = {**at_count(rule, shared), **heard}
    step = Step(rule, numbers, shared, shared)
    if rule.measure is None or rule.measure.before is None:
        return step
    given, *_ = _call(rule.measure.before, step)
    before = _barred(given)
    return replace(step, numbers={**step.numbers, **before}, before=before)


def end_step(step: Step, total: Any) -> Step:
    """A step after everything is measured: what is given to the formula is known.

    Args:
        step: what `begin_step` returned.
        total: the sum of what was measured; only the first rule of a pass may measure.
    """
    rule, shared = step.rule, step.shared
    if rule.per_step is None:
        # A rule that counts, and does nothing else with the count than to schedule.
        counted = {k: increment(x) for k, x in shared.items() if k == "count"}
        return replace(step, shared={**shared, **counted})
    given, *new = _call(rule.per_step, step, total=total)
    names = names_of(rule.per_step.function).arrays
    return replace(
        step,
        numbers={**step.numbers, **given},
        shared={**shared, **dict(zip(names, new, strict=True))},
    )


def at_count(rule: Rule, shared: Mapping[str, Any]) -> dict[str, Any]:
    """The numbers of a rule, where schedules have their values in this step.

    Args:
        rule: the rule.
        shared: what it keeps for the tree, by name.
    """
    return {name: _value(x, shared) for name, x in rule.numbers.items()}


def _value(x: Any, shared: Mapping[str, Any]) -> Any:
    if isinstance(x, At):
        return jnp.asarray(x.schedule(shared[x.count]), float)
    return jnp.asarray(x(shared["count"]), float) if is_schedule(x) else x


def _call(per_step: PerStep, step: Step, **more: Any) -> tuple[Any, ...]:
    have = {**more, **step.numbers, **step.shared}
    return result(call_by_name(per_step.function, have))


def _barred(given: Mapping[str, Any]) -> dict[str, Any]:
    """The same numbers, not to be computed again for every element of every leaf."""
    if not any(isinstance(x, Tracer) for x in given.values()):
        return dict(given)
    barred = jax.lax.optimization_barrier(tuple(given.values()))
    return dict(zip(given, barred, strict=True))
