"""Arguments that no optimizer can do anything with."""

import re

import pytest

NAN, INF = float("nan"), float("inf")
NOT_AMOUNTS = [-1.0, NAN, INF, "1", None]
NOT_FLAGS = ["no", None, 2, []]
NOT_DTYPES = ["x", int, 3]


def refuses(maker, *given, who=None, **bad):
    """`maker(*given)` refuses every value of every argument in `bad`, one at a time.

    It, or `who`, says its name, that of the argument, and what is wanted.
    """
    for name, values in bad.items():
        for value in values:
            said = rf"{who or maker.__name__}: {name} (is|has) .* wanted\."
            with pytest.raises((TypeError, ValueError)) as raised:
                maker(*given, **{name: value})
            assert re.match(said, str(raised.value)), (name, value, raised.value)
