"""Which matrices have their turn in which step."""

import pytest

from steepest.engine.run._turns import in_proportion, Turns, Work


@pytest.mark.parametrize(
    "works, k, turns",
    [
        # The sides of GPT-2: 60 of 768, 12 of 2304 and 24 of 3072.
        ([(60, 768), (12, 2304), (24, 3072)], 10, [(0, 1), (1, 2), (3, 6)]),
        ([(60, 768)], 10, [(0, 10)]),
        ([(1, 768)], 10, [(0, 1)]),
        ([(3, 8), (2, 4)], 1, [(0, 1), (0, 1)]),
        ([(9, 8), (9, 4), (9, 2)], 2, [(0, 1), (1, 1), (0, 1)]),
    ],
)
def test_steps_are_divided_by_work(works, k, turns):
    works = [Work(n, n * d**3) for n, d in works]
    assert in_proportion(works, k) == [Turns(first, count, k) for first, count in turns]


@pytest.mark.parametrize("sizes", [(1,) * 60, (12, 12), (12,), (1,), (3, 2), (3, 4)])
@pytest.mark.parametrize("count", [1, 3, 7])
def test_every_matrix_is_in_a_window(sizes, count):
    count = min(count, sum(sizes))
    windows = Turns(0, count, 10).windows(sizes)
    width = Turns(0, count, 10).width(sum(sizes))
    members = set()
    for window in windows:
        assert sum(b - a for _, a, b in window) == width
        members |= {(j, i) for j, a, b in window for i in range(a, b)}
    assert members == {(j, i) for j, size in enumerate(sizes) for i in range(size)}
