"""Draw expressions, compare them, and shrink those that differ."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Any

from hypothesis import given, HealthCheck, Phase, seed as seeded, settings
from hypothesis.strategies import randoms

from ._compare import difference
from ._expression import smaller
from ._grammar import Grammar
from ._problems import Problem
from ._run import Refused

Case = tuple[Any, Problem]


@dataclass
class Found:
    """A difference, shrunk as far as possible."""

    expression: Any
    problem: Problem
    what: str

    def __str__(self) -> str:
        return f"check({self.expression!r},\n      {self.problem!r})\n  {self.what}"


@dataclass
class Report:
    """The results."""

    expressions: int = 0
    refused: int = 0  # errors in Optax, where nothing was compared
    differences: list[Found] = field(default_factory=list)
    reasons: Counter[str] = field(default_factory=Counter)

    def __str__(self) -> str:
        head = (
            f"{self.expressions} expressions, of which Optax refuses {self.refused}; "
            f"{len(self.differences)} differences"
        )
        return "\n\n".join([head, *map(str, self.differences)])


def fuzz(
    count: int,
    seed: int | None = None,
    *,
    concrete: bool = False,
    shrink: bool = True,
    say: Callable[[str], None] = lambda text: None,
) -> Report:
    """Compare `count` random expressions.

    Args:
        count: number of expressions.
        seed: seed of the random numbers; `None` for always the same ones.
        concrete: whether users' functions use Python's `if` on values.
        shrink: whether to shrink expressions that differ.
        say: called with every difference as soon as it is found.
    """
    report, seen = Report(), set[str]()
    options = settings(
        max_examples=2 * count,
        derandomize=seed is None,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )

    # True randomness: Hypothesis tends to repeat an example with one change.
    @options
    @given(randoms(use_true_random=True))
    def one(random: Random) -> None:
        expression, problem = Grammar(random, concrete=concrete).case()
        if repr(expression) in seen or report.expressions >= count:
            return
        seen.add(repr(expression))
        report.expressions += 1
        try:
            what = difference(expression, problem)
        except Refused as refused:
            report.refused += 1
            report.reasons[str(refused)[:60]] += 1
            return
        if what is not None:
            case = expression, problem
            small = shrunk(case) if shrink else case
            what = difference(*small) or what
            report.differences.append(Found(*small, what))
            say(str(report.differences[-1]))

    if seed is not None:
        one = seeded(seed)(one)
    one()
    return report


def shrunk(case: Case, tries: int = 120) -> Case:
    """A smaller case that also differs.

    Args:
        case: a case that differs.
        tries: maximum number of other cases to try.
    """
    left = tries
    while left > 0:
        for other in _simpler(case):
            left -= 1
            if left < 0 or _differs(other):
                break
        else:
            return case
        if left >= 0:
            case = other
    return case


def _simpler(case: Case) -> Iterator[Case]:
    expression, problem = case
    yield from ((less, problem) for less in smaller(expression))
    yield from ((expression, less) for less in problem.simpler())


def _differs(case: Case) -> bool:
    try:
        return difference(*case) is not None
    except Refused:
        return False
