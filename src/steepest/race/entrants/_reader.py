"""Builds what an expression describes. Only functions of the library are called."""

import ast
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeGuard

import jax
import numpy as np

from steepest.core import Real, ScalarOrSchedule

from ._line import ALLOWED, SourceLine
from ._names import find, kind_of, Known, known

_LARGEST = 1024  # bits of an integer power
_OPERATORS: dict[type[ast.operator], Callable[..., Real | complex]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Pow: operator.pow,
}


@dataclass(frozen=True)
class Reader:
    """Builds what an expression describes.

    Attributes:
        line: the expression.
        names: functions that return the value of a name, such as `rate`.
        rate: returns the learning rate of optimizers without one.
    """

    line: SourceLine
    names: Mapping[str, Callable[[], Real]]
    rate: Callable[[], ScalarOrSchedule]

    def read(self, node: ast.AST) -> object:
        """Build what a node describes. All allowed kinds of nodes are listed here.

        Args:
            node: of the syntax tree.
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
            case ast.Name() if self._is_number(node):
                numbers = " and ".join(f"`{name}`" for name in self.names)
                why = f"there is no number called `{node.id}`, only {numbers}."
                raise self.line.error(why, node)
            case ast.Name() | ast.Attribute():
                return self._called(node, self.known(node), [], {})
            case ast.Call():
                known = self.known(node.func)
                args = [self.read(x) for x in node.args]
                return self._called(node, known, args, self._named(node, known))
            case _:
                raise self.line.error(f"this is not allowed here. {ALLOWED}", node)

    def _is_number(self, node: ast.Name) -> bool:
        """Whether an unknown name must be that of a number: inside of a schedule."""
        inside = self.line.name == "schedule" and node is not self.line.tree
        return inside and bool(self.names) and node.id not in known()

    def _key(self, node: ast.AST | None) -> str | int | float:
        key = None if node is None else self.read(node)
        if not isinstance(key, str | int | float):
            why = "the keys of a dict must be strings or numbers."
            raise self.line.error(why, node or 0)
        return key

    def _number(self, node: ast.AST) -> Real:
        x = self.read(node)
        if not is_number(x):
            raise self.line.error(f"this is {kind_of(x)}, expected a number.", node)
        return x

    def _computed(self, node: ast.BinOp) -> Real:
        x, y = self._number(node.left), self._number(node.right)
        if isinstance(node.op, ast.Pow) and isinstance(x, int) and isinstance(y, int):
            if x.bit_length() * y > _LARGEST:
                raise self.line.error("this number is too large.", node)
        with self.line.pointing(node):
            value = _OPERATORS[type(node.op)](x, y)
        if isinstance(value, complex):
            raise self.line.error("this is complex, expected a real number.", node)
        return value

    def known(self, node: ast.AST) -> Known:
        """The function with a name, which may have dots.

        Args:
            node: the name.
        """
        parts: list[str] = []
        inner = node
        while isinstance(inner, ast.Attribute):
            parts.insert(0, inner.attr)
            inner = inner.value
        if not isinstance(inner, ast.Name):
            raise self.line.error(
                f"only functions can be called, by name. {ALLOWED}", node
            )
        with self.line.pointing(node):
            return find(".".join([inner.id, *parts]))

    def _named(self, node: ast.Call, known: Known) -> dict[str, object]:
        """The keyword arguments of a call."""
        arguments: dict[str, object] = {}
        for keyword in node.keywords:
            name = keyword.arg
            if name is None:
                raise self.line.error(f"`**` is not allowed here. {ALLOWED}", keyword)
            if name in arguments:
                raise self.line.error(f"`{name}` is passed twice.", keyword)
            with self.line.pointing(keyword):
                known.expect(name)
            arguments[name] = self.read(keyword.value)
        return arguments

    def _called(
        self, node: ast.AST, known: Known, args: list[object], named: dict[str, object]
    ) -> object:
        with self.line.pointing(node):
            bound = known.bind(args, named)
        if known.wants_rate(bound):
            bound.arguments["learning_rate"] = self.rate()
        with self.line.pointing(node):
            return known.make(bound)


def is_number(x: object) -> TypeGuard[Real]:
    """Whether it is a number, possibly traced.

    Args:
        x: the value of an expression.
    """
    return isinstance(x, int | float | np.number | jax.Array)
