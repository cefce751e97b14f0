"""Lists of expressions on the command line. Needs no JAX."""

import re

from ._line import LITERAL, SourceLine

_CLOSING = {"(": ")", "[": "]", "{": "}"}
_LONGEST = 50_000  # characters in a list


def split_list(text: str) -> list[str]:
    """Split a list at its commas, except inside brackets and quotes.

    Args:
        text: such as `adamw,lookahead(adamw, 5, 0.5)`.

    >>> split_list('adamw, "lookahead(adamw, 5, 0.5)"')
    ['adamw', 'lookahead(adamw, 5, 0.5)']
    """
    whole = SourceLine("optimizers", text)
    if len(text) > _LONGEST:
        raise whole.too_long(_LONGEST)
    begin, items, awaited = 0, [], []
    marks = re.compile(LITERAL + r"""|[][(){},"']""", re.DOTALL)
    for mark in marks.finditer(text):
        place, sign = mark.start(), mark[0]
        if sign in _CLOSING:
            awaited.append((_CLOSING[sign], place))
        elif sign in _CLOSING.values():
            if not awaited or awaited.pop()[0] != sign:
                raise whole.error(f"this `{sign}` closes nothing.", place)
        elif sign in "\"'":
            raise whole.error("this quote is never closed.", place)
        elif sign == "," and not awaited:
            items.append((begin, text[begin:place].strip()))
            begin = mark.end()
    if awaited:
        close, place = awaited[-1]
        raise whole.error(f"this is never closed, expected a `{close}`.", place)
    items.append((begin, text[begin:].strip()))
    for place, item in items:
        if not item:
            raise whole.error("this item is empty, expected a name.", place)
    return [_bare(item) for _, item in items]


def _bare(item: str) -> str:
    """Strip quotes around the whole item, as a shell would."""
    return item[1:-1] if re.fullmatch(LITERAL, item, re.DOTALL) else item
