"""Arguments that no optimizer can do anything with, or hardly."""

import re

import pytest

from ..unusual import ODD

NAN, INF = float("nan"), float("inf")
NOT_FINITE = [NAN, INF, "1", None]
NOT_AMOUNTS = [-1.0, *NOT_FINITE]
NOT_FLAGS = ["no", None, 2, []]
NOT_DTYPES = ["x", int, 3]


def refuses(maker, *given, who=None, **bad):
    """`maker(*given)` refuses every value of every argument in `bad`, or warns of it.

    It, or `who`, says its name, that of the argument, and what is wanted or usual.
    """
    for name, values in bad.items():
        for value in values:
            said = rf"{who or maker.__name__}: {name} (is|has) .* (wanted|as it is)\."
            with pytest.raises((TypeError, *ODD)) as raised:
                maker(*given, **{name: value})
            assert re.match(said, str(raised.value)), (name, value, raised.value)
