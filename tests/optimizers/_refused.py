"""Arguments that are impossible or unusual for an optimizer."""

import re

import pytest

from ..unusual import ODD

NAN, INF = float("nan"), float("inf")
NOT_FINITE = [NAN, INF, "1", None]
NOT_AMOUNTS = [-1.0, *NOT_FINITE]
NOT_FLAGS = ["no", None, 2, []]
NOT_DTYPES = ["x", int, 3]


def refuses(maker, *args, name=None, **bad):
    """Check that `maker(*args)` raises or warns for all values in `bad`.

    The message gives the name of `maker`, or `name`; the argument; and what is expected
    or usual.
    """
    for argument, values in bad.items():
        for value in values:
            said = rf"{name or maker.__name__}: {argument} (is|has) .*(expected|usual)"
            with pytest.raises((TypeError, *ODD)) as raised:
                maker(*args, **{argument: value})
            assert re.match(said, str(raised.value)), (argument, value, raised.value)
