"""The time of the kernels of each step."""

import numpy as np

from benchmarks.device import busy


def test_kernels_that_overlap_count_once():
    assert busy([(0, 4), (1, 2), (3, 3)], 1) == [6.0]
    assert busy([(3, 3), (0, 4), (1, 2)], 1) == [6.0]  # in any order
    assert busy([], 2) == [0.0, 0.0]


def test_steps_are_told_apart_by_the_pauses_between_them():
    """Steps of different lengths, with short pauses between their kernels."""
    rng, now, events, lengths = np.random.default_rng(0), 0.0, [], [30, 10, 20]
    for many in lengths:
        for _ in range(many):
            events.append((now, 10.0))
            now += 10 + rng.uniform(0, 50)
        now += 100
    assert busy(events, 3) == [10.0 * many for many in lengths]
