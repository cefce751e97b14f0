"""The formulas of neighbouring rules, joined into one compiled function of a leaf.

It is traced once per shape, and called for several leaves that are alike at once. It
is shared by all transformations that compute the same: a second `adam(1e-3)` compiles
nothing that the first one has compiled.
"""

from collections.abc import Callable, Sequence
from itertools import islice
from types import SimpleNamespace
from typing import Any, NamedTuple

import jax

from ..core import Rule
from ..numerics import wide_dtype
from ._dtypes import mixing, restore, widen
from ._templates import shared

Row = tuple[Any, ...]  # for one leaf, what each rule keeps, in the order of the names
Numbers = tuple[Any, ...]  # of all rules, in the order of their names
Job = tuple[Any, Any, Row]  # a leaf: its g, its p, and its row
Formula = Callable[[Sequence[Job], Numbers], list[tuple[Any, Row]]]


class _Layout(NamedTuple):
    """What the joined formulas need to know besides the functions."""

    rules: tuple[str, ...]  # their names
    memories: tuple[int, ...]  # for each rule, how many things it remembers of a leaf
    names: tuple[tuple[str, ...], ...]
    on: tuple[bool, ...]
    dtype: Any


def joined(
    rules: Sequence[Rule],
    names: tuple[tuple[str, ...], ...],
    on: tuple[bool, ...],
    dtype: Any,
) -> Formula:
    """The formulas of `rules`, one after the other, as one function of some leaves.

        ([(g, p, row), ...], numbers) -> [(u, row), ...]

    Args:
        rules: in the order they are applied.
        names: for each rule, those of its numbers.
        on: for each rule, whether it is applied at all.
        dtype: what `u` is returned in; `None` to leave it as wide as it was computed.
    """
    memories = tuple(len(rule.remember) for rule in rules)
    layout = _Layout(tuple(rule.name for rule in rules), memories, names, on, dtype)
    return shared(_joined, layout, *(rule.leaf for rule in rules))


def _joined(layout: _Layout, *formulas: Callable[..., Any]) -> Formula:
    """`joined`, of the functions alone."""

    def formula(g: Any, p: Any, row: Row, numbers: Numbers) -> tuple[Any, Row]:
        real = wide_dtype(jax.tree.leaves((g, p, row)))
        u, p = widen(g, real, integers=True), widen(p, real)
        kept, given = iter(row), iter(numbers)
        new: list[Any] = []
        with mixing([g, p]):
            for name, size, mine, applied, leaf in zip(
                *layout[:4], formulas, strict=True
            ):
                old = list(islice(kept, size))
                n = {name: widen(next(given), real) for name in mine}
                if not applied:
                    new += old
                    continue
                with jax.named_scope(name):
                    wide = jax.tree.map(lambda x: widen(x, real), old)
                    u, *out = result(leaf(SimpleNamespace(**n), u, p, *wide))
                new += jax.tree.map(lambda was, x: restore(x, was.dtype), old, out)
        u = u if layout.dtype is None else restore(u, layout.dtype)
        return u, tuple(new)

    pairs = zip(layout.rules, layout.on, strict=True)
    formula.__name__ = "_then_".join(name for name, applied in pairs if applied)
    # Inlined: a call less for each leaf, which XLA would have to inline itself.
    once = jax.jit(formula, inline=True)
    return lambda jobs, numbers: [once(*job, numbers) for job in jobs]


def measuring(
    measure: Callable[..., Any], names: tuple[str, ...]
) -> Callable[[Sequence[Job], Numbers], Any]:
    """The sum of `measure` over some leaves, each in the precision it computes in.

    Args:
        measure: as in a rule.
        names: those of the numbers it sees.
    """
    return shared(_measuring, names, measure)


def _measuring(names: tuple[str, ...], measure: Callable[..., Any]) -> Any:
    """`measuring`, the other way round."""

    @jax.jit
    def measured(g: Any, p: Any, row: Row, numbers: Numbers) -> Any:
        real = wide_dtype(jax.tree.leaves((g, p, row)))
        pairs = zip(names, numbers, strict=True)
        n = SimpleNamespace(**{name: widen(x, real) for name, x in pairs})
        g = widen(g, real, integers=True)
        p, row = jax.tree.map(lambda x: widen(x, real), (p, row))
        with mixing([g, p]):
            found = measure(n, g, p, *row)
        return jax.tree.map(lambda x: x.astype(float), found)

    def total(jobs: Sequence[Job], numbers: Numbers) -> Any:
        return summed([measured(*job, numbers) for job in jobs])

    return total


@jax.jit
def summed(found: list[Any]) -> Any:
    """The sum of what was measured."""
    return jax.tree.map(lambda *xs: sum(xs[1:], xs[0]), *found)


def result(returned: Any) -> tuple[Any, ...]:
    """What a rule returned, also when it is one thing alone, as a tuple."""
    return returned if isinstance(returned, tuple) else (returned,)
