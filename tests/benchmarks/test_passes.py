"""New text and repeated text, with the same seeds."""

import jax
import numpy as np
import pytest

from benchmarks import fits, other_seeds, passes
from benchmarks.remarks import remarks
from steepest.race.suite import SIZES, table_of

from ..race.suites import record_of

BASE = np.array([1.50, 1.52, 1.49, 1.51, 1.50])
NOISE = 0.01 * np.array([1.0, -1.0, 0.5, -0.5, 0.0])


def test_both_texts_are_read_with_the_same_seeds(monkeypatch):
    monkeypatch.setattr(other_seeds, "SIZES", {"small": SIZES["tiny"]})
    with jax.numpy_dtype_promotion("standard"):
        found = passes.fits_of("muon", [3001, 3002])
    assert set(found) == {"new", "repeated"}
    for losses in found.values():
        assert [len(x) for x in losses.values()] == [2, 2]
    assert found["new"]["held-out"] != found["repeated"]["held-out"]


def test_the_short_text_is_read_several_times():
    size = SIZES["small"]
    data = {"train": np.zeros(10**6), "test": np.zeros(3)}
    cut = passes.short(data)
    assert cut["test"] is data["test"]
    read = size.steps * size.batch * size.places
    assert read / len(cut["train"]) == pytest.approx(passes.TIMES, rel=1e-4)


def _said(training, **changes):
    """The remarks on a record in which SOAP's training ends so far from Muon's."""
    record = record_of({"adamw": BASE, "muon": BASE - 0.1, "soap": BASE - 0.09})
    training = {"adamw": BASE + 0.1, "muon": BASE, "soap": BASE + training}
    for name, ends in training.items():
        record.arms[name].ran[0].curves = [[3.0, x] for x in [*ends, ends[0]]]
    for name, value in changes.items():
        setattr(record, name, value)
    return " ".join(remarks({"longer": record})["longer"].split())


def test_who_fits_text_better_that_was_read_before_is_said():
    read = 4 * SIZES["tiny"].batch * SIZES["tiny"].places
    said = _said(NOISE - 0.02, train_bytes=read // 4)
    assert "4 times as many bytes as its text has" in said
    assert "it has read 98% of the last ones before" in said
    assert "soap -0.0200 ± 0.0035 and +0.0100 ± 0.0000." in said
    assert "So soap is further behind Muon, or less ahead of it, on new text" in said
    assert "So soap" not in _said(NOISE + 0.02, train_bytes=read // 4)
    assert "so it has read 63% of" in _said(NOISE - 0.02, train_bytes=read)
    assert "read before" not in _said(NOISE - 0.02, train_bytes=20 * read)


def test_both_texts_are_compared_with_muon():
    losses = lambda x: {"training": (BASE + x).tolist(), "held-out": BASE.tolist()}
    kinds = lambda x: {"new": losses(x), "repeated": losses(x - NOISE)}
    found = {"muon": kinds(0.0), "soap": kinds(-0.1), "lion": kinds(2 * NOISE)}
    said = remarks({"small": record_of({"adamw": BASE})}, passes=found)["small"]
    assert "5 other seeds" in " ".join(said.split())
    assert [x.strip() for x in said.splitlines()[-2].split("|")[1:-1]] == [
        "soap",
        *["-0.1000 ± 0.0000", "+0.0000 ± 0.0000"] * 2,
    ]
    table = table_of(record_of({"adamw": BASE, "muon": BASE}))
    assert fits.with_less_text({"soap": kinds(0.0)}, table) == ""
    assert "Weight decays: muon 0.1, adamw 0.1." in fits.with_less_text(found, table)
