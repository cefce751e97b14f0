"""A curve drawn with braille characters, each a grid of two by four dots."""

import math
from collections.abc import Sequence

from ..report import count, rate

# The bits of a braille character, row by row from the top.
_BITS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
_BLANK = 0x2800


def draw(
    values: Sequence[float],
    last: int,
    width: int = 60,
    height: int = 13,
    below: str | None = None,
) -> list[str]:
    """Draw a curve and its axes as lines of text.

    Args:
        values: equally spaced values; those that are not finite leave a gap.
        last: the step at the right edge; the left edge is step 0.
        width: of the curve, in characters.
        height: in lines; if odd, the middle is labelled too.
        below: labels of the horizontal axis; by default `last` steps.

    >>> print("\\n".join(draw([0.0, 1.0, 2.0, 1.0], 30, width=8, height=3)))
    2 ┤⠀⠀⠀⢀⠔⠑⢄⠀
    1 ┤⠀⠀⡠⠃⠀⠀⠀⠱
    0 ┤⡠⠊⠀⠀⠀⠀⠀⠀
      └────────
       0  15 30 steps
    """
    known = [y for y in values if math.isfinite(y)]
    if not known:
        return ["All values are NaN or infinite."]
    low, high = min(known), max(known)
    labels = {0: rate(high), height - 1: rate(low)}
    if low == high:
        labels = {height // 2: rate(low)}
    elif height % 2:
        labels[height // 2] = rate((low + high) / 2)
    edge = max(map(len, labels.values()))
    lines = [
        f"{labels.get(k, ''):>{edge}} {'┤' if k in labels else '│'}{row}"
        for k, row in enumerate(_picture(values, low, high, width, height))
    ]
    blank = " " * (edge + 1)
    below = _steps(last, width) if below is None else below
    return [*lines, f"{blank}└{'─' * width}", f"{blank} {below}"]


def _picture(
    values: Sequence[float], low: float, high: float, width: int, height: int
) -> list[str]:
    letters = [[_BLANK] * width for _ in range(height)]
    before = None
    for x in range(2 * width):
        y = _between(values, x / (2 * width - 1))
        if not math.isfinite(y):
            before = None
            continue
        up = (y - low) / (high - low) if high > low else 0.5
        here = round((1 - up) * (4 * height - 1))
        # Draw a jump as a vertical line that starts next to the previous dot.
        start = here if before is None else before + (here > before) - (here < before)
        for dot in range(min(start, here), max(start, here) + 1):
            letters[dot // 4][x // 2] |= _BITS[dot % 4][x % 2]
        before = here
    return ["".join(map(chr, row)) for row in letters]


def _between(values: Sequence[float], place: float) -> float:
    """Interpolate linearly at a position in [0, 1]."""
    x = place * (len(values) - 1)
    k = min(int(x), len(values) - 2) if len(values) > 1 else 0
    if x == k:
        return values[k]
    return values[k] + (x - k) * (values[k + 1] - values[k])


def _steps(last: int, width: int) -> str:
    """Labels of the step axis: both ends, and the middle if it is whole and fits."""
    end = count(last)
    middle = "" if last % 2 or width < 4 * len(end) else count(last // 2)
    half = f"0{middle:>{width // 2 + len(middle) // 2 - 1}}"
    return f"{half}{end:>{width - len(half)}} steps"
