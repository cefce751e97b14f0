"""Axes, lines and marks; and the plots made of them."""

import xml.etree.ElementTree as ET
from dataclasses import replace

import numpy as np
import pytest

from steepest.race import standings
from steepest.race.report._labels import spread
from steepest.race.report._markup import coordinate, tag, words
from steepest.race.report._pictures import drawn, pictures
from steepest.race.report._plot import apart, NARROW
from steepest.race.report._scales import fit, logarithmic, Scale
from steepest.race.report._svg import band, line, mark, shortened

from .outcomes import digits, EDGES, outcome, pictures_of, sweep

edges = pytest.mark.parametrize("name", EDGES)
SVG = "{http://www.w3.org/2000/svg}"


def test_text_is_escaped():
    bad = "\"'<script>&"
    assert "<script>" not in tag("text", words(bad), title=bad)
    assert ET.fromstring(tag("text", words(bad), title=bad)).get("title") == bad


@pytest.mark.parametrize(
    ("value", "written"), [(3.04, "3"), (-0.04, "0"), (-0.55, "-0.6"), (10.0, "10")]
)
def test_coordinates_are_short(value, written):
    assert coordinate(value) == written


def test_a_linear_axis():
    x = Scale(0.0, 10.0, 100.0, 200.0)
    assert (x(0), x(5), x(10)) == (100, 150, 200)
    assert x(1e9) == 250, "what is far outside stays near"
    assert [t for _, t in x.ticks(6)] == ["0", "2", "4", "6", "8", "10"]


@pytest.mark.parametrize(
    ("low", "high", "texts"),
    [
        (0.97, 0.99, ["0.970", "0.975", "0.980", "0.985", "0.990"]),
        (-1.0, 1.0, ["-1.0", "-0.5", "0.0", "0.5", "1.0"]),
        (0.0, 21000.0, ["0", "5,000", "10,000", "15,000", "20,000"]),
        (0.0, 4e-5, ["0", "1e-5", "2e-5", "3e-5", "4e-5"]),
    ],
    ids=["accuracy", "around zero", "thousands", "tiny"],
)
def test_ticks_are_round(low, high, texts):
    assert [t for _, t in Scale(low, high, 0, 1).ticks(5)] == texts


def test_a_logarithmic_axis_where_values_span_decades():
    y = fit([1e-12, 1e3], 300.0, 0.0, log=True)
    assert y.log and y(1e-12) > 280 and y(1e3) < 20
    texts = [t for _, t in y.ticks(7)]
    assert "10⁰" in texts and len(texts) <= 7
    assert not fit([1.0, 9.0], 0, 1, log=True).log, "less than a decade"
    assert not fit([-1.0, 1e6], 0, 1, log=True).log, "below zero"


def test_a_logarithmic_axis_has_a_place_for_zero():
    y = fit([0.0, 1e-6, 1.0], 300.0, 0.0, log=True)
    assert y.log and y(0.0) == 300 and y(1e-6) < 290
    assert y.ticks(6)[0] == (0.0, "0")


def test_an_axis_of_few_decades_has_more_than_powers():
    texts = [t for _, t in fit([0.02, 0.9], 0.0, 1.0, log=True).ticks(7)]
    assert texts == ["0.02", "0.05", "0.1", "0.2", "0.5", "1"]


@pytest.mark.parametrize("values", [[], [np.nan], [0.0], [3.0, 3.0], [-2.0]], ids=str)
def test_every_axis_has_two_ends(values):
    for axis in (fit(values, 0, 1), fit(values, 0, 1, log=True)):
        assert axis.low < axis.high and axis.ticks(5)


def test_one_rate_has_an_axis():
    x = logarithmic([1e-3], 0.0, 100.0)
    assert x(1e-3) == pytest.approx(50)


def test_texts_on_an_axis_do_not_touch():
    kept = apart([(0.0, "1e-3"), (100.0, "1e-2"), (20.0, "2e-3"), (60.0, "5e-3")])
    assert [t for _, t in kept] == ["1e-3", "5e-3", "1e-2"]


def test_labels_are_spread_in_order():
    places = np.array(spread([5.0, 5.0, 5.0, 90.0], 0, 100, 10))
    assert (np.diff(places) >= 10).all() and places[0] >= 0 and places[3] == 90
    assert spread([99.0, 99.0], 0, 100, 10) == [90, 100]
    assert spread([], 0, 100, 10) == []


def test_lines_and_bands_break_where_there_is_no_number():
    xs, ys = np.arange(5.0), np.array([1.0, 2.0, np.nan, 4.0, 5.0])
    assert 'd="M0 1L1 2M3 4L4 5"' in line(xs, ys)
    assert band(xs, ys, ys + 1).count("M") == 2
    assert "nan" not in line(xs, ys) + band(xs, ys, ys + 1)


def test_long_lines_have_fewer_points():
    long = line(np.arange(5000.0), np.arange(5000.0))
    assert long.count("L") < 200 and "M0 0" in long and "L4999 4999" in long


def test_marks_differ():
    assert len({mark(k, 0, 0) for k in range(8)}) == 8


def test_names_lose_their_middle():
    short = shortened("chain(clip_by_global_norm(1.0), lion)", 100, 13)
    assert short.startswith("chain(") and short.endswith("lion)") and len(short) <= 13
    assert shortened("adam", 100, 13) == "adam"


def _is_drawn(text):
    """A complete plot, without NaN."""
    root = ET.fromstring(text)
    assert root.get("aria-label")
    paths = " ".join(p.get("d") for p in root.iter(f"{SVG}path"))
    assert "nan" not in paths and "inf" not in paths
    assert float(root.get("height")) < 1200


@edges
def test_every_race_has_its_pictures(name):
    for text in pictures_of(name).values():
        _is_drawn(text)


@pytest.mark.parametrize("name", ["digits", "nothing", "many decades"])
def test_every_race_has_its_pictures_for_a_phone(name):
    for picture in drawn(EDGES[name](), NARROW):
        _is_drawn(picture.alone())


def test_pictures_are_files_of_their_own():
    result = pictures_of("digits")
    assert list(result) == [
        "loss-by-steps",
        "loss-by-seconds",
        "metric-by-seconds",
        "learning-rates",
        "finals",
    ]
    for text in result.values():
        root = ET.fromstring(text)
        assert root.find(f"{SVG}title").text and root.find(f"{SVG}desc").text
        assert "prefers-color-scheme: dark" in root.find(f"{SVG}style").text
        assert text.count("http") == 1, "the name of the language, and no address"


def _parts(text, kind):
    result = ET.fromstring(text).iter()
    return [part for part in result if kind in (part.get("class") or "").split()]


def test_diverged_runs_are_crosses():
    race = digits()
    lost = [row.sweep.diverged.any(axis=1).sum() for row in standings(race)]
    crosses = _parts(pictures_of("digits")["learning-rates"], "cross")
    assert len(crosses) == sum(lost) > 8
    tips = [c.find(f"{SVG}title").text for c in crosses]
    assert "broken at 1e-3\n3 of 3 runs diverged" in tips
    assert any("1 of 3 runs" in tip for tip in tips)
    assert len(_parts(pictures_of("digits")["finals"], "cross")) == 1


def test_the_best_rate_is_emphasised():
    rings = _parts(pictures_of("digits")["learning-rates"], "ring")
    assert len(rings) == 6, "not the one without rates, nor the one that diverged"


def test_a_band_needs_several_seeds():
    several, one = (
        pictures(outcome(sweep(seeds=seeds)))["loss-by-steps"]
        for seeds in ((0, 1, 2), (0,))
    )
    assert _parts(several, "band") and not _parts(one, "band")


def test_what_diverges_does_not_flatten_the_others():
    """The axis fits the runs that do not diverge."""
    good, bad = sweep("adam"), sweep("sgd", limit=1e-9)
    huge = replace(bad, loss=np.where(np.isnan(bad.loss), np.nan, 1e30))
    assert "10³⁰" not in pictures(outcome(good, huge))["loss-by-steps"]


def test_what_gets_worse_than_at_the_start_does_not_flatten_the_others():
    """It leaves the learning-rate plot, whose axis ends at the initial metric."""
    s = sweep("adam", rates=(1e-3, 3e-3, 1e-2), best=3e-3)
    bits = 8 - 5 * s.metric
    bits[2, :, -1] = 4000.0
    race = replace(outcome(replace(s, metric=bits)), better="lower")
    plot = pictures(race)["learning-rates"]
    assert len(_parts(plot, "ring")) == 1
    assert len(_parts(plot, "mark")) == 2, "one of them is beside the name"
    assert max(float(t.text) for t in _parts(plot, "up")) <= 8


def test_seconds_are_those_of_one_run():
    s = sweep(planned=1000, speed=7.0)
    text = pictures(outcome(s))["loss-by-seconds"]
    ticks = [float(t.text) for t in _parts(text, "across")]
    assert max(ticks) == pytest.approx(s.seconds[-1] / s.runs)


def test_a_hopeless_optimizer_does_not_hide_the_others():
    good = [sweep(f"o{k}", skill=0.98 + 0.001 * k) for k in range(5)]
    race = outcome(*good, sweep("bad", skill=0.2))
    root = ET.fromstring(pictures(race)["finals"])
    ticks = [float(t.text) for t in _parts(ET.tostring(root), "across")]
    assert min(ticks) > 0.9
    assert any((t.text or "").startswith("0.20") for t in root.iter(f"{SVG}text"))


def test_far_quicker_ones_make_time_logarithmic():
    race = outcome(sweep("adam"), sweep("slow", speed=50.0))
    assert "seconds per run, log scale" in pictures(race)["loss-by-seconds"]


@pytest.mark.parametrize("better", ["lower", "higher"])
def test_what_diverged_is_named_at_the_bad_end(better):
    """Next to its crosses."""
    race = outcome(sweep("adam"), sweep("lost", limit=1e-9), better=better)
    text = pictures(race)["learning-rates"]
    heights = {t.text: float(t.get("y")) for t in _parts(text, "name")}
    (lane,) = _parts(text, "lane")
    far = {name: abs(y - float(lane.get("y"))) for name, y in heights.items()}
    assert far["lost"] < far["adam"]
