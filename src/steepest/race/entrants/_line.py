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
_UNENDED = r"""|["'].*"""  # a quotation without an end: the rest is left as it is
_LONGEST = 2000  # characters
_SHOWN = 120  # characters of a line, in an error
_DEEPEST = 50  # nodes above one another


def brief(x: object, most: int = 60) -> str:
    """How something is shown in an error: its `repr`, cut where it gets long.

    Args:
        x: what was given.
        most: how many characters.

    >>> brief("adam"), brief("a" * 99, 10)
    ("'adam'", "'aaaaaaaaa...")
    """
    try:
        text = repr(x[: most + 1] if isinstance(x, str) else x)
    except RecursionError:
        text = f"a {type(x).__name__} of many levels"
    return text if len(text) <= most + 2 else f"{text[:most]}..."


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
    def of(cls, name: str, text: str) -> "Line":
        """A line, with single spaces outside of quotes.

        Args:
            name: what it is for.
            text: what is written.
        """
        if not isinstance(text, str):
            raise TypeError(
                f"{name}: got a {type(text).__name__}, {brief(text)}, expected a text "
                "such as `adamw`."
            )
        if len(text) > 10 * _LONGEST:  # even with many spaces
            raise cls(name, text).too_long(_LONGEST)
        spaces = re.compile(LITERAL + r"|\s+" + _UNENDED, re.DOTALL)
        one = lambda match: " " if match[0].isspace() else match[0]
        return cls(name, spaces.sub(one, text).strip())

    @cached_property
    def tree(self) -> ast.expr:
        """What Python's grammar makes of it."""
        if not self.text:
            raise self.error("nothing is written, expected a name such as `adamw`.")
        if len(self.text) > _LONGEST or not self.text.isprintable():
            raise self.too_long(_LONGEST)
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
        shown = self.text
        if len(shown) > _SHOWN:  # the part around the place
            begin = max(0, min(column - _SHOWN // 2, len(shown) - _SHOWN))
            end, before = begin + _SHOWN, "..." if begin else ""
            shown = before + shown[begin:end] + ("..." if end < len(self.text) else "")
            column += len(before) - begin
        why = why if len(why) <= 10 * _SHOWN else f"{why[: 10 * _SHOWN]}..."
        return ValueError(f"{self.who}: {why}\n    {shown}\n    {' ' * column}^")

    def too_long(self, most: int) -> ValueError:
        """The error for what is longer than anybody writes, or cannot be printed.

        Args:
            most: how many characters there may be.
        """
        return ValueError(
            f"{self.who}: got {len(self.text)} characters, {brief(self.text, 40)}, "
            f"expected at most {most} that can be printed."
        )

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
