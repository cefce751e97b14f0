"""What the page of the suite says about its results is computed from them."""

import numpy as np
import pytest

from benchmarks.remarks import remarks
from steepest.race.suite._protocol import MORE

from ..race.suites import ran, record_of

BASE = np.array([1.50, 1.52, 1.49, 1.51, 1.50])
NOISE = np.array([1.0, -1.0, 0.5, -0.5, 0.0])
ARMS = {
    "adamw": BASE,
    "optax adamw": BASE + 0.01 * NOISE,
    "adamw int8": BASE + 0.001 * (NOISE + 1),
    "muon": BASE - 0.04,
    "soap": BASE - 0.03,
    "normuon": BASE - 0.05,
}


def _said(records, name="full"):
    """The remarks without line breaks."""
    return " ".join(remarks(records)[name].split())


def test_the_spread_of_equal_runs_is_measured():
    record = record_of(ARMS)
    spread, sigma = 0.01 * np.std(NOISE, ddof=1), np.std(BASE, ddof=1)
    said = _said({"full": record})
    assert f"differ by {spread:.4f} nats (standard deviation)" in said
    error = spread / 5**0.5 / sigma
    assert f"the mean of 5 seeds is known to ±{error:.2f} sigma" in said
    for name in ("adamw", "optax adamw"):
        record.arms[name].ran.append(ran(BASE, MORE))
    assert "the mean of 10 seeds is known to" in _said({"full": record})


def test_int8_is_compared_seed_by_seed():
    said = _said({"full": record_of(ARMS)})
    assert "adamw int8 differs by +0.0010 ± 0.0004 nats, +0.09 sigma of adamw" in said
    assert "the same sign for 4 of 5 seeds" in said and "muon int8" not in said


@pytest.mark.parametrize(
    "side, words", [("lowest", "is the best for 1 of"), ("", "no decay is")]
)
def test_edges_of_the_search_are_counted(side, words):
    record = record_of(ARMS)
    record.arms["muon"].entry |= {"edge": side, "programs": 5}
    said = _said({"full": record})
    assert "the 4 tuned arms needed 1.2 programs" in said and "1 used all 5" in said
    assert words in said.partition("no learning rate is")[2]


def test_a_plateau_is_measured_where_all_runs_leave_it():
    record = record_of(ARMS)
    for name, last in (("adamw", 3), ("muon", 1), ("soap", 4)):
        curve = [2.4] * last + [2.0] * (4 - last)
        record.arms[name].ran[0].curves = [curve] * 6
    said = _said({"full": record})  # soap does not leave it
    assert "after 25% of a run for muon and 75% of a run for adamw." in said


ORDERS = {
    "the same.": ["normuon", "muon", "soap"],
    "the same three in another order.": ["normuon", "soap", "muon"],
    "not the same.": ["lion", "normuon", "soap"],
}


@pytest.mark.parametrize("words", ORDERS)
def test_the_order_is_that_of_the_gpu_or_not(words):
    small = {name: BASE - 0.1 / (k + 1) for k, name in enumerate(ORDERS[words])}
    full = record_of({**ARMS, "lion": BASE + 0.1})
    records = {"full": full, "small": record_of({**ARMS, "lion": BASE, **small})}
    assert f"normuon, muon and soap: {words}" in _said(records, "small")


def test_nothing_is_said_without_results():
    record = record_of({}, adamw="the suite was stopped")
    assert remarks({"full": record}) == {}


def test_equal_bits_are_called_so():
    same = {**ARMS, "optax adamw": BASE}
    said = _said({"full": record_of(same)})
    assert "end with the same loss, to the last bit, for all 5 seeds" in said
    assert "grow apart" not in said


def test_late_runs_are_counted():
    assert "Late runs" not in _said({"full": record_of(ARMS)})
    late = {**ARMS, "soap": BASE - 0.03 + np.array([0, 0, 0.2, 0, 0])}
    said = _said({"full": record_of(late)})
    assert "1 of 5 of soap. They move" in said
    assert "soap +0.0200, normuon -0.0100." in said


def test_clear_differences_have_the_same_order_or_not():
    noise = 0.001 * np.array([0, 1, 0, -1, 0])
    full = record_of({"adamw": BASE, "muon": BASE - 0.1, "lion": BASE + 0.1 + noise})
    small = record_of({"adamw": BASE, "muon": BASE - 0.1, "lion": BASE - 0.2 + noise})
    said = _said({"full": full, "small": small}, "small")
    assert "Of the 3 pairs of optimizers" in said and "1 have the same order" in said


def test_int8_with_other_seeds_is_compared_run_by_run():
    losses = {"float32": [1.0, 2.0, 3.0], "int8": [1.1, 2.0, 3.2]}
    record = record_of(ARMS)
    said = " ".join(remarks({"small": record}, {"lion": losses})["small"].split())
    assert "lion +0.1000 ± 0.0577 nats, +0.10 sigma, with 3 seeds." in said
    assert "other seeds" not in _said({"small": record}, "small")


def test_longer_runs_are_compared_with_the_full_ones():
    lengths = BASE + 0.1, BASE - 0.05
    full = record_of({**ARMS, "lion": BASE + 0.1}, lengths)
    longer = record_of({**ARMS, "muon": BASE - 0.02, "lion": BASE + 0.03}, lengths)
    longer.size = {**longer.size, "steps": 4 * longer.size["steps"]}
    said = _said({"full": full, "longer": longer}, "longer")
    assert "**With 4 times as many steps**, one run of AdamW varies by" in said
    assert "nats instead of" in said and "AdamW needs" in said
    assert "Lion differs from AdamW by +0.0300 nats instead of +0.1000." in said
    assert "**With" not in _said({"full": full, "longer": longer}, "full")


def test_what_a_shorter_memory_changes():
    losses = {"0.95": [1.0, 2.0, 3.0], "0.9": [0.9, 1.8, 2.9]}
    record = record_of(ARMS)
    said = remarks({"small": record}, momenta={"soap": losses})["small"]
    said = " ".join(said.split())
    assert "with 3 other seeds" in said and "soap -0.1333 ± 0.0333." in said
    assert "**Momentum**" not in _said({"small": record}, "small")


def test_optimizers_near_muon_are_compared_on_both_machines():
    records = {"longer": record_of(ARMS), "small": record_of({**ARMS, "soap": BASE})}
    said = _said(records, "longer")
    assert "on two cores: soap +0.0100 ± 0.0000 and +0.0400 ± 0.0000; normuon" in said
    assert "Near Muon" not in _said({"longer": record_of(ARMS)}, "longer")


def test_int8_is_counted_over_all_sizes():
    higher = {**ARMS, "adamw int8": BASE + 0.001 * (NOISE - 1)}
    near = {**ARMS, "adamw int8": BASE + 0.001 * (NOISE + 0.1)}
    records = {"full": record_of(near), "small": record_of(higher)}
    said = _said(records, "small")
    assert "all tables**: 1 of 2 differences are within" in said
    assert "In 1 of 2, int8 has the lower loss." in said


def test_what_the_roundings_of_a_gpu_change():
    losses = {"plain": [1.0, 2.0, 3.0], "rounded": [1.1, 2.0, 3.2]}
    said = remarks({"small": record_of(ARMS)}, roundings={"muon": losses})["small"]
    said = " ".join(said.split())
    assert "3 other seeds" in said and "in nats: muon +0.1000 ± 0.0577." in said
