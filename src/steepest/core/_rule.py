"""What a transformation does to one array, written as the paper writes it.

A rule for the mean of the gradient, `m <- b m + (1 - b) g`, with its bias undone:

    def prepare(step, count):               # once a step, for the whole tree
        t = increment(count)
        return {"c": debias(b, t)}, t       # numbers for the leaves; what is kept

    def leaf(n, g, p, m):                   # for each array
        m = b * m + (1 - b) * g
        return m / n.c, m                   # the update; what is kept

    Rule("ema", State, leaf, remember={"m": first_moment()},
         shared={"count": zero_count}, prepare=prepare)

The engine runs it on every tree and dtype: neither appears in a rule.
"""

from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple

from jaxtyping import Array

Kind = Literal["elementwise", "whole", "stackable"]


class Step(NamedTuple):
    """What `prepare` may look at."""

    total: Any  # the sum over all leaves of what `measure` returned; `None` in `ahead`
    extra: Mapping[str, Any]  # the extra arguments of `update`


class Rule(NamedTuple):
    """The parts of a transformation that treats every leaf alike.

    `State`'s fields are the names in `shared` and in `remember`. Both `prepare` and
    `leaf` return their result first and then, in the order of those names, what is to
    be kept; without anything to keep, the result alone. What is remembered of a leaf is
    an array, or, where the rule is not elementwise, perhaps several in a list or tuple.
    """

    name: str  # who speaks in an error
    State: type  # the NamedTuple of what is kept
    leaf: Callable[..., Any]  # (n, g, p, *memory) -> (u, *memory): the formula
    remember: Mapping[str, Callable[[Array], Any]] = {}  # for each leaf: p -> array
    shared: Mapping[str, Callable[[], Any]] = {}  # for the tree: () -> array
    prepare: Callable[..., Any] | None = None  # (step, *shared) -> (numbers, *shared)
    # (n, g, p, *memory) -> scalars, summed over the leaves before `prepare`
    measure: Callable[..., Any] | None = None
    # (step, *shared) -> numbers: what `measure` sees as `n`; the total is not known yet
    ahead: Callable[..., Mapping[str, Any]] | None = None
    needs: tuple[str, ...] = ()  # of `params` and the extra arguments, those it needs
    # What the engine may do with the formula.
    #   elementwise: any split of the array gives the same answer
    #   whole: needs all of the array, one leaf at a time
    #   stackable: heavy, for matrices: equal shapes may be stacked and `vmap`ped
    kind: Kind = "elementwise"
