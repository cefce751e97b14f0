"""The formulas of neighbouring rules, joined into one compiled function of a leaf.

It is traced once per shape, and called for several leaves that are alike at once. It
is shared by all transformations that compute the same: a second `adam(1e-3)` compiles
nothing that the first one has compiled.
"""

from collections.abc import Callable, Hashable, Sequence
from itertools import islice
from types import FunctionType, SimpleNamespace
from typing import Any

import jax

from ..core import Known, Recent, Rule
from ..numerics import wide_dtype
from ._dtypes import mixing, restore, widen

Row = tuple[Any, ...]  # for one leaf, what each rule keeps, in the order of the names
Numbers = tuple[Any, ...]  # of all rules, in the order of their names
Job = tuple[Any, Any, Row]  # a leaf: its g, its p, and its row
Formula = Callable[[Sequence[Job], Numbers], list[tuple[Any, Row]]]

# A compiled formula of two small leaves takes about 3.5 MB, so 128 of them take 450.
# A transformation holds its own besides: what is dropped here still runs there.
_COMPILED: Recent[Callable[..., Any]] = Recent(128)


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

    def formula(g: Any, p: Any, row: Row, numbers: Numbers) -> tuple[Any, Row]:
        real = wide_dtype(jax.tree.leaves((g, p, row)))
        u, p = widen(g, real, integers=True), widen(p, real)
        kept, given = iter(row), iter(numbers)
        new: list[Any] = []
        with mixing([g, p]):
            for rule, mine, applied in zip(rules, names, on, strict=True):
                old = list(islice(kept, len(rule.remember)))
                n = {name: widen(next(given), real) for name in mine}
                if not applied:
                    new += old
                    continue
                with jax.named_scope(rule.name):
                    wide = jax.tree.map(lambda x: widen(x, real), old)
                    u, *out = result(rule.leaf(SimpleNamespace(**n), u, p, *wide))
                new += jax.tree.map(lambda was, x: restore(x, was.dtype), old, out)
        return u if dtype is None else restore(u, dtype), tuple(new)

    applied = [rule for rule, yes in zip(rules, on, strict=True) if yes]
    formula.__name__ = "_then_".join(rule.name for rule in applied)
    # Inlined: a call less for each leaf, which XLA would have to inline itself.
    once = jax.jit(formula, inline=True)

    def formulas(jobs: Sequence[Job], numbers: Numbers) -> list[tuple[Any, Row]]:
        return [once(*job, numbers) for job in jobs]

    layout = str(dtype), on, names, tuple(len(rule.remember) for rule in rules)
    return shared(formulas, layout, *(fingerprint(rule.leaf) for rule in rules))


def measuring(
    measure: Callable[..., Any], names: tuple[str, ...]
) -> Callable[[Sequence[Job], Numbers], Any]:
    """The sum of `measure` over some leaves, each in the precision it computes in.

    Args:
        measure: as in a rule.
        names: those of the numbers it sees.
    """

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

    return shared(total, "measure", names, fingerprint(measure))


@jax.jit
def summed(found: list[Any]) -> Any:
    """The sum of what was measured."""
    return jax.tree.map(lambda *xs: sum(xs[1:], xs[0]), *found)


def result(returned: Any) -> tuple[Any, ...]:
    """What a rule returned, also when it is one thing alone, as a tuple."""
    return returned if isinstance(returned, tuple) else (returned,)


def fingerprint(x: Any, inside: tuple[Any, ...] = ()) -> Hashable:
    """Equal for two functions of the same code over the same numbers.

    `None` for what must not be kept beyond its time: an array, perhaps a traced one,
    and a function over one.

    Args:
        x: a function, or something it is made of.
        inside: the functions this one was found in.
    """
    if isinstance(x, jax.Array | Known):
        return None
    if isinstance(x, FunctionType) and not any(x is f for f in inside):
        parts = [fingerprint(part, (*inside, x)) for part in _made_of(x)]
        return None if None in parts else (_Itself(x.__code__), *parts)
    if isinstance(x, bool | int | float | str | None):
        return type(x), x
    return _Itself(x)


def _made_of(f: FunctionType) -> list[Any]:
    """What a function holds besides its code."""
    cells = [cell.cell_contents for cell in f.__closure__ or ()]
    return [*cells, *(f.__defaults__ or ()), *(f.__kwdefaults__ or {}).values()]


class _Itself:
    """A thing, equal to itself alone, which it keeps alive."""

    def __init__(self, thing: Any):
        self.thing = thing

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Itself) and self.thing is other.thing

    def __hash__(self) -> int:
        return id(self.thing)


def shared(f: Callable[..., Any], *key: Hashable) -> Any:
    """`f` compiled, or what was compiled for the same key before."""
    if None in key:
        return jax.jit(f)
    return _COMPILED(key, lambda: jax.jit(f))
