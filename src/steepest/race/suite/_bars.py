"""What the suite must show, evaluated from its results: pass, fail, or not measured."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from ._arms import ADAMW, MUON
from ._statistics import Line, Paired, paired, Table

Verdict = Literal["pass", "FAIL", "not measured"]


@dataclass(frozen=True)
class Judged:
    """A bar and its verdict.

    Attributes:
        claim: what must be so.
        measured: the numbers.
        verdict: whether it is so.
    """

    claim: str
    measured: str
    verdict: Verdict


Found = tuple[str, bool] | None  # the numbers and whether they pass; or nothing
Rule = Callable[[Table], Found]


def judged(table: Table) -> list[Judged]:
    """All bars, with their verdicts.

    Args:
        table: of a suite.
    """
    return [_judge(claim, rule(table)) for claim, rule in BARS]


def _judge(claim: str, found: Found) -> Judged:
    if found is None:
        return Judged(claim, "", "not measured")
    measured, good = found
    return Judged(claim, measured, "pass" if good else "FAIL")


def _difference(table: Table, name: str, other: str) -> tuple[Line, Paired] | None:
    """An arm, and how much worse it is than another."""
    a, b = table.line(name), table.line(other)
    test = None if a is None or b is None else paired(a.losses, b.losses)
    return None if a is None or test is None else (a, test)


def _within(name: str, other: str, low: float | None, high: float) -> Rule:
    """The difference is between two numbers, in nats per byte."""

    def rule(table: Table) -> Found:
        pair = _difference(table, name, other)
        if pair is None:
            return None
        mean = pair[1].mean
        return _nats(pair[1]), (low is None or low <= mean) and mean <= high

    return rule


def _same_as_optax(table: Table) -> Found:
    pair, adamw = _difference(table, ADAMW, "optax adamw"), table.line(ADAMW)
    if pair is None or adamw is None:
        return None
    share = abs(pair[1].mean) / adamw.sigma
    text = f"{_nats(pair[1])}: {share:.2f} sigma, where sigma is {adamw.sigma:.4f}"
    return text, share <= 0.3


def _muon_ahead(table: Table) -> Found:
    pair = _difference(table, MUON, ADAMW)
    if pair is None:
        return None
    return f"{_nats(pair[1])}: {-pair[1].t:.1f} standard errors", -pair[1].t >= 5


def _muon_saves(table: Table) -> Found:
    muon = table.line(MUON)
    if muon is None or muon.steps is None:
        return None
    return f"{muon.steps:.2f} times", 1.2 <= muon.steps <= 1.5


def _soap_muon(table: Table) -> Found:
    pairs = [_difference(table, "soap_muon", name) for name in ("soap", MUON)]
    known = [test for pair in pairs if pair is not None for test in pair[1:]]
    if len(known) < 2:
        return None
    worst = max(known, key=lambda test: test.mean)
    return _nats(worst), worst.mean <= 0.002


def _twin(name: str, other: str) -> Rule:
    """The difference is at most its own standard error."""

    def rule(table: Table) -> Found:
        pair = _difference(table, name, other)
        if pair is None:
            return None
        test, adamw = pair[1], table.line(ADAMW)
        text = f"{_nats(test)}: {abs(test.t):.2f} standard errors"
        if adamw is not None:
            text += f", {abs(test.mean) / adamw.sigma:.2f} sigma"
        return text, abs(test.mean) <= test.error

    return rule


BARS: tuple[tuple[str, Rule], ...] = (
    ("adamw is within 0.3 sigma of Optax's AdamW", _same_as_optax),
    ("muon is ahead of adamw by at least 5 standard errors", _muon_ahead),
    ("adamw needs 1.2 to 1.5 times the steps of muon", _muon_saves),
    ("soap is within 0.005 nats of muon", _within("soap", MUON, -0.005, 0.005)),
    (
        "soap every step is at most 0.002 nats behind soap",
        _within("soap every step", "soap", None, 0.002),
    ),
    (
        "normuon is at most 0.003 nats behind muon",
        _within("normuon", MUON, None, 0.003),
    ),
    (
        "muon_h is at most 0.003 nats behind muon",
        _within("muon_h", MUON, None, 0.003),
    ),
    ("soap_muon is at most 0.002 nats behind soap and muon", _soap_muon),
    ("lion is within 0.02 nats of adamw", _within("lion", ADAMW, -0.02, 0.02)),
    (
        "adamw int8 is within one standard error of adamw",
        _twin("adamw int8", ADAMW),
    ),
    ("lion int8 is within one standard error of lion", _twin("lion int8", "lion")),
    ("muon int8 is within one standard error of muon", _twin("muon int8", MUON)),
)


def _nats(test: Paired) -> str:
    """A difference in nats per byte, with its standard error."""
    return f"{test} nats"
