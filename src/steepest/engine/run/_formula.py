"""The formulas of neighbouring rules, joined into one compiled function.

It is traced once per shape, and one call handles several similar leaves. All
transformations with the same formulas and constants share it: a second `adam(1e-3)`
uses what the first one compiled. So does `adam(1e-2)` outside `jit`, where numbers that
only multiply are arguments of the compiled function.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from itertools import islice
from typing import Literal, NamedTuple

import jax
import numpy as np
from jaxtyping import Array, PyTree

from ...core import call_by_name, names_of, OPERANDS, Real, Rule, Static
from ...numerics import Corrected, in_tiles, inlined, on_cuda, read_twice
from ..leaves import (
    Leaf,
    mixing,
    plus,
    restore,
    restore_like,
    wide_dtype_of,
    widen,
    widen_all,
)

Row = tuple[PyTree, ...]  # the memory of one leaf, rule by rule
Numbers = tuple[Real, ...]  # the arguments of all formulas, one after the other
Weight = Array | Corrected  # a param, as it is stored
Job = tuple[Leaf, Leaf | Corrected | None, Row]  # one leaf: g, p, and its row
Formula = Callable[[Sequence[Job], Numbers], list[tuple["Array | Landed", Row]]]
COMPILED = 128  # cached formulas; one for two small leaves takes about 3.5 MB


class Landed(NamedTuple):
    """A new param, in place of its update: a kernel has added the two."""

    param: PyTree


# How to compute the formulas of a leaf: in the usual way; with memory in few bits that
# is read twice; in one kernel; or in one that also adds the update to the param.
Way = Literal["plain", "twice", "kernel", "landing"]


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
        self,
        kept: Mapping[str, PyTree],
        new: Sequence[PyTree],
        read: Mapping[str, PyTree] | None = None,
        *,
        late: bool = False,
    ) -> dict[str, PyTree]:
        """The new memory by name, stored like the old one.

        Args:
            kept: the old memory, as it is stored.
            new: the values that the function returned after its result.
            read: the old memory, as the function got it. What it returned as it was is
                not stored again.
            late: whether a `Sum` is left for later.
        """
        named = [k for k in names_of(self.function).arrays if k in kept]
        if len(named) != len(new):
            raise TypeError(
                f"{self.name}: {self.function.__name__} returns {len(new)} arrays of "
                f"memory, expected {len(named)}: {', '.join(named) or 'none'}."
            )
        like = partial(restore_like, late=late)
        fresh = {
            k: like(kept[k], x, None if read is None else read[k])
            for k, x in zip(named, new, strict=True)
        }
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
    parts: tuple[Part, ...],
    on: tuple[bool, ...],
    dtype: np.dtype | None,
    way: Way = "plain",
) -> Formula:
    """Several formulas, applied one after the other, as one function of some leaves.

        ([(g, p, row), ...], numbers) -> [(u, row), ...]

    Args:
        parts: the formulas, in the order they are applied.
        on: for each formula, whether it is applied.
        dtype: the dtype of `u`; `None` to return it in the dtype of the computation.
        way: how to compute it.
    """

    def formula(
        g: Array, p: Weight | None, row: Row, numbers: Numbers
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

    def updating(
        row: Row, given: tuple[Array, Weight | None], numbers: Numbers
    ) -> tuple[Row, Array]:
        g, p = given
        u, row = formula(g, p, row, numbers)
        return row, u

    def landing(
        kept: tuple[Weight, Row], g: Array, numbers: Numbers
    ) -> tuple[tuple[Weight, Row], None]:
        p, row = kept
        u, row = formula(g, p, row, numbers)
        return (plus(p, u), row), None

    def stored(
        g: Array, p: Weight | None, row: Row, numbers: Numbers
    ) -> tuple[Array | Landed, Row]:
        if way == "plain":
            return formula(g, p, row, numbers)
        if way == "landing":
            (p, row), _ = _on_cuda(in_tiles, landing, (p, row), g, numbers)
            return Landed(p), row
        run = in_tiles if way == "kernel" else read_twice
        row, u = _on_cuda(run, updating, row, (g, p), numbers)
        return u, row

    pairs = zip(parts, on, strict=True)
    stored.__name__ = "_then_".join(part.name for part, applied in pairs if applied)
    once = inlined(stored)
    return jax.jit(lambda jobs, numbers: [once(*job, numbers) for job in jobs])


def _on_cuda(
    run: Callable[..., tuple[PyTree, PyTree]],
    step: Callable[..., tuple[PyTree, PyTree]],
    *arguments: PyTree,
) -> tuple[PyTree, PyTree]:
    """`step(*arguments)`, computed by `run` on a GPU of NVIDIA.

    Args:
        run: `in_tiles` or `read_twice`.
        step: `(kept, given, numbers) -> (kept, other results)`.
        arguments: those of `step`.
    """
    return on_cuda(partial(run, step), step, *arguments)


@lru_cache(maxsize=COMPILED)
def measuring(part: Part) -> Callable[[Sequence[Job], Numbers], PyTree]:
    """The sum of a rule's measure over some leaves, each in its own precision.

    Args:
        part: the function of the rule's `measure`.
    """

    @jax.jit
    def measured(g: Array, p: Weight | None, row: Row, numbers: Numbers) -> PyTree:
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


def one_matrix(
    part: Part, x: Array, row: Row, numbers: Numbers, *, late: bool = False
) -> tuple[Array, Row]:
    """The matrix formula for one matrix.

    Args:
        part: the matrix formula.
        x: the matrix.
        row: its memory.
        numbers: the arguments of `part`.
        late: whether a `Sum` is left for later.
    """
    real = wide_dtype_of((x, row))
    old = dict(zip(part.memory, row, strict=True))
    memory, mine = widen_all((old, numbers), real)
    with mixing([x]):
        u, *new = result(part({"g": x, **memory}, mine))
    return u, tuple(part.renewed(old, new, memory, late=late).values())


def result(returned: PyTree) -> tuple[PyTree, ...]:
    """The return value of a function of a rule, as a tuple."""
    return returned if isinstance(returned, tuple) else (returned,)
