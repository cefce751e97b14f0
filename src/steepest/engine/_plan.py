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

from ..core import (
    AnyTransformation,
    as_inner,
    EmptyState,
    GradientTransformationExtraArgs,
    OptState,
    Params,
    Rule,
    Updates,
)
from ._leaves import Leaves
from ._masks import Mask, MaskedState
from ._stages import Detour, Link, Run, stages


@dataclass(frozen=True, eq=False)
class Plan:
    """A row of links and the shape of their state. Its two methods are the pair."""

    links: tuple[Link, ...]
    split: Callable[[OptState], list[OptState]]  # the state -> one for each link
    join: Callable[[list[OptState]], OptState]  # and back

    @cached_property
    def _stages(self) -> list[Run | Detour]:
        return stages(self.links)

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
        for stage in self._stages:
            mine = list(islice(old, stage.size))
            updates, kept = stage.update(updates, mine, params, extra_args)
            new += kept
        return updates, self.join(new)

    @property
    def pair(self) -> GradientTransformationExtraArgs:
        """The plan as a transformation; `plan_of` finds it there again."""
        return GradientTransformationExtraArgs(self.init, self.update)


def plan_of(who: str, place: str, tx: AnyTransformation) -> Plan:
    """What `tx` is made of; itself, if that cannot be seen.

    Args:
        who: who speaks in an error.
        place: which of its arguments this is.
        tx: any transformation, also of another library.
    """
    tx = as_inner(who, place, tx)
    owner = getattr(tx.init, "__self__", None)
    if isinstance(owner, Plan) and getattr(tx.update, "__self__", None) is owner:
        return owner
    return _single(tx)


def lift(rule: Rule) -> GradientTransformationExtraArgs:
    """The transformation that does to every leaf of a tree what `rule` does to one.

    Args:
        rule: the formula of one leaf, and what it keeps.
    """
    if not isinstance(rule, Rule):
        raise TypeError(
            f"lift: rule is a {type(rule).__name__}, and a `Rule` is wanted: "
            "`lift(Rule(name, State, leaf))`."
        )
    rule.check()
    return _single(rule).pair


def nothing() -> GradientTransformationExtraArgs:
    """The transformation without links: updates pass as they are."""
    return Plan((), lambda state: [], lambda states: EmptyState()).pair


def still() -> GradientTransformationExtraArgs:
    """The transformation under which nothing moves, whatever follows it in a chain."""
    hold = lambda n, g, p: jnp.zeros_like(g)
    return lift(Rule("freeze", EmptyState, hold, lasting=True))


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
                f"{mask.who}: the state is a {type(state).__name__}, and a MaskedState "
                "is wanted. Make the state with this transformation's own `init`."
            )
        return plan.split(state.inner_state)

    links = tuple(replace(link, masks=(mask, *link.masks)) for link in plan.links)
    return Plan(links, split, lambda states: MaskedState(plan.join(states)))


def _single(body: Rule | GradientTransformationExtraArgs) -> Plan:
    return Plan((Link(body),), lambda state: [state], lambda states: states[0])
