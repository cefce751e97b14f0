"""A curve in braille, and how many steps of a schedule to draw."""

import math

import pytest

from steepest.race.report import guessed_steps, schedule_picture, schedule_values
from steepest.race.terminal._curve import draw


def _dots(lines, width):
    """The positions of all dots, from the left and from the top."""
    order = [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2), (0, 3), (1, 3)]
    result = set()
    for row, line in enumerate(lines[:-2]):
        for column, letter in enumerate(line[-width:]):
            for bit, (x, y) in enumerate(order):
                if (ord(letter) - 0x2800) >> bit & 1:
                    result.add((2 * column + x, 4 * row + y))
    return result


def test_a_line_goes_from_corner_to_corner():
    dots = _dots(draw([0.0, 1.0], 10, width=6, height=3), 6)
    assert dots == {(k, 11 - k) for k in range(12)}


def test_a_jump_is_a_line():
    dots = _dots(draw([1.0] * 50 + [0.0] * 50, 10, width=6, height=3), 6)
    assert {y for _, y in dots} == set(range(12))
    assert len({x for x, y in dots if 0 < y < 11}) == 1


def test_what_is_not_finite_is_a_gap():
    dots = _dots(draw([1.0, 1.0, math.nan, 1.0, 2.0], 10, width=8, height=2), 8)
    across = {x for x, _ in dots}
    assert 0 in across and 15 in across and 7 not in across


@pytest.mark.parametrize("value", [0.0, 0.1, -3.0])
def test_what_stays_the_same_is_a_line_in_the_middle(value):
    lines = draw([value] * 3, 10, width=5, height=3)
    assert lines[1] == f"{value:g} ┤⠤⠤⠤⠤⠤"


def test_the_middle_is_named_where_there_is_room():
    words = [draw([0.0, 1.0], last, 10)[-1].split() for last in (10, 11, 1000)]
    assert words == [
        ["0", "5", "10", "steps"],
        ["0", "11", "steps"],
        ["0", "1,000", "steps"],
    ]


def test_nothing_to_draw():
    assert draw([math.nan], 1) == ["All values are NaN or infinite."]


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        ("warmup_cosine_decay_schedule(0, 1e-3, 100, 1000)", 1000),
        ("linear_schedule(1.0, 0.0, 300)", 300),
        ("exponential_decay(1.0, 100, 0.5)", 500),  # it never becomes constant
        ("piecewise_constant_schedule(1.0, {100: 0.1, 200: 0.1})", 220),
        ("cosine_decay_schedule(rate, steps)", 1000),
        ("0.1", 1000),
    ],
)
def test_steps_are_guessed(text, steps):
    assert guessed_steps(text) == steps


def test_values_are_those_of_the_schedule():
    counts, result = schedule_values("linear_schedule(rate, 0.0, steps)", 4)
    assert counts.tolist() == [0, 1, 2, 3, 4]
    assert result.tolist() == [1.0, 0.75, 0.5, 0.25, 0.0]


def test_many_steps_are_looked_at_now_and_then():
    counts, result = schedule_values("linear_schedule(1.0, 0.0, 1000000)", 1_000_000)
    assert len(counts) == len(result) < 3000
    assert counts[-1] == 1_000_000 and result[-1] == 0


def test_a_picture_has_the_text_as_its_title():
    text = "linear_schedule(1.0, 0.0, 4)"
    markup = schedule_picture(text, *schedule_values(text, 4)).alone()
    assert f"<title>{text}</title>" in markup and 'class="curve"' in markup
