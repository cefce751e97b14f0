"""Plans: what a transformation is made of, so that neighbouring rules can be joined.

A plan is a list of links, each a rule or another transformation. It also has two
functions: one splits its state into one part per link, the other joins the parts. A
chain of chains and a masked chain are plans as well. Their links are in one flat list,
and only the structure of the state is nested.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice

import jax.numpy as jnp
from jaxtyping import Array

from ...core import (
    AnyTransformation,
    as_inner,
    called_by_user,
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
    """A list of links and the structure of their state."""

    links: tuple[Link, ...]
    split: Callable[[OptState], list[OptState]]  # the state -> one part for each link
    join: Callable[[list[OptState]], OptState]  # the inverse

    @cached_property
    def _segments(self) -> list[Segment | Detour]:
        return segments(self.links)

    @property
    def has_only_rules(self) -> bool:
        """Whether no link is a transformation that is not made of rules."""
        return all(isinstance(link.body, Rule) for link in self.links)

    def init(self, params: Params) -> OptState:
        """The state before the first step."""
        leaves = Leaves(params, "params")
        return self.join([link.init(leaves) for link in self.links])

    def update(
        self,
        updates: Updates,
        state: OptState,
        params: Params | None = None,
        **extra_args: object,
    ) -> tuple[Updates, OptState]:
        """One step."""
        return self.advance(updates, state, params, extra_args, lands=False)

    def advance(
        self,
        updates: Updates,
        state: OptState,
        params: Params | None,
        extra: Mapping[str, object],
        *,
        lands: bool = True,
    ) -> tuple[Updates, OptState]:
        """One step, whose updates are about to be added to the params.

        Args:
            updates: the gradients.
            state: the state.
            params: the params.
            extra: the extra arguments of `update`.
            lands: whether a leaf of the result may be `Landed`, a new param.
        """
        old = iter(self.split(state))
        new: list[OptState] = []
        for segment in self._segments:
            mine = list(islice(old, segment.size))
            last = segment is self._segments[-1]
            updates, kept = segment.update(updates, mine, params, extra, lands and last)
            new += kept
        return updates, self.join(new)

    @property
    def pair(self) -> Transformation:
        """The plan as a transformation. `plan_of` returns the plan of it."""
        return Transformation(self.init, self.update, info=self)


def plan_of(name: str, place: str, tx: AnyTransformation) -> Plan:
    """The plan of `tx`; if it has none, a plan with `tx` as its only link.

    Args:
        name: name used in error messages.
        place: the name of the argument in error messages.
        tx: any transformation, perhaps of another library.
    """
    tx = as_inner(name, place, tx)
    info = getattr(tx, "info", None)
    return info if isinstance(info, Plan) else _single(tx)


@transformation
def lift(rule: Rule) -> GradientTransformationExtraArgs:
    """Make a transformation of trees from a rule for one leaf.

    Args:
        rule: the formula for one leaf, and its memory.
    """
    if not isinstance(rule, Rule):
        raise TypeError(
            f"lift: rule is a {type(rule).__name__}, expected a `Rule`: "
            "`lift(Rule(name, formula, State))`."
        )
    return _single(counting(rule) if rule.schedules else rule).pair


def counting(rule: Rule) -> Rule:
    """`rule` with a count of its steps, even if no schedule needs it.

    Args:
        rule: a rule with `counted`. A rule that has a count is returned unchanged.
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
    """The transformation without links, which returns the updates unchanged."""
    return Plan((), lambda state: [], lambda states: EmptyState()).pair


@transformation
def frozen() -> GradientTransformationExtraArgs:
    """The transformation that freezes all leaves, whatever follows it in a chain."""
    return lift(Rule("freeze", freeze_formula, kind="final"))


def freeze_formula(g: Array) -> Array:
    """`u = 0`."""
    return jnp.zeros_like(g)


def sequence(
    plans: Sequence[Plan],
    apart: Callable[[OptState], Sequence[OptState]],
    together: Callable[[list[OptState]], OptState],
) -> Plan:
    """The plan that runs several plans, one after the other.

    Args:
        plans: the plans, in order.
        apart: the state of the sequence -> one state for each plan.
        together: the inverse.
    """

    def split(state: OptState) -> list[OptState]:
        parts = zip(plans, apart(state), strict=True)
        return [piece for plan, part in parts for piece in plan.split(part)]

    def join(states: list[OptState]) -> OptState:
        rest = iter(states)
        parts = [list(islice(rest, len(plan.links))) for plan in plans]
        return together([p.join(part) for p, part in zip(plans, parts, strict=True)])

    return Plan(tuple(link for plan in plans for link in plan.links), split, join)


def masked_plan(mask: Mask, plan: Plan) -> Plan:
    """`plan` for the leaves that `mask` selects. The others are unchanged."""
    name = called_by_user(mask.name)

    def split(state: OptState) -> list[OptState]:
        if not hasattr(state, "inner_state"):
            raise TypeError(
                f"{name}: the state is a {type(state).__name__}, expected a "
                "MaskedState. Make the state with this transformation's own `init`."
            )
        return plan.split(state.inner_state)

    links = tuple(replace(link, masks=(mask, *link.masks)) for link in plan.links)
    return Plan(links, split, lambda states: MaskedState(plan.join(states)))


def _single(body: Rule | GradientTransformationExtraArgs) -> Plan:
    return Plan((Link(body),), lambda state: [state], lambda states: states[0])
