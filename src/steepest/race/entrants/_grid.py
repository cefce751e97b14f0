"""A second hyperparameter: one entrant for each of its values.

adamw, sgd    with weight_decay=0, 0.1:
adamw(weight_decay=0), adamw(weight_decay=0.1), sgd
"""

import ast
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches

from ._line import brief, SourceLine
from ._names import Known
from ._reader import Reader

Value = int | float | str | bool | None


def swept(
    texts: Sequence[str], sweep: Mapping[str, Sequence[Value]]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The optimizers with every value of some arguments, and remarks.

    The argument goes to the outermost function, or to the only inner function that
    takes it. An optimizer that does not take it, or sets it itself, stays as it is, and
    a remark says so.

    Args:
        texts: the optimizers, each as for `entrant`.
        sweep: the values to try, by the name of the argument.

    >>> swept(["lookahead(adamw)", "sgd"], {"weight_decay": [0, 0.1]})[0]
    ('lookahead(adamw(weight_decay=0))', 'lookahead(adamw(weight_decay=0.1))', 'sgd')
    """
    names: list[str] = []
    apart: dict[tuple[str, str], list[str]] = {}  # by argument and reason
    for text in texts:
        variants = [text]
        for argument, values in sweep.items():
            try:
                codes = [f"{argument}={value!r}" for value in values]
                variants = [_with(one, argument, x) for one in variants for x in codes]
            except _Apart as reason:
                apart.setdefault((argument, str(reason)), []).append(text)
        names += variants
    for argument in sweep:
        left = [len(some) for (one, _), some in apart.items() if one == argument]
        if sum(left) == len(texts):
            reasons = [why for one, why in apart if one == argument]
            raise _nobody(argument, reasons, texts)
    remarks = tuple(
        f"`{argument}` is not swept for {', '.join(some)}: {reason}."
        for (argument, reason), some in apart.items()
    )
    return tuple(dict.fromkeys(names)), remarks


class _Apart(Exception):
    """The reason why an optimizer is not swept."""


def _with(text: str, argument: str, code: str) -> str:
    """An optimizer with one more argument, or raise `_Apart`."""
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


def _nobody(argument: str, reasons: list[str], texts: Sequence[str]) -> ValueError:
    """The error if an argument applies to no optimizer of the race."""
    free: dict[str, None] = {"learning_rate": None}
    for text in texts:
        line = SourceLine.of("optimizers", text)
        for node, known in _calls(line, line.tree):
            rest = [x for x in known.takes if x not in _passed(node, known)]
            free |= dict.fromkeys(x for x in rest if x.isidentifier())
    del free["learning_rate"]
    near = get_close_matches(argument, free, 1)
    maybe = f" Did you mean `{near[0]}`?" if near and argument not in free else ""
    return ValueError(
        f"race: `sweep` has {brief(argument)}, but it applies to no optimizer of the "
        f"race: {', or '.join(reasons)}.{maybe} Arguments to sweep: {', '.join(free)}."
    )
