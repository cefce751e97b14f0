"""What a rule computes once per step, for the whole tree."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
from jax.core import Tracer
from jaxtyping import PyTree

from ...core import At, call_by_name, is_schedule, names_of, OptState, PerStep, Rule
from ...numerics import increment, set_apart
from ._formula import result

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Step:
    """A rule during a step: its numbers, and the fields it keeps for the tree."""

    rule: Rule
    numbers: dict[str, object]  # all numbers for its functions, by name
    shared: dict[str, PyTree]  # the fields it keeps for the tree, by name
    begun: dict[str, PyTree]  # the same, before this step
    before: dict[str, object] = field(default_factory=dict)  # from its `measure.before`


def begin_step(rule: Rule, state: OptState, extra: Mapping[str, object]) -> Step:
    """The step of a rule before its measure.

    Args:
        rule: the rule.
        state: its state.
        extra: the extra arguments of `update`.
    """
    shared = {
        name: jax.tree.map(jnp.asarray, getattr(state, name)) for name in rule.shared
    }
    arguments = {name: extra[name] for name in rule.extra if name in extra}
    numbers = {**at_count(rule, shared), **arguments}
    step = Step(rule, numbers, shared, shared)
    if rule.measure is None or rule.measure.before is None:
        return step
    before, *_ = _call(rule.measure.before, step)
    before = dict(zip(before, set_aside(before.values()), strict=True))
    return replace(step, numbers={**step.numbers, **before}, before=before)


def end_step(step: Step, total: PyTree) -> Step:
    """The step after the measure, with the numbers of `per_step`.

    Args:
        step: the result of `begin_step`.
        total: the sum of the measure of the first rule of the pass, or `None`.
    """
    rule, shared = step.rule, step.shared
    if rule.per_step is None:
        # Such a rule uses its count only for schedules.
        counted = {k: increment(x) for k, x in shared.items() if k == "count"}
        return replace(step, shared={**shared, **counted})
    numbers, *new = _call(rule.per_step, step, total=total)
    names = names_of(rule.per_step.function).arrays
    return replace(
        step,
        numbers={**step.numbers, **numbers},
        shared={**shared, **dict(zip(names, new, strict=True))},
    )


def at_count(rule: Rule, shared: Mapping[str, PyTree]) -> dict[str, object]:
    """The numbers of a rule, with the values of its schedules in this step.

    Args:
        rule: the rule.
        shared: the fields it keeps for the tree, by name.
    """
    return {name: _value(x, shared) for name, x in rule.numbers.items()}


def _value(x: Any, shared: Mapping[str, PyTree]) -> object:
    if isinstance(x, At):
        return jnp.asarray(x.schedule(shared[x.count]), float)
    return jnp.asarray(x(shared["count"]), float) if is_schedule(x) else x


def _call(per_step: PerStep, step: Step, **more: object) -> tuple[PyTree, ...]:
    have = {**more, **step.numbers, **step.shared}
    return result(call_by_name(per_step.function, have))


def set_aside(numbers: Iterable[T], done: Iterable[object] = ()) -> tuple[T, ...]:
    """The same numbers; those that are traced are `set_apart`.

    Args:
        numbers: arguments of formulas.
        done: numbers that already have a barrier.
    """
    flat, known = list(numbers), set(map(id, done))
    rest = [k for k, x in enumerate(flat) if id(x) not in known]
    if any(isinstance(flat[k], Tracer) for k in rest):
        barred = set_apart(tuple(flat[k] for k in rest))
        for k, x in zip(rest, barred, strict=True):
            flat[k] = x
    return tuple(flat)
