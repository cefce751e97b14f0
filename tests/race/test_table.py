"""The table of a race: on a terminal of any width, and in a pipe."""

import io
from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console

from steepest.race.report._columns import columns, verdict
from steepest.race.terminal._console import console_for
from steepest.race.terminal._table import print_outcome

from .outcomes import digits, EDGES, LONG, outcome as race_of, sweep

edges = pytest.mark.parametrize("edge", EDGES)


def _on_a_terminal(outcome, width, **how):
    file = io.StringIO()
    how = {"color_system": None, **how}
    console = Console(
        file=file, width=width, force_terminal=True, legacy_windows=False, **how
    )
    print_outcome(console, outcome)
    return file.getvalue()


def _in_a_pipe(outcome):
    file = io.StringIO()
    print_outcome(console_for(file), outcome)
    return file.getvalue()


@edges
def test_a_pipe_gets_every_text_on_lines_of_any_length(edge):
    outcome = EDGES[edge]()
    lines = _in_a_pipe(outcome).splitlines()
    headers, rows = columns(outcome)
    table = [headers, *rows] if rows else []
    assert outcome.about in lines[0] and outcome.machine in lines[1]
    for texts, line in zip(table, lines[3:], strict=False):
        for text in texts:
            assert text in line
    assert verdict(outcome) in lines


def test_a_problem_without_a_description_has_a_bare_title():
    bare = replace(digits(), about="")
    assert _in_a_pipe(bare).splitlines()[0] == "digits"


def test_a_pipe_gets_no_color_and_no_boxes():
    text = _in_a_pipe(digits())
    assert "\x1b" not in text
    assert not set("│─━┃╭╮") & set(text)


@pytest.mark.parametrize("width", [200, 140, 100, 80, 60, 44])
@edges
def test_a_terminal_gets_no_line_that_is_too_long_and_no_number_cut(edge, width):
    outcome = EDGES[edge]()
    text = _on_a_terminal(outcome, width)
    assert max(map(len, text.splitlines())) <= width
    assert "…" not in text
    _, rows = columns(outcome)
    for row in rows:
        for number in row[1:3]:  # the learning rate and the metric
            assert any(number in line for line in text.splitlines())


def test_a_small_number_among_large_ones_keeps_its_digits():
    """0.0014 ± 0.0002 next to 213 used to be `0.00 ± 0.00`."""
    ends = {"a": 213.0, "b": 180.0, "c": 199.0, "d": 0.0014}
    result = []
    for name, end in ends.items():
        some = sweep(name, rates=(0.1,), limit=1, noise=0.0)
        chance = np.array([0.9, 1.0, 1.1])[None, :, None]
        result.append(replace(some, metric=end * chance + 0 * some.metric))
    race = race_of(*result, better="lower", measure="mse", target=None)
    cells = {row[0]: row[2] for row in columns(race)[1]}
    assert cells["d"] == "0.0014 ± 0.0001" and cells["a"] == "213.0 ± 21.3"
    tiny = replace(result[0], metric=0.5 + 1e-9 * result[0].metric)
    race = race_of(tiny, result[1], better="lower", measure="mse", target=None)
    assert columns(race)[1][0][2].endswith("± 2e-8")


def test_a_narrow_terminal_does_without_what_matters_least():
    wide, narrow = (_on_a_terminal(digits(), width) for width in (240, 80))
    assert LONG in wide and "state bytes/param" in wide
    assert "bytes/param" not in narrow and "vs. the" in narrow


def test_names_are_no_markup():
    """`[bold]` would disappear, and `:smile:` would become an emoji."""
    missing = (("[bold]route[/]", "no :smile: in {'.*': adamw}"),)
    for text in (
        _in_a_pipe(race_of(missing=missing)),
        _on_a_terminal(race_of(missing=missing), 200),
    ):
        assert "[bold]route[/] did not run: no :smile: in" in text


def test_color_can_be_turned_off(monkeypatch):
    show = lambda: _on_a_terminal(digits(), 200, color_system="truecolor")
    assert "\x1b[1;32m" in show()
    monkeypatch.setenv("NO_COLOR", "1")
    assert "32m" not in show()
