"""The formulas of neighbouring rules, joined into one compiled function.

It is traced once per shape, and one call handles several similar leaves. All
transformations with the same formulas and constants share it: a second `adam(1e-3)`
uses what the first one compiled. So does `adam(1e-2)` outside `jit`, where numbers that
only multiply are arguments of the compiled function.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from typing import NamedTuple

import jax
import numpy as np
from jaxtyping import Array, PyTree

from ...core import call_by_name, names_of, OPERANDS, Real, Rule, Static
from ...numerics import inlined
from ..leaves import (
    Leaf,
    mixing,
    restore,
    restore_like,
    wide_dtype_of,
    widen,
    widen_all,
)

Row = tuple[PyTree, ...]  # the memory of one leaf, rule by rule
Numbers = tuple[Real, ...]  # the arguments of all formulas, one after the other
Job = tuple[Leaf, Leaf | None, Row]  # one leaf: g, p, and its row
Formula = Callable[[Sequence[Job], Numbers], list[tuple[Array, Row]]]
COMPILED = 128  # cached formulas; one for two small leaves takes about 3.5 MB


class Part(NamedTuple):
    """A function of a rule and its constants. It is hashable, so it can be cached."""

    name: str  # of the rule
    function: Callable[..., PyTree]
    memory: tuple[str, ...]  # the names of the rule's memory, in the order of a row
    constants: Static  # pairs of a name and a number
    arguments: tuple[str, ...]  # the names of the other numbers

    def __call__(self, arrays: Mapping[str, PyTree], numbers: Sequence[Real]) -> PyTree:
        """Call the function.

        Args:
            arrays: `g`, `p` and the memory, by name.
            numbers: the values of `arguments`.
        """
        arguments = dict(zip(self.arguments, numbers, strict=True))
        have = {**dict(self.constants.values), **arguments, **arrays}
        with jax.named_scope(self.name):
            return call_by_name(self.function, have)

    def renewed(
        self, kept: Mapping[str, PyTree], new: Sequence[PyTree]
    ) -> dict[str, PyTree]:
        """The new memory by name, stored like the old one.

        Args:
            kept: the old memory, as it is stored.
            new: the values that the function returned after its result.
        """
        named = [k for k in names_of(self.function).arrays if k in kept]
        if len(named) != len(new):
            raise TypeError(
                f"{self.name}: {self.function.__name__} returns {len(new)} arrays of "
                f"memory, expected {len(named)}: {', '.join(named) or 'none'}."
            )
        fresh = {k: restore_like(kept[k], x) for k, x in zip(named, new, strict=True)}
        return {**kept, **fresh}


def part_of(
    rule: Rule,
    function: Callable[..., PyTree],
    numbers: Mapping[str, object],
    *,
    operands: bool,
) -> tuple[Part, list[Real]]:
    """A function of `rule`, and the values of the numbers that are its arguments.

    Arrays are arguments, and Python numbers are constants.

    Args:
        rule: the rule.
        function: one of its functions.
        numbers: the numbers of the rule and of this step, by name.
        operands: whether Python numbers that only multiply are arguments, too. This is
            for calls outside `jit`, so that one program serves all their values.
    """
    constants: list[tuple[str, object]] = []
    arguments: dict[str, Real] = {}
    for name in names_of(function).numbers:
        if name not in numbers:
            continue  # it has a default
        x = numbers[name]
        may_be_operand = operands and name in OPERANDS
        if isinstance(x, Array) or (may_be_operand and isinstance(x, float)):
            arguments[name] = x
        else:
            constants.append((name, x))
    part = Part(
        rule.name, function, rule.memory_names, Static(constants), tuple(arguments)
    )
    return part, list(arguments.values())


@lru_cache(maxsize=COMPILED)
def joined(
    parts: tuple[Part, ...], on: tuple[bool, ...], dtype: np.dtype | None
) -> Formula:
    """Several formulas, applied one after the other, as one function of some leaves.

        ([(g, p, row), ...], numbers) -> [(u, row), ...]

    Args:
        parts: the formulas, in the order they are applied.
        on: for each formula, whether it is applied.
        dtype: the dtype of `u`; `None` to return it in the dtype of the computation.
    """

    def formula(
        g: Array, p: Array | None, row: Row, numbers: Numbers
    ) -> tuple[Array, Row]:
        real = wide_dtype_of((g, p, row))
        u = widen(g, real, integers=True)
        p = None if p is None else widen(p, real)
        columns, arguments = iter(row), iter(numbers)
        new: list[PyTree] = []
        with mixing([g, p]):
            for part, applied in zip(parts, on, strict=True):
                old = dict(zip(part.memory, columns, strict=False))
                mine = islice(arguments, len(part.arguments))
                values = [widen(x, real) for x in mine]
                if applied:
                    wide = widen_all(old, real)
                    u, *out = result(part({"g": u, "p": p, **wide}, values))
                    old = part.renewed(old, out)
                new += old.values()
        return u if dtype is None else restore(u, dtype), tuple(new)

    pairs = zip(parts, on, strict=True)
    formula.__name__ = "_then_".join(part.name for part, applied in pairs if applied)
    once = inlined(formula)
    return jax.jit(lambda jobs, numbers: [once(*job, numbers) for job in jobs])


@lru_cache(maxsize=COMPILED)
def measuring(part: Part) -> Callable[[Sequence[Job], Numbers], PyTree]:
    """The sum of a rule's measure over some leaves, each in its own precision.

    Args:
        part: the function of the rule's `measure`.
    """

    @jax.jit
    def measured(g: Array, p: Array | None, row: Row, numbers: Numbers) -> PyTree:
        real = wide_dtype_of((g, p, row))
        g = widen(g, real, integers=True)
        p, row, mine = widen_all((p, row, numbers), real)
        memory = dict(zip(part.memory, row, strict=True))
        with mixing([g, p]):
            measurement = part({"g": g, "p": p, **memory}, mine)
        return jax.tree.map(lambda x: x.astype(float), measurement)

    return jax.jit(
        lambda jobs, numbers: summed([measured(*job, numbers) for job in jobs])
    )


@jax.jit
def summed(measurements: list[PyTree]) -> PyTree:
    """The sum of several measurements, field by field."""
    return jax.tree.map(lambda *xs: sum(xs[1:], xs[0]), *measurements)


def one_matrix(part: Part, x: Array, row: Row, numbers: Numbers) -> tuple[Array, Row]:
    """The matrix formula for one matrix.

    Args:
        part: the matrix formula.
        x: the matrix.
        row: its memory.
        numbers: the arguments of `part`.
    """
    real = wide_dtype_of((x, row))
    wide = lambda tree: jax.tree.map(lambda a: widen(a, real), tree)
    old = dict(zip(part.memory, row, strict=True))
    with mixing([x]):
        u, *new = result(part({"g": x, **wide(old)}, wide(numbers)))
    return u, tuple(part.renewed(old, new).values())


def result(returned: PyTree) -> tuple[PyTree, ...]:
    """The return value of a function of a rule, as a tuple."""
    return returned if isinstance(returned, tuple) else (returned,)
