"""Problems are checked before anything is compiled."""

from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest

from steepest.race import Problem
from steepest.race._check import checked

from .small import LINE

LOCAL = replace(LINE, adjust=lambda params, batch: params)


@pytest.mark.parametrize("problem", [LINE, LOCAL], ids=["gradient", "local"])
def test_a_good_one_is_returned(problem):
    assert checked(problem) is problem


def test_most_fields_are_optional():
    checked(Problem(init=lambda key: jnp.ones(2), loss=lambda p, batch: jnp.sum(p)))


BAD = {
    "init takes nothing": ({"init": lambda: 0}, "`init`.*`init\\(key\\)`.*TypeError"),
    "init of nothing": ({"init": lambda key: {}}, "`init`.*at least one array"),
    "init of integers": (
        {"init": lambda key: {"w": jnp.arange(4)}},
        r"`init`.*int32\[4\] at \['w'\].*floating",
    ),
    "init is no function": ({"init": 3}, "`init`.*is 3, expected a function"),
    "data of words": ({"data": {"x": "word"}}, r"`data`.*a str at \['x'\]"),
    "data of large integers": (
        {"data": {"id": np.array([2**33])}},
        r"`data` .* at \['id'\], has the integer 8589934592, which does not fit into",
    ),
    "batches fail": (
        {"batches": lambda key, data: data["rows"]},
        r"`batches`.*`batches\(key, data\)`.*float32\[50,4\]",
    ),
    "loss fails": (
        {"loss": lambda p, batch: batch @ p["bias"]},
        r"`loss`.*'w': float32\[4\].*batch = float32\[8,4\].*KeyError: 'bias'",
    ),
    "batches ask a traced key": (
        {"batches": lambda key, data: data[: 9 if data[0, 0] > 0 else 8]},
        r"`batches`.*TracerBoolConversionError: Attempted boolean conversion[^\n]*$",
    ),
    "loss of each": (
        {"loss": lambda p, batch: batch @ p["w"]},
        r"`loss`.*float32\[8\], expected one floating-point number",
    ),
    "loss is an integer": (
        {"loss": lambda p, batch: jnp.int32(p["b"])},
        r"`loss`.*int32\[\], expected one floating-point number",
    ),
    "metric of many": (
        {"metric": lambda p, data: jnp.ones(2)},
        "`metric`.*expected one real number",
    ),
    "loss and more": (
        {"loss": lambda p, batch: (jnp.sum(p["w"]), 0)},
        r"`loss`.*\(float32\[\], int32\[\]\), expected one floating-point number",
    ),
    "loss is complex": (
        {"loss": lambda p, batch: jnp.sum(p["w"]).astype("complex64")},
        "`loss`.*complex64.*one floating-point number",
    ),
    "loss is nothing": ({"loss": lambda p, batch: None}, "`loss`.*None"),
    "metric of each": ({"metric": lambda p, data: p["w"]}, r"`metric`.*float32\[4\]"),
    "adjusts less": (
        {"adjust": lambda p, batch: {"w": p["w"]}},
        r"`adjust`.*structure.*\{'b': float32\[\], 'w': float32\[4\]\}",
    ),
    "adjusts another shape": (
        {"adjust": lambda p, batch: {"b": p["w"], "w": p["w"]}},
        r"`adjust`.*float32\[4\] at \['b'\], expected float32\[\]",
    ),
    "better": ({"better": "best"}, '`better`.*\'best\', expected "lower" or "higher"'),
    "steps": ({"steps": 0}, "`steps`.*is 0, expected a whole number"),
    "rates": ({"learning_rates": (0.1, -1.0)}, "`learning_rates`.*above 0"),
    "no rates": ({"learning_rates": ()}, "`learning_rates`.*above 0"),
    "optimizers": ({"optimizers": "adam"}, "`optimizers`.*'adam', expected a list"),
    "target": ({"target": "low"}, "`target`.*'low', expected a number"),
}


@pytest.mark.parametrize("change, says", BAD.values(), ids=BAD)
def test_mismatches_are_errors(change, says, as_users_do):
    with pytest.raises((TypeError, ValueError), match=f"^race: {says}"):
        checked(replace(LINE, **change))


def test_not_a_problem(as_users_do):
    with pytest.raises(TypeError, match="is a dict, expected a `steepest"):
        checked({"init": np.zeros})
