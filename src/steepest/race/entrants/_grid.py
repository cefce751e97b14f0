"""A second hyperparameter: one entrant for each of its values.

adamw, sgd    with weight_decay=0, 0.1:
adamw(weight_decay=0), adamw(weight_decay=0.1), sgd
"""

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from ._given import Meaning
from ._line import brief, SourceLine
from ._names import Known
from ._own import is_reference, Own, Value
from ._reader import Reader


def swept(
    optimizers: Mapping[str, Meaning], sweep: Mapping[str, Sequence[Value]]
) -> tuple[dict[str, Meaning], tuple[str, ...]]:
    """The optimizers with every value of some arguments, and remarks.

    The argument goes to the outermost function, or to the only inner function that
    takes it. An optimizer that does not take it, or sets it itself, stays as it is, and
    a remark says so.

    Args:
        optimizers: the optimizers by name, as from `given`.
        sweep: the values to try, by the name of the argument.

    >>> list(swept({"lookahead(adamw)": "lookahead(adamw)"}, {"b1": [0.8, 0.9]})[0])
    ['lookahead(adamw(b1=0.8))', 'lookahead(adamw(b1=0.9))']
    """
    all_variants: dict[str, Meaning] = {}
    apart: dict[tuple[str, str], list[str]] = {}  # by argument and reason
    for name, meaning in optimizers.items():
        variants = [_Variant(name, meaning)]
        for argument, values in sweep.items():
            try:
                variants = [x.given(argument, v) for x in variants for v in values]
            except _Apart as reason:
                apart.setdefault((argument, str(reason)), []).append(name)
        for one in variants:
            if all_variants.setdefault(one.name, one.meaning) != one.meaning:
                raise ValueError(
                    f"race: `optimizers` and `sweep` make two optimizers {one.name}, "
                    "expected one. Use other names."
                )
    for argument in sweep:
        left = [len(some) for (one, _), some in apart.items() if one == argument]
        if sum(left) == len(optimizers):
            reasons = [why for one, why in apart if one == argument]
            raise _nobody(argument, reasons, optimizers.values())
    remarks = tuple(
        f"`{argument}` is not swept for {', '.join(some)}: {reason}."
        for (argument, reason), some in apart.items()
    )
    return all_variants, remarks


class _Apart(Exception):
    """The reason why an optimizer is not swept."""


@dataclass(frozen=True)
class _Variant:
    """An optimizer with some values of the sweep.

    Attributes:
        base: its name without them.
        meaning: the optimizer.
        codes: the values: `weight_decay=0.1`.
    """

    base: str
    meaning: Meaning
    codes: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The text of the optimizer, or its own name and the values."""
        if not self.codes:
            return self.base
        return f"{self.base}({', '.join(self.codes)})"

    def given(self, argument: str, value: Value) -> "_Variant":
        """The optimizer with one more argument, or raise `_Apart`."""
        code = f"{argument}={value!r}"
        own = _own(self.meaning)
        if own is None:
            meaning: Meaning = _with(str(self.meaning), argument, code)
        elif argument in own.takes or (own.open and argument not in own.named):
            meaning = own.given(argument, value)
            meaning = meaning.text or meaning
        else:
            passed = argument in own.passed
            raise _Apart("it is set already" if passed else "no such argument")
        if self.base == self.meaning and isinstance(meaning, str):
            return _Variant(meaning, meaning)
        return _Variant(self.base, meaning, (*self.codes, code))


def _own(meaning: Meaning) -> Own | None:
    """The user's own function or object; `None` for an expression."""
    if isinstance(meaning, str):
        return Own.of(meaning) if is_reference(meaning) else None
    return meaning


def _with(text: str, argument: str, code: str) -> str:
    """An expression with one more argument, or raise `_Apart`."""
    line = SourceLine.of("optimizers", text)
    calls = list(_calls(line, line.tree))
    takers = [(node, known) for node, known in calls if argument in known.takes]
    if not takers:
        raise _Apart("no such argument")
    if takers[0] != calls[0] and len(takers) > 1:
        raise _Apart("several functions take it")
    node, known = takers[0]
    if argument in _passed(node, known):
        raise _Apart("it is set already")
    return _inserted(line.text, node, code)


def _calls(line: SourceLine, node: ast.expr) -> Iterator[tuple[ast.expr, Known]]:
    """All functions of an expression, the outermost first."""
    names = {"rate": lambda: 1.0, "steps": lambda: 1}
    reader = Reader(line, names, lambda: 1.0)
    match node:
        case ast.Name() if node.id in names:
            return
        case ast.Name() | ast.Attribute():
            yield node, reader.known(node)
        case ast.Call():
            yield node, reader.known(node.func)
            for inner in (*node.args, *(k.value for k in node.keywords)):
                yield from _calls(line, inner)
        case _:
            for inner in ast.iter_child_nodes(node):
                if isinstance(inner, ast.expr):
                    yield from _calls(line, inner)


def _passed(node: ast.expr, known: Known) -> set[str]:
    """The arguments that a call passes."""
    if not isinstance(node, ast.Call):
        return set()
    return {*known.takes[: len(node.args)], *(str(k.arg) for k in node.keywords)}


def _inserted(text: str, node: ast.expr, code: str) -> str:
    """The text with one more argument in a call."""
    content = text.encode()  # `ast` counts bytes
    end = node.end_col_offset or 0
    if not isinstance(node, ast.Call):
        return f"{content[:end].decode()}({code}){content[end:].decode()}"
    before, after = content[: end - 1].decode().rstrip(), content[end - 1 :].decode()
    comma = "" if before.endswith("(") else " " if before.endswith(",") else ", "
    return f"{before}{comma}{code}{after}"


def _nobody(
    argument: str, reasons: list[str], optimizers: Iterable[Meaning]
) -> ValueError:
    """The error if an argument applies to no optimizer of the race."""
    free: dict[str, None] = {"learning_rate": None}
    for meaning in optimizers:
        own = _own(meaning)
        if own is not None:
            free |= dict.fromkeys(own.takes)
            continue
        line = SourceLine.of("optimizers", str(meaning))
        for node, known in _calls(line, line.tree):
            rest = [x for x in known.takes if x not in _passed(node, known)]
            free |= dict.fromkeys(x for x in rest if x.isidentifier())
    del free["learning_rate"]
    near = get_close_matches(argument, free, 1)
    maybe = f" Did you mean `{near[0]}`?" if near and argument not in free else ""
    return ValueError(
        f"race: `sweep` has {brief(argument)}, but it applies to no optimizer of the "
        f"race: {', or '.join(reasons)}.{maybe} Arguments to sweep: "
        f"{', '.join(free) or 'none'}."
    )
