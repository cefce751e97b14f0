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
from typing import Any, get_args, Literal, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array

from ._mesh import MeshAxes
from ._options import choice, function

Kind = Literal["elementwise", "whole", "stackable"]


class Step(NamedTuple):
    """What `prepare` may look at."""

    total: Any  # the sum over all leaves of what `measure` returned; `None` in `ahead`
    extra: Mapping[str, Any]  # the extra arguments of `update`
    # What `ahead` returned. If `prepare` hands these on, and does not compute them
    # again, XLA sees that `measure` and `leaf` compute the same.
    ahead: Mapping[str, Any] = {}


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
    # Inside `jax.shard_map`: the mesh axes to sum over what `measure` returns
    axes: MeshAxes | None = None
    needs: tuple[str, ...] = ()  # of `params` and the extra arguments, those it needs
    # What the engine may do with the formula.
    #   elementwise: any split of the array gives the same answer
    #   whole: needs all of the array, one leaf at a time
    #   stackable: has a heavy part, and equal matrices go through that in one stack
    kind: Kind = "elementwise"
    # (n, u) -> u, of one matrix, for the u that `leaf` returns: many products, say. It
    # must give a turned matrix its result turned.
    heavy: Callable[..., Any] | None = None
    shows: Callable[..., Mapping[str, Any]] | None = None  # (*shared) -> for people
    Counted: type | None = None  # the State it has with a schedule for its number
    # Whether its word is the last: after all that follows it in a chain it is applied
    # once more. Only for a rule that keeps nothing and needs nothing.
    lasting: bool = False
    # g -> what is wrong with it, to be read after "leaf ['w']"; `None` where nothing is
    refuse: Callable[[Any], str | None] | None = None

    def check(self) -> None:
        """That the parts belong together: functions, and fields for what is kept."""
        function(self.name, leaf=self.leaf, **self.remember, **self.shared)
        kept = (*self.shared, *self.remember)
        fields = getattr(self.State, "_fields", ())
        if set(kept) != set(fields):
            raise TypeError(
                f"{self.name}: State has the fields {fields}, and the rule keeps "
                f"{kept}: a NamedTuple with a field for each is wanted."
            )
        choice(self.name, get_args(Kind), kind=self.kind)
        if (self.heavy is not None) != (self.kind == "stackable"):
            raise TypeError(
                f"{self.name}: kind is {self.kind!r} and heavy is {self.heavy!r}, and "
                "a heavy formula is wanted in a stackable rule, and in no other."
            )


def only_real(g: Any) -> str | None:
    """For `refuse`: what is wrong with a complex leaf where numbers are compared."""
    if not jnp.issubdtype(g.dtype, jnp.complexfloating):
        return None
    return (
        f"is {g.dtype}, and a real one is wanted: complex numbers have no order. Put "
        "`contrib.split_real_and_imaginary` around the transformation."
    )
