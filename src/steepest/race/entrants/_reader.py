"""What an expression means. Nothing in it is run: only the library's functions are."""

import ast
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from ._line import ALLOWED, Line
from ._names import find, Known, said

_LARGEST = 1024  # bits of a power
_OPERATORS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Pow: operator.pow,
}


@dataclass(frozen=True)
class Reader:
    """Makes of an expression what it describes.

    Attributes:
        line: where it is written.
        names: the numbers that have names; each is asked for where it is needed.
        rate: the learning rate of those that are not given one, in the same way.
    """

    line: Line
    names: Mapping[str, Callable[[], Any]]
    rate: Callable[[], Any]

    def read(self, node: ast.AST) -> Any:
        """What a part of it describes: here is every kind that means anything.

        Args:
            node: the part.
        """
        match node:
            case ast.Constant(value=bool() | int() | float() | str() | None):
                return node.value
            case ast.List():
                return [self.read(x) for x in node.elts]
            case ast.Tuple():
                return tuple(self.read(x) for x in node.elts)
            case ast.Dict():
                values = [self.read(x) for x in node.values]
                return dict(zip(map(self._key, node.keys), values, strict=True))
            case ast.UnaryOp(op=ast.USub()):
                return -self._number(node.operand)
            case ast.BinOp() if type(node.op) in _OPERATORS:
                return self._computed(node)
            case ast.Name() if node.id in self.names:
                return self.names[node.id]()
            case ast.Name() | ast.Attribute():
                return self._called(node, self._known(node), [], {})
            case ast.Call():
                known = self._known(node.func)
                args = [self.read(x) for x in node.args]
                return self._called(node, known, args, self._named(node, known))
            case _:
                raise self.line.error(f"this cannot be written here. {ALLOWED}", node)

    def _key(self, node: ast.AST | None) -> Any:
        key = None if node is None else self.read(node)
        if not isinstance(key, str | int | float):
            why = "the keys of a dict are texts and numbers."
            raise self.line.error(why, node or 0)
        return key

    def _number(self, node: ast.AST) -> Any:
        x = self.read(node)
        if not is_number(x):
            raise self.line.error(f"this is {said(x)}, expected a number.", node)
        return x

    def _computed(self, node: ast.BinOp) -> Any:
        x, y = self._number(node.left), self._number(node.right)
        if isinstance(node.op, ast.Pow) and isinstance(x, int) and isinstance(y, int):
            if x.bit_length() * y > _LARGEST:
                raise self.line.error("this number is too large.", node)
        with self.line.pointing(node):
            found = _OPERATORS[type(node.op)](x, y)
        if isinstance(found, complex):
            raise self.line.error("this is no real number.", node)
        return found

    def _known(self, node: ast.AST) -> Known:
        """What a name means that may have dots in it."""
        parts: list[str] = []
        inner = node
        while isinstance(inner, ast.Attribute):
            parts.insert(0, inner.attr)
            inner = inner.value
        if not isinstance(inner, ast.Name):
            raise self.line.error(
                f"only what has a name can be called. {ALLOWED}", node
            )
        with self.line.pointing(node):
            return find(".".join([inner.id, *parts]))

    def _named(self, node: ast.Call, known: Known) -> dict[str, Any]:
        """The arguments that are given by name."""
        found: dict[str, Any] = {}
        for keyword in node.keywords:
            name = keyword.arg
            if name is None:
                raise self.line.error(
                    f"`**` cannot be written here. {ALLOWED}", keyword
                )
            if name in found:
                raise self.line.error(f"`{name}` is given twice.", keyword)
            with self.line.pointing(keyword):
                known.expect(name)
            found[name] = self.read(keyword.value)
        return found

    def _called(
        self, node: ast.AST, known: Known, args: list[Any], named: dict[str, Any]
    ) -> Any:
        with self.line.pointing(node):
            bound = known.bind(args, named)
        if known.wants_rate(bound):
            bound.arguments["learning_rate"] = self.rate()
        with self.line.pointing(node):
            return known.make(bound)


def is_number(x: Any) -> bool:
    """Whether it is a number, perhaps a traced one.

    Args:
        x: what an expression has made.
    """
    return isinstance(x, int | float | np.number | jax.Array)
