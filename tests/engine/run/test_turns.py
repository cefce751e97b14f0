"""The steps in which matrices have their turns."""

import numpy as np
import pytest

from steepest.engine.run._turns import divide, Places, Turns, Work


@pytest.mark.parametrize(
    "works, k, turns",
    [
        # The sides of GPT-2: 60 of 768, 12 of 2304 and 24 of 3072.
        ([(60, 768), (12, 2304), (24, 3072)], 10, [(8, 2), (8, 2), (0, 8)]),
        ([(60, 768)], 10, [(0, 10)]),
        ([(1, 768)], 10, [(0, 1)]),
        ([(3, 8), (2, 4)], 1, [(0, 1), (0, 1)]),
        ([(9, 8), (9, 4), (9, 2)], 2, [(0, 2), (0, 2), (0, 1)]),
        ([], 10, []),
    ],
)
def test_steps_are_divided_by_work(works, k, turns):
    works = [Work(n, n * d**3) for n, d in works]
    assert divide(works, k) == [Turns(first, count, k) for first, count in turns]


def taken(d):
    """The time of a turn of SOAP, per side: products, and passes over it."""
    return d**2 * (d + 1500)


SOAP = [(60, 768), (12, 2304), (24, 3072)], [(240, 1600), (48, 4800), (96, 6400)]


@pytest.mark.parametrize(
    "works, k, most, over",
    [
        ([(n, d**3) for n, d in SOAP[0]], 10, 1.01, 1.01),  # SOAP, GPT-2 124M
        ([(n, taken(d)) for n, d in SOAP[0]], 10, 1.06, 1.01),
        ([(n, d**3) for n, d in SOAP[1]], 10, 1.01, 1.01),  # SOAP, GPT-2 XL
        ([(n, taken(d)) for n, d in SOAP[1]], 10, 1.06, 1.01),
        ([(12, 1), (12, 3), (12, 4), (12, 4)], 5, 1.05, 1.08),  # PSGD, GPT-2 124M
    ],
)
def test_the_fullest_step_has_little_more_work_than_others(works, k, most, over):
    load = loads([Work(n, n * each) for n, each in works], k)
    assert load.max() <= most * load.mean()
    assert load.max() <= over * np.median(load)


def test_no_step_depends_on_one_stack():
    """Tall matrices may take a fifth longer than wide ones."""
    works = [Work(12, 12 * each) for each in (1, 3, 4, 4)]
    longer = [*works[:3], Work(12, 1.2 * works[3].cost)]
    turns = divide(works, 5)
    load = loads(longer, 5, turns)
    assert load.max() <= 1.06 * load.mean()


def loads(works, k, turns=None):
    """The work in each step."""
    load = np.zeros(k)
    for work, mine in zip(works, turns or divide(works, k), strict=True):
        load[mine.steps] += work.of_a_turn(mine.count)
    return load


@pytest.mark.parametrize("k", [1, 3, 10, 1000])
def test_rare_turns_of_many_stacks_are_planned_at_once(k):
    works = [Work(n, n * d**3) for n, d in [(60, 3), (7, 5), (31, 2), (1, 9), (12, 4)]]
    for work, turns in zip(works, divide(works, k), strict=True):
        assert turns.count * turns.width(work.members) >= work.members
        assert 1 <= turns.count <= k and 0 <= turns.first < k


@pytest.mark.parametrize("sizes", [(1,) * 60, (12, 12), (12,), (1,), (3, 2), (3, 4)])
@pytest.mark.parametrize("count", [1, 3, 7])
def test_every_matrix_is_in_a_window(sizes, count):
    count = min(count, sum(sizes))
    starts = np.cumsum([0, *sizes])
    numbers = [range(a, a + n) for a, n in zip(starts, sizes, strict=False)]
    windows = Turns(0, count, 10).windows(numbers)
    width = Turns(0, count, 10).width(sum(sizes))
    members = set()
    for window in windows:
        assert sum(b - a for _, a, b in window) == width
        members |= {(j, i) for j, a, b in window for i in range(a, b)}
    assert members == {(j, i) for j, size in enumerate(sizes) for i in range(size)}


def test_matrices_of_two_cells_can_alternate():
    windows = Turns(0, 2, 10).windows([(0, 2, 4, 5), (1, 3)])
    assert windows == [[(0, 0, 2), (1, 0, 1)], [(0, 2, 4), (1, 1, 2)]]


def test_on_each_device_the_same_matrices_have_the_same_turns():
    """Ten matrices, of which three devices have those with the numbers 2 to 8."""
    turns = Turns(0, 4, 10)  # of 3 matrices each, the last two with 2 in common
    places = Places(turns, (2, 3, 4, 5, 6, 7, 8), 10)
    order = [[0, 3, 6], [1, 4, -1], [2, 5, -1]]
    starts, inside = places.windows(order)
    assert starts.shape == (4, 3) and inside.shape == (4, 3, 1)
    for c, (a, b) in enumerate(turns.spans(10)):
        found = [
            places.numbers[order[d][starts[c, d] + w]]
            for d in range(3)
            for w in np.flatnonzero(inside[c, d])
        ]
        assert sorted(found) == [n for n in range(a, b) if 2 <= n <= 8]


def test_a_stack_without_a_turn_in_some_steps():
    starts, inside = Places(Turns(0, 2, 2), (2, 3), 4).windows([[0, 1]])
    assert starts.shape == (2, 1)
    assert inside.tolist() == [[[False, False]], [[True, True]]]
