"""HTML and SVG tags. All untrusted text is escaped here."""

from html import escape

from .._visible import visible
from ._numbers import Number


def tag(name: str, *inside: str, **attributes: str | Number | None) -> str:
    """A tag around other tags.

    Args:
        name: of the tag.
        inside: raw markup; escape text with `words` first.
        attributes: `class_` is `class`, and `data_o` is `data-o`; `None` is omitted.

    >>> tag("text", words("a < b"), x=1.25, text_anchor="end", class_=None)
    '<text x="1.2" text-anchor="end">a &lt; b</text>'
    """
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{_value(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    return f"<{name}{written}>{''.join(inside)}</{name}>"


def words(text: str) -> str:
    """Escape text for markup.

    Args:
        text: any text.
    """
    return escape(visible(text))


def coordinate(value: Number) -> str:
    """Format a length in pixels, rounded to a tenth.

    Args:
        value: the length.

    >>> coordinate(3.04), coordinate(-0.01)
    ('3', '0')
    """
    return f"{round(value, 1) + 0.0:.1f}".removesuffix(
        ".0"
    )  # + 0.0 turns -0.0 into 0.0


def _value(value: str | Number) -> str:
    return words(value) if isinstance(value, str) else coordinate(value)
