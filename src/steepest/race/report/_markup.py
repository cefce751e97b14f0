"""Tags of HTML and SVG: everything a stranger may have written is escaped here."""

from html import escape

from .._visible import visible
from ._numbers import Number


def tag(name: str, *inside: str, **attributes: str | Number | None) -> str:
    """A tag around other tags.

    Args:
        name: of the tag.
        inside: markup, as it is: text goes through `words` before.
        attributes: `class_` is `class`, and `data_o` is `data-o`; `None` is left out.

    >>> tag("text", words("a < b"), x=1.25, text_anchor="end", class_=None)
    '<text x="1.2" text-anchor="end">a &lt; b</text>'
    """
    given = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{_value(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    return f"<{name}{given}>{''.join(inside)}</{name}>"


def words(text: str) -> str:
    """Text that is nothing but text, whatever stands in it.

    Args:
        text: what anybody wrote.
    """
    return escape(visible(text))


def coordinate(value: Number) -> str:
    """A length in a picture: a tenth of a pixel is as much as one can see.

    Args:
        value: the length.

    >>> coordinate(3.04), coordinate(-0.01)
    ('3', '0')
    """
    return f"{round(value, 1) + 0.0:.1f}".removesuffix(".0")  # 0.0: there is no -0


def _value(value: str | Number) -> str:
    return words(value) if isinstance(value, str) else coordinate(value)
