"""The parts of a plan: segments of rules, and detours through other transformations."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby

import jax
from jaxtyping import PyTree

from ...core import (
    call_of,
    EmptyState,
    GradientTransformationExtraArgs,
    missing,
    OptState,
    Params,
    Rule,
    Updates,
)
from ..leaves import Leaves, LowBits, Mask, update_dtype, View, view_through, Window
from ._first_memory import first_memory
from ._pass import Pass

_ADVICE = "Pass the params the updates are for."


@dataclass(frozen=True, eq=False)
class Link:
    """A rule or another transformation, and its masks, outermost first."""

    body: Rule | GradientTransformationExtraArgs
    masks: tuple[Mask, ...] = ()
    storage: LowBits | None = None  # of the memory of a rule

    @property
    def name(self) -> str:
        """The name used in error messages and by `describe`."""
        if isinstance(self.body, Rule):
            return self.body.name
        call = call_of(self.body)
        if call is not None:
            return call.name
        # A function inside `scale_by_x` is called `scale_by_x.<locals>.update`.
        update = self.body.update
        name = getattr(update, "__qualname__", type(update).__name__)
        return name.split(".")[0]

    def view(self, leaves: Leaves) -> View:
        """The leaves that its masks select."""
        return view_through(self.masks, leaves)

    def init(self, params: Leaves) -> OptState:
        """The initial state of this link."""
        tree = self.view(params).hide(params.tree)
        if not isinstance(self.body, Rule):
            return self.body.init(tree)
        selected = Leaves(tree, params.name)
        if self.body.memory:
            selected.check(self.body.title)
        memory = first_memory(self.body, self.storage, selected)
        return self.body.State(**self.body.begin_shared(), **memory)


@dataclass(frozen=True, eq=False)
class Segment:
    """Neighbouring rules, run in passes over the leaves.

    A rule with a measure starts a new pass, and one with a matrix formula ends a pass.
    """

    links: tuple[Link, ...]
    strict: bool  # whether the params must match although no rule needs them
    again: tuple[Link, ...] = ()  # links of the plan to apply again, after these

    @property
    def size(self) -> int:
        """The number of its links."""
        return len(self.links)

    @cached_property
    def rules(self) -> list[Rule]:
        """The rules of its links, and of those applied again."""
        links = *self.links, *self.again
        return [link.body for link in links if isinstance(link.body, Rule)]

    @cached_property
    def passes(self) -> list[Pass]:
        """The rules, in as few passes as possible."""
        rows: list[list[Rule]] = []
        for rule in self.rules:
            ended = not rows or rows[-1][-1].matrix is not None
            if ended or rule.measure is not None:
                rows.append([])
            rows[-1].append(rule)
        return [Pass(row) for row in rows]

    def update(
        self,
        updates: Updates,
        states: Sequence[OptState],
        params: Params | None,
        extra: Mapping[str, object],
        lands: bool = False,
    ) -> tuple[Updates, list[OptState]]:
        """Run the passes. A leaf stays in float32 or wider until its last pass.

        Args:
            updates: the updates before this segment.
            states: the state of each link.
            params: the params, or `None`.
            extra: the extra arguments of `update`.
            lands: whether a leaf of the result may be `Landed`.
        """
        name = _titles(self.rules)
        if updates is None and any(map(_is_tree, (params, *self._memory(states)))):
            raise ValueError(
                f"{name}: the updates are None, expected a tree like the params. Pass "
                "the gradients: `tx.update(grads, state, params)`."
            )
        leaves = Leaves(updates)
        leaves.check(name)
        ps = self._params_of(leaves, params, extra)
        narrow = [
            None if g is None else update_dtype(g, p)
            for g, p in zip(leaves.arrays, ps, strict=True)
        ]
        views = _views([*self.links, *self.again], leaves)
        states = [*states, *(EmptyState() for _ in self.again)]
        new: list[OptState] = []
        for one in self.passes:
            last = one is self.passes[-1]
            mine = slice(len(new), len(new) + len(one.rules))
            later = views[mine.stop :]
            dtypes = [
                None if any(view.on[k] for view in later) else dtype
                for k, dtype in enumerate(narrow)
            ]
            leaves.arrays, kept = one.run(
                leaves, ps, dtypes, states[mine], views[mine], extra, lands and last
            )
            new += kept
        return leaves.like(leaves.arrays), new[: self.size]

    def _memory(self, states: Sequence[OptState]) -> list[PyTree]:
        """The memory of all rules."""
        pairs = zip(self.rules, states, strict=False)
        return [getattr(s, x, None) for rule, s in pairs for x in rule.memory]

    def _params_of(
        self, leaves: Leaves, params: Params | None, extra: Mapping[str, object]
    ) -> list[PyTree]:
        """The param of each leaf, or `None`s if there are none or they do not fit.

        Params that do not fit are an error if a rule needs them, or if `strict`.
        """
        arguments = {**extra, "params": params}
        for rule in self.rules:
            absent = [name for name in rule.needs if arguments.get(name) is None]
            if absent:
                raise missing(rule.title, *absent)
        if params is None:
            return [None] * len(leaves.arrays)
        needing = [rule for rule in self.rules if "params" in rule.needs]
        name = _titles(needing or self.rules)
        try:
            ps = leaves.match(name, params, "params", _ADVICE)
        except ValueError:
            if needing or self.strict:
                raise
            return [None] * len(leaves.arrays)
        for k, (g, p) in enumerate(zip(leaves.arrays, ps, strict=True)):
            if g is None or (p is None and not needing):
                continue
            if p is None or p.shape != g.shape:
                has = "nothing" if p is None else f"shape {p.shape}"
                raise ValueError(
                    f"{name}: leaf {leaves.path(k)} has shape {g.shape} in the updates "
                    f"and {has} in the params. {_ADVICE}"
                )
        return ps


@dataclass(frozen=True, eq=False)
class Detour:
    """A transformation that is not made of rules."""

    link: Link
    tx: GradientTransformationExtraArgs
    size: int = 1

    def update(
        self,
        updates: Updates,
        states: Sequence[OptState],
        params: Params | None,
        extra: Mapping[str, object],
        lands: bool = False,
    ) -> tuple[Updates, list[OptState]]:
        """Call it with the leaves that its masks select. The others are unchanged."""
        del lands
        (state,) = states
        if not self.link.masks:
            updates, state = self.tx.update(updates, state, params, **extra)
            return updates, [state]
        masks = self.link.masks
        window = Window(masks[0].name, self.link.view(Leaves(updates)), updates)
        all_trees = any(mask.extra_too for mask in masks)
        extra = window.extra(extra, params, all_trees=all_trees)
        selected, state = self.tx.update(
            window.updates, state, window.params(params), **extra
        )
        return window.back(selected), [state]


def segments(links: Sequence[Link]) -> list[Segment | Detour]:
    """The links in order, with neighbouring rules joined into segments."""
    parts: list[Segment | Detour] = []
    alone = all(isinstance(link.body, Rule) for link in links)
    for of_rules, group in groupby(links, lambda link: isinstance(link.body, Rule)):
        row = tuple(group)
        if of_rules:
            parts.append(Segment(row, strict=alone))
        for link in row:
            if not isinstance(link.body, Rule):
                parts.append(Detour(link, link.body))
    again = _applied_again(links)
    if again:
        last = (
            parts.pop() if isinstance(parts[-1], Segment) else Segment((), strict=False)
        )
        parts.append(replace(last, again=again))
    return parts


def _titles(rules: Sequence[Rule]) -> str:
    """The names used in an error message that is about several rules."""
    return ", ".join(dict.fromkeys(rule.title for rule in rules))


def _is_tree(x: PyTree) -> bool:
    """Whether `x` is a tree with leaves, and not itself a leaf."""
    leaves = jax.tree.leaves(x)
    return bool(leaves) and leaves[0] is not x


def _views(links: Sequence[Link], leaves: Leaves) -> list[View]:
    """The selected leaves of each link. Links with the same masks share one view."""
    known: dict[tuple[int, ...], View] = {}
    views = []
    for link in links:
        masks = tuple(map(id, link.masks))
        if masks not in known:
            known[masks] = link.view(leaves)
        views.append(known[masks])
    return views


def _applied_again(links: Sequence[Link]) -> tuple[Link, ...]:
    """The links that are applied again at the end of the plan.

    A link at the end of the plan is not applied twice.
    """
    rest = list(links)
    while rest and _is_final(rest[-1]):
        rest.pop()
    return tuple(filter(_is_final, rest))


def _is_final(link: Link) -> bool:
    return isinstance(link.body, Rule) and link.body.kind == "final"
