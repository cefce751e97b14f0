"""Formatting of numbers, the same on the terminal and on the page."""

import math

NOTHING = "\N{EN DASH}"  # stands for a missing number
Number = int | float

_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def number(
    value: Number, spread: Number | None = None, digits: int | None = None
) -> str:
    """Format a value with as many digits as its spread justifies.

    Args:
        value: the number.
        spread: its standard deviation; `None` or NaN if unknown.
        digits: decimal places; by default `decimals(value, spread)`.

    >>> number(0.98412, 0.0031), number(1.234e-9, 2e-10), number(12.3456)
    ('0.984 ± 0.003', '(1.2 ± 0.2)e-9', '12.35')
    """
    if not math.isfinite(value):
        return NOTHING
    known = spread is not None and math.isfinite(spread)
    noise = (known and spread) or 0.0
    noise = noise if noise > 1e-12 * abs(value) else 0.0  # only rounding errors
    power = 0 if plain(value, noise) else max(_magnitude(value, noise), -300)
    value, noise = (float(f"{x * 10.0**-power:.12g}") for x in (value, noise))
    if digits is None or power:
        digits = decimals(value, noise)
    text = _fixed(value, digits)
    if not known:
        return f"{text}e{power}" if power else text
    text = f"{text} ± {_noise(noise, digits)}"
    return f"({text})e{power}" if power else text


def plain(value: Number, spread: Number | None = None) -> bool:
    """Whether a number is written without a power of ten.

    Args:
        value: the number.
        spread: its standard deviation.
    """
    size = max(abs(value), spread or 0.0)
    return size == 0 or not math.isfinite(size) or 1e-3 <= size < 1e5


def decimals(value: Number, spread: Number | None = None) -> int:
    """The decimal places to show: up to the first digit of the spread.

    At most six digits in all, or four without a spread.

    Args:
        value: the number.
        spread: its standard deviation.

    >>> decimals(0.98412, 0.0031), decimals(0.98412), decimals(123.4, 20.0)
    (3, 4, 0)
    """
    if spread and math.isfinite(spread):
        most = 5 - _magnitude(value, spread)
        return max(0, min(most, -_magnitude(spread)))
    return max(0, 3 - max(_magnitude(value), -1))


def significant(value: Number, spread: Number | None = None) -> int:
    """The decimal places needed to show two significant digits of a number.

    With a spread, also enough for its first digit, up to six digits in all.

    Args:
        value: the number.
        spread: its standard deviation.

    >>> significant(0.0014), significant(213.0), significant(0.98, 0.003)
    (4, 0, 3)
    """
    least = max(0, 1 - _magnitude(value)) if value else 0
    return max(least, decimals(value, spread)) if spread else least


def rate(value: Number | None) -> str:
    """Format a learning rate the way people type it.

    Args:
        value: the learning rate, or `None`.

    >>> [rate(x) for x in (3e-3, 0.1, 1.0, 2.5e-5)]
    ['3e-3', '0.1', '1', '2.5e-5']
    """
    if value is None:
        return NOTHING
    if value == 0 or 0.0999 < abs(value) < 1e4:
        return f"{value:.3g}"
    mantissa, power = f"{value:.2e}".split("e")
    return f"{float(mantissa):g}e{int(power)}"


def at_rate(value: Number | None) -> str:
    """The phrase " at 3e-3"; empty without a learning rate.

    Args:
        value: the learning rate.

    >>> at_rate(3e-3), at_rate(None)
    (' at 3e-3', '')
    """
    return "" if value is None else f" at {rate(value)}"


def seconds(value: Number | None, spread: Number | None = None) -> str:
    """Format a time in a suitable unit.

    Args:
        value: the seconds, or `None`.
        spread: how much it varies; `None` or NaN if unknown.

    >>> seconds(2.5e-6, 4e-7), seconds(0.0123, 0.002), seconds(0.0, 3e-6)
    ('2.5 ± 0.4 µs', '12 ± 2 ms', '< 3.0 µs')
    >>> [seconds(x) for x in (2.5e-6, 0.0123, 1.25, 75, 7260)]
    ['2.5 µs', '12 ms', '1.2 s', '1 min 15 s', '2 h 1 min']
    """
    if value is None or not math.isfinite(value):
        return NOTHING
    if value >= 59.5:
        minutes, rest = divmod(round(value), 60)
        hours, minutes = divmod(minutes, 60)
        return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"
    known = spread is not None and math.isfinite(spread)
    noise = (known and spread) or 0.0
    if noise and value <= 0:  # too short to be measured
        return f"< {seconds(noise)}"
    units = ("s", 1.0), ("ms", 1e-3), ("µs", 1e-6), ("ns", 0.0)
    unit, scale = next(pair for pair in units if max(value, noise) >= 0.9995 * pair[1])
    scale = scale or 1e-9
    text = _short(value / scale)
    if known and value > 0:
        digits = len(text.partition(".")[2])
        return f"{text} ± {noise / scale:.{digits}f} {unit}"
    return f"{text} {unit}" if value > 0 else "0 s"


def count(value: Number | None) -> str:
    """Format a count with thousands separators.

    Args:
        value: the count, or a mean of counts, or `None`.

    >>> count(1234.4)
    '1,234'
    """
    return NOTHING if value is None else f"{value:,.0f}"


def chance(p: Number | None) -> str:
    """Format a p-value.

    Args:
        p: the p-value, or `None` if unknown.

    >>> chance(0.0412), chance(0.3), chance(1e-7)
    ('p = 0.041', 'p = 0.30', 'p < 0.001')
    """
    if p is None:
        return NOTHING
    if p < 0.001:
        return "p < 0.001"
    return f"p = {p:.3f}" if p < 0.0995 else f"p = {p:.2f}"


def power_of_ten(power: int) -> str:
    """Format a power of ten for an axis.

    Args:
        power: the exponent.

    >>> power_of_ten(-3)
    '10⁻³'
    """
    return "10" + str(power).translate(_SUPERSCRIPTS)


def listed(words: list[str], most: int = 4) -> str:
    """Join words with commas and "and".

    Args:
        words: the words.
        most: maximum number of items; the rest become "N others".

    >>> listed(["adam", "lion", "muon"]), listed(list("abcdefg"), 3)
    ('adam, lion and muon', 'a, b and 5 others')
    """
    if len(words) > most:
        words = [*words[: most - 1], f"{len(words) - most + 1} others"]
    *first, last = words or [""]
    return f"{', '.join(first)} and {last}" if first else last


def _magnitude(value: Number, spread: Number = 0.0) -> int:
    """The exponent of a number or its spread, whichever is larger."""
    size = max(abs(value), spread)
    return math.floor(math.log10(size)) if size else 0


def _noise(spread: Number, digits: int) -> str:
    """Format a spread; a small one is not rounded to zero."""
    text = f"{spread:.{digits}f}"
    return f"{spread:.0e}".replace("e-0", "e-") if spread and not float(text) else text


def _fixed(value: Number, digits: int) -> str:
    text = f"{value:.{digits}f}"
    return text.lstrip("-") if not float(text) else text  # no "-0"


def _short(value: Number) -> str:
    return f"{value:.0f}" if value >= 9.95 else f"{value:.1f}"
