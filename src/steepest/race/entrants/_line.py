"""A line of text to be read, and where in it something is wrong."""

import ast
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property

# What may be written, and a text in quotes.
ALLOWED = (
    "Write names and calls of the library's functions, numbers, texts, True, False, "
    "None, lists, tuples, dicts, and + - * / // ** of numbers."
)
LITERAL = r"""("(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')"""
_LONGEST = 2000  # characters
_DEEPEST = 50  # nodes above one another


@dataclass(frozen=True)
class Line:
    """A text, and who speaks of it in errors.

    Attributes:
        who: what it is for: `optimizers`.
        text: what is written.
    """

    who: str
    text: str

    @classmethod
    def of(cls, who: str, text: str) -> "Line":
        """A line, with single spaces outside of quotes.

        Args:
            who: what it is for.
            text: what is written.
        """
        if not isinstance(text, str):
            raise TypeError(
                f"{who}: got a {type(text).__name__}, {text!r}, and a text such as "
                "`adamw` is wanted."
            )
        one = lambda match: match[1] or " "
        return cls(who, re.sub(LITERAL + r"|\s+", one, text, flags=re.DOTALL).strip())

    @cached_property
    def tree(self) -> ast.expr:
        """What Python's grammar makes of it."""
        if not self.text:
            raise self.error(
                "nothing is written, and a name such as `adamw` is wanted."
            )
        if len(self.text) > _LONGEST or not self.text.isprintable():
            raise ValueError(
                f"{self.who}: got {len(self.text)} characters, {self.text[:40]!r}..., "
                f"and at most {_LONGEST} that can be printed are wanted."
            )
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # about "\d", which is a pattern
                tree = ast.parse(self.text, mode="eval").body
        except SyntaxError as error:
            place = (error.offset or 1) - 1
            raise self.error(f"{error.msg}. {ALLOWED}", place) from error
        except (MemoryError, RecursionError, ValueError) as error:
            raise self.error("this is too deep to be read.") from error
        level: list[ast.AST] = [tree]  # not a recursion, which depth would end
        for _ in range(_DEEPEST):
            level = [x for node in level for x in ast.iter_child_nodes(node)]
        if level:
            raise self.error("this is too deep to be read.")
        return tree

    def error(self, why: str, at: ast.AST | int = 0) -> ValueError:
        """The error that shows the place.

        Args:
            why: what is wrong.
            at: a part of the tree, or a column.
        """
        column = at if isinstance(at, int) else getattr(at, "col_offset", 0)
        if not isinstance(at, int):  # the grammar counts bytes
            column = len(self.text.encode()[:column].decode())
        return ValueError(f"{self.who}: {why}\n    {self.text}\n    {' ' * column}^")

    @contextmanager
    def pointing(self, node: ast.AST) -> Iterator[None]:
        """Say of whatever goes wrong inside where it is written.

        Args:
            node: a part of the tree.
        """
        try:
            yield
        except Exception as error:
            raise self.error(str(error), node) from error
