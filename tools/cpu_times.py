"""The processor time of tests, to find those that take most.

    python -m pytest -q -p no:xdist -p tools.cpu_times tests/laws

`--durations` shows the wall clock, which depends on what else the machine does.
Processes that a test starts are counted.
"""

import os
from collections import Counter, defaultdict
from collections.abc import Generator

import pytest

SHOWN = 30  # functions with the largest sums, over all their parameters
_spent: dict[str, float] = defaultdict(float)
_times: Counter[str] = Counter()


def _now() -> float:
    """Processor seconds so far, of all threads and all children that have ended."""
    return sum(os.times()[:4])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Measure a test with its fixtures.

    Args:
        item: the test.
    """
    before = _now()
    result = yield
    function = item.nodeid.split("[")[0]
    _spent[function] += _now() - before
    _times[function] += 1
    return result


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the sum, and the functions that took most.

    Args:
        terminalreporter: what prints.
    """
    say = terminalreporter.write_line
    say(f"{sum(_spent.values()):8.1f} s of processor time in {_times.total()} tests")
    ranked = sorted(_spent.items(), key=lambda each: -each[1])
    for function, seconds in ranked[:SHOWN]:
        say(f"{seconds:8.1f} s in {_times[function]:5}: {function}")
