"""Text that is safe to print on a terminal or in a page."""

import unicodedata

_KEPT = "\n\t"
# Bidirectional controls, line and paragraph separators, and two noncharacters.
_OTHERS = {*map(chr, (*range(0x202A, 0x202F), *range(0x2066, 0x206A)))}
_OTHERS |= {"\u2028", "\u2029", "\ufffe", "\uffff"}


def visible(text: str) -> str:
    r"""Escape control characters and lone surrogates.

    A terminal would execute them, XML forbids them, and UTF-8 cannot encode some.

    Args:
        text: any text.

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
