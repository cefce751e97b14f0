"""The table as text, the verdict, and the page around them."""

import gzip
import json
import math
import re
from base64 import b64decode
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest

from steepest.race import results
from steepest.race.report._again import command
from steepest.race.report._columns import columns, notes, verdict
from steepest.race.report._numbers import NOTHING, number, seconds
from steepest.race.report._page import page

from .outcomes import digits, EDGES, LONG, outcome, page_of, sweep

BAD = "<script>alert('x')</script> & \"quotes\""
VOID = {"meta", "link"}


class _Reader(HTMLParser):
    """Tags and text; every tag must be closed in order."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.texts = [], [], []
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] not in ("script", "style"):
            self.texts.append(data)


@pytest.mark.parametrize(
    ("value", "spread", "text"),
    [
        (0.984, 0.003, "0.984 ± 0.003"),
        (0.984, None, "0.9840"),
        (0.984, math.nan, "0.9840"),
        (1e-12, 3e-13, "(1.0 ± 0.3)e-12"),
        (1e-12, None, "1.000e-12"),
        (-1234.5, 20.0, "-1234 ± 20"),
        (0.0, 0.0, "0.000 ± 0.000"),
        (-1e-9, 0.1, "0.0 ± 0.1"),
        (5e-310, 1e-310, None),
        (math.nan, 1.0, NOTHING),
        (math.inf, None, NOTHING),
    ],
    ids=str,
)
def test_numbers(value, spread, text):
    assert number(value, spread) == (text or number(value, spread))


def test_seconds_never_round_up_to_the_next_unit():
    for value in (59.4, 59.6, 0.9999, 9.96e-4, 3599.9):
        assert not re.match(r"60 s|1000 ms|1000 µs|60 min", seconds(value)), value


@pytest.mark.parametrize("name", EDGES)
def test_every_race_has_a_page(name):
    race = EDGES[name]()
    reader = _Reader(page_of(name))
    told = " ".join(reader.texts)
    assert verdict(race) in told
    headers, rows = columns(race)
    assert all(len(row) == len(headers) for row in rows)
    assert len(rows) == len(race.sweeps)
    cells = [a for t, a in reader.tags if t == "td" and "data-label" in a]
    assert len(cells) == len(rows) * (len(headers) - 1)
    assert "nan" not in re.findall(r"\bnan\b", told)
    for note in notes(race):
        assert note in told


def test_nothing_is_fetched():
    text = page_of("digits")
    assert "://" not in text and "url(" not in text and "@import" not in text
    links = [a for _, a in _Reader(text).tags if "href" in a or "src" in a]
    assert [link["href"] for link in links] == ["data:,"]
    assert len(text.encode()) < 260_000


def test_markup_in_names_is_escaped():
    race = replace(
        outcome(sweep(BAD), sweep("adam")),
        problem=BAD,
        about=BAD,
        measure=BAD,
        machine=BAD,
        missing=((BAD, BAD),),
    )
    reader = _Reader(page(race))
    scripts = [a for tag, a in reader.tags if tag == "script"]
    assert [a.get("data-file") for a in scripts] == ["table.csv", "results.json", None]
    assert reader.texts.count(BAD) >= 4


def test_the_page_can_be_read_aloud():
    reader = _Reader(page_of("digits"))
    pictures = [a for tag, a in reader.tags if tag == "svg" and a.get("role")]
    assert len(pictures) == 10 and all(a["aria-label"] for a in pictures)
    scopes = [a.get("scope") for tag, a in reader.tags if tag == "th"]
    assert set(scopes) == {"col", "row"}
    assert ("html", {"lang": "en"}) in reader.tags


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("digits", "no clear difference from adamw, "),
        ("one seed", "with one seed, the differences may be"),
        ("one optimizer", "no other optimizer ran"),
        ("no rate", "lbfgs reaches accuracy"),
        ("nothing", "No optimizer ran."),
        ("all diverged", "No winner: every optimizer diverged"),
        ("many decades", "significantly better than every other"),
    ],
)
def test_the_verdict(name, wanted):
    assert wanted in verdict(EDGES[name]())


def test_the_table_says_what_went_wrong():
    headers, rows = columns(digits())
    table = {row[0]: dict(zip(headers, row, strict=True)) for row in rows}
    assert table["broken"]["accuracy"] == "diverged"
    assert table["broken"]["learning rate"] == NOTHING
    assert table["broken"]["diverged runs"] == "24 of 24"
    assert table["sgd"]["learning rate"] == "0.3 ↑"
    assert table["lion †"]["diverged runs"] == "7 of 24"
    assert table["lbfgs"]["learning rate"] == NOTHING
    assert table["lbfgs"]["steps to target"] == NOTHING
    assert table[LONG]["vs. the best"].startswith("no clear difference, p =")
    assert rows[0][-1] == "best"
    told = " ".join(notes(digits()))
    assert "lion was stopped after 600 of 1,000 steps" in told
    assert "polyak_sgd did not run: it needs" in told
    assert "the highest learning rate tried" in told


def test_without_a_target_no_column_is_about_it():
    assert not any("target" in header for header in columns(EDGES["no target"]())[0])


def test_a_best_rate_at_the_low_end_is_told():
    rows = columns(outcome(sweep(best=1e-5)))[1]
    assert rows[0][1] == "1e-4 ↓"


def test_digits_are_the_same_in_all_rows():
    texts = [row[2] for row in columns(EDGES["many optimizers"]())[1]]
    assert len({len(text) for text in texts}) == 1


def test_everything_is_in_the_page_as_numbers():
    race = digits()
    told = _Reader(page_of("digits")).texts
    s = race.sweeps[2]
    assert number(float(np.mean(s.metric[3, :, -1]))) in told
    assert "1 diverged" in told


def test_the_numbers_are_in_the_page_as_files():
    packed = re.findall(r'data-file="([^"]+)">([^<]+)<', page_of("digits"))
    files = {name: gzip.decompress(b64decode(text)).decode() for name, text in packed}
    full, short = json.loads(results(digits())), json.loads(files["results.json"])
    assert short["recommendation"] == full["recommendation"]
    np.testing.assert_allclose(
        short["sweeps"][2]["metric"][0], full["sweeps"][2]["metric"][0], rtol=1e-5
    )
    assert len(files["table.csv"].splitlines()) == 9


def test_the_command_to_run_it_again():
    assert command(digits()) is None, "the problem has no name to load it by"
    race = outcome(
        sweep("adamw", rates=(1e-3, 1e-2)),
        sweep("chain(clip(1.0), adam)", rates=(1e-3, 1e-2), seeds=(0, 1, 2)),
        source="my_module:problem",
        schedule="cosine_decay_schedule(rate, steps)",
    )
    line = command(race)
    assert line == (
        "steepest race my_module:problem --optimizers "
        "'adamw,chain(clip(1.0), adam)' --learning-rates 1e-3,1e-2 --seeds 3 --steps "
        "1000 --target 0.95 --schedule 'cosine_decay_schedule(rate, steps)'"
    )
    assert line in " ".join(_Reader(page(race)).texts)
    seeds = replace(race, sweeps=(sweep(seeds=(7,)),))
    assert " --seeds 7, " in command(seeds)


def test_shares_are_shown_by_their_distance_from_1():
    assert "1 - accuracy, log scale" in page_of("digits")
    assert "1 - " not in page_of("many decades") + page_of("below zero")


_UNTRUE = {
    "± is the standard deviation over the seeds": ["one seed"],
    "slightly optimistic": ["one rate", "no rate"],
    "Holm": ["one seed", "one optimizer", "no rate", "all diverged"],
    "With one seed": ["digits", "one optimizer", "one rate", "no rate", "all diverged"],
}


@pytest.mark.parametrize("sentence", _UNTRUE)
@pytest.mark.parametrize("name", sorted({x for xs in _UNTRUE.values() for x in xs}))
def test_a_page_says_only_what_is_true_of_its_race(name, sentence):
    assert (sentence in page_of(name)) == (name not in _UNTRUE[sentence])
