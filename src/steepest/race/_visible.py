"""Text that can be shown anywhere, whatever stands in it."""

import unicodedata

_KEPT = "\n\t"
# Those that turn the direction of what follows, those that end a line or a paragraph,
# and two that are no characters at all.
_OTHERS = {*map(chr, (*range(0x202A, 0x202F), *range(0x2066, 0x206A)))}
_OTHERS |= {"\u2028", "\u2029", "\ufffe", "\uffff"}


def visible(text: str) -> str:
    r"""A text with control characters and lone surrogates as escapes.

    A terminal would obey them, XML does not allow them, and UTF-8 cannot write some.

    Args:
        text: what anybody wrote.

    >>> print(visible("red \x1b[31m, lone \ud800, Käse"))
    red \x1b[31m, lone \ud800, Käse
    """
    if text.isprintable():
        return text
    return "".join(_escaped(c) if _hidden(c) else c for c in text)


def _hidden(c: str) -> bool:
    return c not in _KEPT and (c in _OTHERS or unicodedata.category(c) in ("Cc", "Cs"))


def _escaped(c: str) -> str:
    return c.encode("unicode_escape").decode()
