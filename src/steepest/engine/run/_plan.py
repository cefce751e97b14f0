"""Plans: what a transformation is made of, so that neighbours can be joined.

A plan is a row of links, each a rule or an ordinary transformation, and the two
functions that take its state apart, one piece for each link, and put it together
again. A chain of chains, and a chain under a mask, are plans as well: their links stand
in one row, and only the shape of the state remembers the nesting.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from typing import Any

import jax.numpy as jnp
from jaxtyping import Array

from ...core import (
    AnyTransformation,
    as_inner,
    EmptyState,
    GradientTransformationExtraArgs,
    OptState,
    Params,
    Rule,
    Transformation,
    transformation,
    Updates,
)
from ...numerics import zero_count
from ..leaves import Leaves, Mask, MaskedState
from ._segments import Detour, Link, Segment, segments


@dataclass(frozen=True, eq=False)
class Plan:
    """A row of links and the shape of their state. Its two methods are the pair."""

    links: tuple[Link, ...]
    split: Callable[[OptState], list[OptState]]  # the state -> one for each link
    join: Callable[[list[OptState]], OptState]  # and back

    @cached_property
    def _segments(self) -> list[Segment | Detour]:
        return segments(self.links)

    def init(self, params: Params) -> OptState:
        """The state before the first step."""
        leaves = Leaves(params, "params")
        return self.join([link.init(leaves) for link in self.links])

    def update(
        self,
        updates: Updates,
        state: OptState,
        params: Params | None = None,
        **extra_args: Any,
    ) -> tuple[Updates, OptState]:
        """One step."""
        old = iter(self.split(state))
        new: list[OptState] = []
        for segment in self._segments:
            mine = list(islice(old, segment.size))
            updates, kept = segment.update(updates, mine, params, extra_args)
            new += kept
        return updates, self.join(new)

    @property
    def pair(self) -> Transformation:
        """The plan as a transformation; `plan_of` finds it there again."""
        return Transformation(self.init, self.update, info=self)


def plan_of(name: str, place: str, tx: AnyTransformation) -> Plan:
    """What `tx` is made of; itself, if that cannot be seen.

    Args:
        name: name used in error messages.
        place: which of its arguments this is.
        tx: any transformation, also of another library.
    """
    tx = as_inner(name, place, tx)
    info = getattr(tx, "info", None)
    return info if isinstance(info, Plan) else _single(tx)


@transformation
def lift(rule: Rule) -> GradientTransformationExtraArgs:
    """The transformation that does to every leaf of a tree what `rule` does to one.

    Args:
        rule: the formula of one leaf, and what it keeps.
    """
    if not isinstance(rule, Rule):
        raise TypeError(
            f"lift: rule is a {type(rule).__name__}, expected a `Rule`: "
            "`lift(Rule(name, formula, State))`."
        )
    return _single(counting(rule) if rule.schedules else rule).pair


def counting(rule: Rule) -> Rule:
    """`rule`, which counts its steps, whether or not one of its numbers needs it.

    Args:
        rule: one with `counted`, or one that counts already, which stays as it is.
    """
    if "count" in rule.shared:
        return rule
    if rule.counted is None:
        raise TypeError(
            f"{rule.name}: {', '.join(rule.schedules)} is a schedule, but the rule has "
            "no count. Pass `counted`, a State with the field `count`."
        )
    return replace(rule, State=rule.counted, shared={"count": zero_count})


@transformation
def nothing() -> GradientTransformationExtraArgs:
    """The transformation without links: updates pass as they are."""
    return Plan((), lambda state: [], lambda states: EmptyState()).pair


@transformation
def still() -> GradientTransformationExtraArgs:
    """The transformation under which nothing moves, whatever follows it in a chain."""
    return lift(Rule("freeze", freeze_formula, kind="final"))


def freeze_formula(g: Array) -> Array:
    """`u = 0`."""
    return jnp.zeros_like(g)


def sequence(
    plans: Sequence[Plan],
    apart: Callable[[OptState], Sequence[OptState]],
    together: Callable[[list[OptState]], OptState],
) -> Plan:
    """One plan after the other.

    Args:
        plans: in the order they run.
        apart: the state of the sequence -> one for each plan.
        together: and back.
    """

    def split(state: OptState) -> list[OptState]:
        parts = zip(plans, apart(state), strict=True)
        return [piece for plan, part in parts for piece in plan.split(part)]

    def join(states: list[OptState]) -> OptState:
        rest = iter(states)
        parts = [list(islice(rest, len(plan.links))) for plan in plans]
        return together([p.join(part) for p, part in zip(plans, parts, strict=True)])

    return Plan(tuple(link for plan in plans for link in plan.links), split, join)


def under(mask: Mask, plan: Plan) -> Plan:
    """`plan` for the leaves that `mask` leaves over; the others pass as they are."""

    def split(state: OptState) -> list[OptState]:
        if not hasattr(state, "inner_state"):
            raise TypeError(
                f"{mask.who}: the state is a {type(state).__name__}, expected a "
                "MaskedState. Make the state with this transformation's own `init`."
            )
        return plan.split(state.inner_state)

    links = tuple(replace(link, masks=(mask, *link.masks)) for link in plan.links)
    return Plan(links, split, lambda states: MaskedState(plan.join(states)))


def _single(body: Rule | GradientTransformationExtraArgs) -> Plan:
    return Plan((Link(body),), lambda state: [state], lambda states: states[0])
