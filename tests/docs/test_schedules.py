"""The gallery of schedules."""

import re

import jax
import numpy as np

import steepest
from docs.pictures._schedules import schedules


def test_the_gallery_shows_every_schedule_as_it_is():
    with jax.numpy_rank_promotion("allow"), jax.numpy_dtype_promotion("standard"):
        drawn = dict(schedules())
    made = {name for name in dir(steepest.schedules) if _is_schedule(name)}
    assert {file.stem for file in drawn} == made
    numbers = re.compile(r"-?\d+\.?\d*")
    for file, svg in drawn.items():
        committed = file.read_text("utf-8")
        assert numbers.sub("", committed) == numbers.sub("", svg), file.name
        old, new = (np.array(numbers.findall(x), float) for x in (committed, svg))
        # A tenth of a pixel may round differently on another machine.
        np.testing.assert_allclose(old, new, rtol=0, atol=0.11, err_msg=file.name)


def _is_schedule(name: str) -> bool:
    kinds = "_decay", "_schedule", "_schedules"
    return name == "wsd" or (name.endswith(kinds) and not name.startswith("_"))
