"""Optimizers as Python code to copy into a program.

lookahead(adamw)   at 0.01:
steepest.lookahead(steepest.adamw(1e-2), sync_period=5, slow_step_size=0.5)
"""

import ast
from dataclasses import dataclass
from operator import attrgetter

import steepest

from ._line import SourceLine
from ._names import Known
from ._own import is_reference, Own
from ._reader import Reader

_DOORS = "", "contrib."
# Usual values that are not literals.
_WRITTEN = {
    ("sam", "adv_optimizer"): "chain(contrib.normalize, sgd(0.05))",
}


def code_of(
    text: str, *, rate: float | None, steps: int, schedule: str | None = None
) -> str:
    """The Python expression that makes an optimizer of a race.

    It needs only `import steepest`, and the module of `my_module:mine`.

    Args:
        text: the optimizer, as for `entrant`.
        rate: the learning rate of the race; `None` if the optimizer has none.
        steps: number of steps.
        schedule: as for `entrant`.

    >>> code_of("contrib.ademamix(b1=0.8)", rate=1e-2, steps=100)
    'steepest.contrib.ademamix(1e-2, b1=0.8)'
    """
    own = _own(text) if is_reference(text) else None
    plan = None if schedule is None else SourceLine.of("schedule", schedule)
    value = 1e-3 if rate is None else float(rate)
    names = {"rate": lambda: value, "steps": lambda: steps}
    written = {"rate": number_code(value), "steps": str(steps)}
    learning_rate: ast.expr = ast.Name(written["rate"])
    if plan is not None:
        constant = lambda: value
        writer = _Writer(Reader(plan, names, constant), written, learning_rate)
        learning_rate = writer.write(plan.tree)
    if own is not None:
        return own.code(learning_rate)
    line = SourceLine.of("optimizers", text)
    reader = Reader(line, names, lambda: value)
    return ast.unparse(_Writer(reader, written, learning_rate).write(line.tree))


def _own(text: str) -> Own:
    try:
        return Own.of(text)
    except Exception as error:  # its file may have changed during the race
        raise ValueError(str(error)) from error


def number_code(x: float) -> str:
    """A number as people type it, without losing a digit.

    Args:
        x: the number.

    >>> number_code(0.001), number_code(0.1), number_code(0.0123456)
    ('1e-3', '0.1', '0.0123456')
    """
    mantissa, power = f"{x:.2e}".split("e")
    short = f"{float(mantissa):g}e{int(power)}"
    return short if abs(x) < 0.0999 and float(short) == x else f"{x!r}"


@dataclass(frozen=True)
class _Writer:
    """Writes what an expression describes as Python code.

    Attributes:
        reader: builds the values, which decide where the learning rate goes.
        names: code for a name, such as `rate`.
        rate: code for the learning rate of optimizers without one.
    """

    reader: Reader
    names: dict[str, str]
    rate: ast.expr

    def write(self, node: ast.expr) -> ast.expr:
        match node:
            case ast.List() | ast.Tuple():
                return type(node)([self.write(x) for x in node.elts], ast.Load())
            case ast.Dict():
                return ast.Dict(node.keys, [self.write(x) for x in node.values])
            case ast.UnaryOp():
                return ast.UnaryOp(node.op, self.write(node.operand))
            case ast.BinOp():
                left, right = self.write(node.left), self.write(node.right)
                return ast.BinOp(left, node.op, right)
            case ast.Name() if node.id in self.names:
                return ast.Name(self.names[node.id])
            case ast.Name() | ast.Attribute():
                return self._call(node, [], [])
            case ast.Call():
                return self._call(node.func, node.args, node.keywords)
            case _:
                return node

    def _call(
        self, func: ast.expr, args: list[ast.expr], named: list[ast.keyword]
    ) -> ast.expr:
        known, read = self.reader.known(func), self.reader.read
        values = {str(k.arg): read(k.value) for k in named}
        bound = known.bind([read(x) for x in args], values)
        written = [self.write(x) for x in args]
        keywords = [ast.keyword(k.arg, self.write(k.value)) for k in named]
        for name in known.usual:
            if name not in values and name not in known.takes[: len(args)]:
                keywords.append(ast.keyword(name, self._usual(known, name)))
        if known.wants_rate(bound):
            if not args and known.takes[0] == "learning_rate":
                written = [self.rate]
            else:
                keywords.insert(0, ast.keyword("learning_rate", self.rate))
        call = ast.Call(ast.Name(_qualified(known)), written, keywords)
        if known.maker is steepest.MultiSteps:
            return ast.Call(ast.Attribute(call, "gradient_transformation"), [], [])
        return call

    def _usual(self, known: Known, name: str) -> ast.expr:
        if (known.name, name) in _WRITTEN:
            line = SourceLine("optimizers", _WRITTEN[known.name, name])
            return _Writer(self.reader, self.names, self.rate).write(line.tree)
        return ast.Constant(known.usual[name])  # pyright: ignore[reportArgumentType]


def _qualified(known: Known) -> str:
    """Where the library has a function: `steepest.adamw`."""
    bare = known.name.removeprefix("contrib.")
    for door in _DOORS:
        try:
            if attrgetter(door + bare)(steepest) is known.maker:
                return f"steepest.{door}{bare}"
        except AttributeError:
            continue
    raise ValueError(f"{known.name} is in no door of the library.")
