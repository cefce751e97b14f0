"""All errors have the same form: name, actual value, expected value, what to do."""

from functools import partial

import pytest

import steepest
from steepest.core import missing, not_a_transformation


def test_missing_params_show_the_call():
    error = missing("nag", "params")
    assert isinstance(error, ValueError)
    assert str(error) == (
        "nag: `update` needs `params` and was called without it. "
        "Call `tx.update(grads, state, params)`."
    )


def test_a_missing_extra_argument_shows_its_keyword():
    assert str(missing("polyak", "value")) == (
        "polyak: `update` needs `value` and was called without it. "
        "Call `tx.update(grads, state, params, value=...)`."
    )


@pytest.mark.parametrize(
    "found, kind, advice",
    [
        ([1, 2], "list", "Unpack it: `chain(*transformations)`."),
        ((1, 2), "tuple", "Unpack it: `chain(*transformations)`."),
        (steepest.adam, "function", "Call it first: `adam(...)`."),
        (partial(steepest.adam), "partial", "Call it first: `maker(...)`."),
        (0.1, "float", "Pass a transformation, such as `steepest.adam(1e-3)`."),
        (None, "NoneType", "Pass a transformation, such as `steepest.adam(1e-3)`."),
    ],
)
def test_what_is_no_transformation_is_named_with_advice(found, kind, advice):
    error = not_a_transformation("chain", "argument 1", found)
    assert isinstance(error, TypeError)
    assert str(error) == (
        f"chain: argument 1 is a {kind}, expected a gradient transformation (a pair of "
        f"`init` and `update`). {advice}"
    )


def test_what_is_missing_is_both_kinds_of_error():
    """Optax raises a TypeError for a keyword and a ValueError for params."""
    for kind in (TypeError, ValueError):
        with pytest.raises(
            kind, match=r"tx\.update\(grads, state, params, value=\.\.\.\)"
        ):
            raise missing("momo", "value")
