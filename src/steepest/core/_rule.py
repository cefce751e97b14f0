"""What a transformation does to one array, written as the paper writes it.

A rule for the mean of the gradient, `m <- b m + (1 - b) g`, with bias correction:

    @gives("c")
    def corrected(count, *, b):             # once a step, for the whole tree
        t = increment(count)
        return {"c": debias(b, t)}, t       # numbers for the formula; the new count

    def ema_formula(g, m, *, b, c):         # for each array
        m = b * m + (1 - b) * g
        return m / c, m                     # the update; the new memory

    Rule("ema", ema_formula, State, memory={"m": first_moment()},
         shared={"count": zero_count}, numbers={"b": 0.9}, per_step=corrected)

The names in their signatures connect the functions of a rule. Positional arguments are
arrays: `g`, `p` for the param, and memory. Keyword-only arguments are numbers. A
function returns its result, then the new values of the memory in its signature, in that
order; without memory it returns only the result. The engine applies a rule to any tree
and dtype: neither appears in the rule.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, get_args, Literal, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, PyTree

from ._calling import called_by_user
from ._mesh import MeshAxes
from ._signature import names_of
from ._static import Static
from ._transformation import EmptyState
from ._types import Param, Real, ScalarOrSchedule, Schedule

T = TypeVar("T")

Kind = Literal["elementwise", "whole", "final"]


class PerStep(NamedTuple):
    """A function that runs once per step, for the whole tree. Made by `gives`."""

    function: Callable[..., Any]
    gives: tuple[str, ...]  # the names of the numbers it computes


def gives(*names: str) -> Callable[[Callable[..., object]], PerStep]:
    """Decorate the `per_step` of a rule, or the `before` of a measure.

    Positional arguments of the function are fields that the rule keeps for the tree.
    Keyword-only arguments are numbers of the rule, `total` (the sum of the measure),
    and extra arguments. The function returns a dict of numbers, then the new values of
    its positional arguments.

    Args:
        names: the keys of that dict.
    """
    return lambda function: PerStep(function, names)


class Measure(NamedTuple):
    """Scalars that are summed over all leaves. `per_step` gets the sum as `total`."""

    function: Callable[..., object]  # (g, p, *memory, *, numbers) -> scalars
    # (*shared, *, numbers) -> numbers for `function`, `per_step` and `formula`. Since
    # all three get the same values, XLA can share what they compute.
    before: PerStep | None = None
    axes: MeshAxes | None = None  # inside `jax.shard_map`: the mesh axes to sum over


class Every(NamedTuple):
    """A change of memory that is too expensive for every step.

    Either `k` or `due` says when it happens. Derivatives do not flow through it.
    """

    formula: Callable[..., object]  # (g, *memory, *, numbers) -> the values of `writes`
    writes: tuple[str, ...]  # the names of the memory that it changes
    # The name of a number k: the matrices take turns, so that each has its turn in
    # every k-th step or more often, and all steps take about the same time.
    k: str | None = None
    due: str | None = None  # the name of a boolean: all matrices, in steps where it is
    # The name of a number: about how many steps are between two where `due` is true.
    period: str | None = None
    # The memory is a pair for each matrix, for its rows and its columns, and `formula`
    # gets one of each pair, and no `g`. It is not called where a part is `None`.
    sides: bool = False


class Matrix(NamedTuple):
    """A formula for one matrix. Matrices of equal shape run through it as one stack.

    Its `g` is the result of the rule's other formula. A formula without memory must
    commute with transposition, since tall and wide matrices share a stack. In a step,
    `before` runs first, then `every`, then `formula`.
    """

    formula: Callable[..., object]  # (g, *memory, *, numbers) -> (u, *memory)
    # (shape, *, numbers) -> (*stack, m, n): a leaf with more axes as matrices
    fold: Callable[..., tuple[int, ...]] | None = None
    every: Every | None = None
    before: Callable[..., object] | None = None  # of the kind of `formula`
    # The mesh axes whose devices share the matrices of a stack; empty to let the
    # compiler divide the work.
    reshard: tuple[str, ...] = ()
    # Whether memory is kept in stacks even without `reshard`.
    keep_stacks: bool = False

    @property
    def functions(self) -> list[Callable[..., object]]:
        """The functions that run in a step, in their order."""
        every = None if self.every is None else self.every.formula
        return [f for f in (self.before, every, self.formula) if f is not None]

    @property
    def arrays(self) -> set[str]:
        """The names of the arrays that these functions get."""
        return {name for f in self.functions for name in names_of(f).arrays}


class At(NamedTuple):
    """A schedule among the numbers of a rule that depends on another count."""

    count: str  # the field of `shared` that it depends on
    schedule: Schedule

    @classmethod
    def of(cls, count: str, x: ScalarOrSchedule) -> "At | Real":
        """`x` if it is a number; a schedule of this count if it is a function."""
        return cls(count, x) if callable(x) else x


@dataclass(frozen=True, eq=False)
class Rule:
    """A formula and its data."""

    name: str
    formula: Callable[..., object]  # (g, p, *memory, *, numbers) -> (u, *memory)
    State: type = EmptyState  # the NamedTuple whose fields are `shared` and `memory`
    # Kept for each leaf: (p, *, numbers) -> an array. A rule that is not elementwise
    # may return several, in a list or tuple. `reshard` of `matrix` is one of the
    # numbers.
    memory: Mapping[str, Callable[..., object]] = field(default_factory=dict)
    # Kept once for the tree: (*, numbers) -> an array.
    shared: Mapping[str, Callable[..., object]] = field(default_factory=dict)
    # Hyperparameters. A function is a schedule: each step uses its value at `count`.
    numbers: Mapping[str, Any] = field(default_factory=dict)
    per_step: PerStep | None = None  # (*shared, *, numbers) -> (numbers, *shared)
    measure: Measure | None = None  # a sum over all leaves
    matrix: Matrix | None = None  # a second formula, for matrices in stacks
    extra: tuple[str, ...] = ()  # extra arguments of `update` that count as numbers
    # What the engine may do with the formula.
    #   elementwise: the array may be split in any way
    #   whole: the formula needs the whole array, one leaf at a time
    #   final: elementwise, and applied again at the end of the chain; only for rules
    #       without memory and numbers
    kind: Kind = "elementwise"
    counted: type | None = None  # the State to use if a number is a schedule
    # g -> the end of an error message, to be read after "leaf ['w']", or `None`
    check_leaf: Callable[[Array], str | None] | None = None
    # Used in error messages: the function that the user called. A rule that replaces
    # another later keeps its title.
    title: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "title", self.title or called_by_user(self.name))
        for part, f in {"formula": self.formula, **self.memory, **self.shared}.items():
            if not callable(f):
                raise TypeError(
                    f"{self.name}: {part} is a {type(f).__name__}, expected a function."
                )
        kept = (*self.shared, *self.memory)
        fields = getattr(self.State, "_fields", ())
        if set(kept) != set(fields):
            raise TypeError(
                f"{self.name}: State has the fields {fields}, but the rule keeps "
                f"{kept}. Pass a NamedTuple with a field for each."
            )
        if self.kind not in get_args(Kind):
            raise ValueError(
                f"{self.name}: kind is {self.kind!r}, expected one of: "
                f"{', '.join(get_args(Kind))}."
            )
        self._check_names()

    @property
    def is_elementwise(self) -> bool:
        """Whether an array may be split in any way."""
        return self.kind != "whole" and self.matrix is None

    @property
    def schedules(self) -> dict[str, object]:
        """The numbers that are functions of `count`."""
        numbers = self.numbers.items()
        return {k: x for k, x in numbers if is_schedule(x) and not isinstance(x, At)}

    @property
    def stacked(self) -> tuple[str, ...]:
        """The fields of the memory that is kept in stacks of matrices.

        With `reshard` or `keep_stacks`, that is what the matrix formulas use, so that
        it is where the matrices are computed, and is not copied. If the rule's formula
        uses some of it, it is computed there too, and cannot use `p`.
        """
        if self.matrix is None or not (self.matrix.reshard or self.matrix.keep_stacks):
            return ()
        asked = self.matrix.arrays
        pairs = zip(self.memory, self.memory_names, strict=True)
        fields = {name: field for field, name in pairs if name in asked}
        mine = names_of(self.formula).arrays
        return () if "p" in mine and fields.keys() & {*mine} else (*fields.values(),)

    @property
    def formula_is_stacked(self) -> bool:
        """Whether the rule's formula uses memory that is kept in stacks."""
        names = dict(zip(self.memory, self.memory_names, strict=True))
        mine = names_of(self.formula).arrays
        return any(names[field] in mine for field in self.stacked)

    @property
    def memory_names(self) -> tuple[str, ...]:
        """The names of the memory in signatures: `last_g` for a field called `g`.

        `g` and `p` already mean the gradient and the param.
        """
        return tuple(f"last_{k}" if k in ("g", "p") else k for k in self.memory)

    def begin(
        self, p: object, fields: Collection[str] | None = None
    ) -> dict[str, PyTree]:
        """The initial memory of a leaf, by field.

        Args:
            p: the param, or its shape.
            fields: the fields of the memory to make; by default all.
        """
        wanted = self.memory if fields is None else fields
        rows = self.memory.items()
        return {k: f(p, **self.asked_by(f)) for k, f in rows if k in wanted}

    def begin_shared(self) -> dict[str, PyTree]:
        """The initial values of what is kept for the tree, by name."""
        return {k: f(**self.asked_by(f)) for k, f in self.shared.items()}

    def asked_by(self, f: Callable[..., object]) -> dict[str, object]:
        """The numbers of the rule in the signature of `f`, by name."""
        have = dict(self.numbers)
        if self.matrix is not None:
            have["reshard"] = self.matrix.reshard
        return {k: have[k] for k in names_of(f).numbers if k in have}

    @property
    def needs(self) -> tuple[str, ...]:
        """The required ones of `params` and the extra arguments of `update`.

        An argument is required if a signature has it without a default.
        """
        asked = [names_of(f) for f in self._functions()]
        wanted = {k for names in asked for k in names.all if k not in names.optional}
        extra = tuple(k for k in self.extra if k in wanted)
        return ("params", *extra) if "p" in wanted else extra

    def _functions(self) -> list[Callable[..., object]]:
        """The functions that run in a step."""
        functions: list[Any] = [self.formula, self.per_step]
        if self.measure is not None:
            functions += [self.measure.function, self.measure.before]
        if self.matrix is not None:
            functions += self.matrix.functions
        parts = (getattr(f, "function", f) for f in functions)  # of a `PerStep`
        return [f for f in parts if f is not None]

    def _check_names(self) -> None:
        """Check that every name in a signature has a value."""
        measure, matrix = self.measure or Measure(only_real), self.matrix
        before = self._gives("measure.before", measure.before)
        given = self._gives("per_step", self.per_step)
        first = (*self.numbers, *self.extra)
        numbers, total = (*first, *before), ("total",) if self.measure else ()
        leaf, last = ("g", "p", *self.memory_names), (*numbers, *given)
        self._check_function(self.formula, leaf, last)
        self._check_function(self.per_step, self.shared, (*numbers, *total))
        self._check_function(measure.before, self.shared, first)
        self._check_function(measure.function, leaf, numbers)
        for begin in (*self.memory.values(), *self.shared.values()):
            self._check_function(begin, None, self.numbers)
        if matrix is not None:
            arrays = ("g", *self.memory_names)
            self._check_function(matrix.formula, arrays, last)
            self._check_function(matrix.before, arrays, last)
            self._check_function(matrix.fold, ("shape",), self.numbers)
            if matrix.every is not None:
                self._check_every(matrix.every, last)
                self._check_function(matrix.every.formula, arrays, last)

    def _gives(self, title: str, per_step: object) -> tuple[str, ...]:
        """The names that a `per_step` gives."""
        if not isinstance(per_step, PerStep | None):
            raise TypeError(
                f"{self.name}: {title} is a {type(per_step).__name__}, expected a "
                "function decorated with `@gives(...)`."
            )
        return () if per_step is None else per_step.gives

    def _check_every(self, every: Every, numbers: Collection[str]) -> None:
        problem, when = None, every.k or every.due
        if when is None or (every.k and every.due):
            problem = "expected either `k` or `due`"
        elif unknown := {when, every.period or when} - {*numbers}:
            problem = f"there is no number `{unknown.pop()}`. Pass it in `numbers`"
        elif every.k and "count" not in self.shared:
            problem = "there is no count. Pass `shared` with a `count`"
        elif not set(every.writes) <= set(names_of(every.formula).arrays):
            problem = f"`writes` is {every.writes}, expected arguments of its formula"
        if problem is not None:
            raise TypeError(f"{self.name}: every: {problem}.")

    def _check_function(
        self,
        f: PerStep | Callable[..., object] | None,
        arrays: Collection[str] | None,
        numbers: Collection[str],
    ) -> None:
        if f is None:
            return
        f = f.function if isinstance(f, PerStep) else f
        names, title = names_of(f), getattr(f, "__name__", type(f).__name__)
        for kind, asked, known in (
            ("positional", names.arrays, arrays),
            ("keyword-only", names.numbers, numbers),
        ):
            if known is None:
                continue
            missing = [k for k in asked if k not in known and k not in names.optional]
            if missing:
                raise TypeError(
                    f"{self.name}: {title} asks for {', '.join(missing)}, expected "
                    f"{kind} arguments among: {', '.join(known) or 'none'}."
                )


def is_schedule(x: object) -> bool:
    """Whether a number of a rule is a schedule. Classes, such as dtypes, are not."""
    return isinstance(x, At) or (callable(x) and not isinstance(x, type))


def only_real(g: Param) -> str | None:
    """A `check_leaf` that refuses complex leaves.

    Args:
        g: the leaf, perhaps a NumPy array.
    """
    if not jnp.issubdtype(g.dtype, jnp.complexfloating):
        return None
    return (
        f"is {g.dtype}, expected a real one: complex numbers have no order. Put "
        "`contrib.split_real_and_imaginary` around the transformation."
    )


def _flatten(rule: Rule) -> tuple[tuple[dict[str, object]], Static]:
    fields = {k: getattr(rule, k) for k in Rule.__dataclass_fields__ if k != "numbers"}
    pairs = (tuple(x.items()) if isinstance(x, Mapping) else x for x in fields.values())
    return (dict(rule.numbers),), Static(pairs)


def _unflatten(static: Static, children: Sequence[object]) -> Rule:
    names = (k for k in Rule.__dataclass_fields__ if k != "numbers")
    fields = dict(zip(names, static.values, strict=True), numbers=children[0])
    fields |= {k: dict(fields[k]) for k in ("memory", "shared")}
    rule = object.__new__(
        Rule
    )  # no checks: JAX may put any object in place of a number
    for name, x in fields.items():
        object.__setattr__(rule, name, x)
    return rule


jax.tree_util.register_pytree_node(Rule, _flatten, _unflatten)
