"""A line of text to parse, and errors that point into it."""

import ast
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property

ALLOWED = (
    "Allowed are names and calls of the library's functions, numbers, strings, True, "
    "False, None, lists, tuples, dicts, and + - * / // ** of numbers."
)
_OWN = (
    "An optimizer of your own is written `my_module:mine`, and cannot be a part of an "
    "expression."
)
LITERAL = r"""("(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')"""  # a string in quotes
_UNENDED = r"""|["'].*"""  # a quote that is never closed: keep the rest as written
_LONGEST = 2000  # characters
_WIDTH = 120  # characters of a line shown in an error
_DEEPEST = 50  # depth of the syntax tree


def brief(x: object, most: int = 60) -> str:
    """The `repr` of a value for an error message, shortened if it is long.

    Args:
        x: any value.
        most: maximum number of characters.

    >>> brief("adam"), brief("a" * 99, 10)
    ("'adam'", "'aaaaaaaaa...")
    """
    try:
        text = repr(x[: most + 1] if isinstance(x, str) else x)
    except RecursionError:
        text = f"a deeply nested {type(x).__name__}"
    return text if len(text) <= most + 2 else f"{text[:most]}..."


@dataclass(frozen=True)
class SourceLine:
    """A text to parse.

    Attributes:
        name: name used in error messages, such as `optimizers`.
        text: the text.
    """

    name: str
    text: str

    @classmethod
    def of(cls, name: str, text: str) -> "SourceLine":
        """A line with single spaces outside quotes.

        Args:
            name: name used in error messages.
            text: the text.
        """
        if not isinstance(text, str):
            like = (
                "cosine_decay_schedule(rate, steps)" if name == "schedule" else "adamw"
            )
            raise TypeError(
                f"{name}: got a {type(text).__name__}, {brief(text)}, expected a "
                f"string such as '{like}'."
            )
        if len(text) > 10 * _LONGEST:  # too long even without its spaces
            raise cls(name, text).too_long(_LONGEST)
        spaces = re.compile(LITERAL + r"|\s+" + _UNENDED, re.DOTALL)
        one = lambda match: " " if match[0].isspace() else match[0]
        return cls(name, spaces.sub(one, text).strip())

    @cached_property
    def tree(self) -> ast.expr:
        """The syntax tree."""
        if not self.text:
            raise self.error("the text is empty, expected a name such as `adamw`.")
        if len(self.text) > _LONGEST or not self.text.isprintable():
            raise self.too_long(_LONGEST)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # about escapes such as "\d" in a regex
                tree = ast.parse(self.text, mode="eval").body
        except SyntaxError as error:
            place = (error.offset or 1) - 1
            own = f" {_OWN}" if ":" in self.text else ""
            raise self.error(f"{error.msg}. {ALLOWED}{own}", place) from error
        except (MemoryError, RecursionError, ValueError) as error:
            raise self.error("this is nested too deeply.") from error
        level: list[ast.AST] = [tree]  # breadth first: recursion could overflow
        for _ in range(_DEEPEST):
            level = [x for node in level for x in ast.iter_child_nodes(node)]
        if level:
            raise self.error("this is nested too deeply.")
        return tree

    def error(self, why: str, at: ast.AST | int = 0) -> ValueError:
        """An error that points to a column of the text.

        Args:
            why: what is wrong.
            at: a node of the syntax tree, or a column.
        """
        column = at if isinstance(at, int) else getattr(at, "col_offset", 0)
        if not isinstance(at, int):  # `ast` counts bytes
            column = len(self.text.encode()[:column].decode())
        text = self.text
        if len(text) > _WIDTH:  # show only the part around the column
            begin = max(0, min(column - _WIDTH // 2, len(text) - _WIDTH))
            end, before = begin + _WIDTH, "..." if begin else ""
            text = before + text[begin:end] + ("..." if end < len(self.text) else "")
            column += len(before) - begin
        why = why if len(why) <= 10 * _WIDTH else f"{why[: 10 * _WIDTH]}..."
        return ValueError(f"{self.name}: {why}\n    {text}\n    {' ' * column}^")

    def too_long(self, most: int) -> ValueError:
        """The error for a text that is too long, or not printable.

        Args:
            most: maximum number of characters.
        """
        return ValueError(
            f"{self.name}: got {len(self.text)} characters, {brief(self.text, 40)}, "
            f"expected at most {most} printable characters."
        )

    @contextmanager
    def pointing(self, node: ast.AST) -> Iterator[None]:
        """Make errors raised inside point to a node.

        Args:
            node: a node of the syntax tree.
        """
        try:
            yield
        except Exception as error:
            raise self.error(str(error), node) from error
