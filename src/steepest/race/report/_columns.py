"""The table of a race as texts, and what it comes to in one sentence."""

from collections.abc import Callable

import numpy as np

from .._outcome import Outcome
from .._standings import Standing, standings
from ._numbers import (
    at_rate,
    chance,
    count,
    decimals,
    listed,
    NOTHING,
    number,
    plain,
    rate,
    seconds,
    significant,
)

UNFINISHED = "†"  # after the name of an optimizer that did not take all its steps

Column = tuple[str, Callable[[Standing], str]]


def columns(outcome: Outcome) -> tuple[list[str], list[list[str]]]:
    """The headers of the table, and a row for each optimizer, the best one first.

    The first column and the last one are words, all others numbers.

    Args:
        outcome: of a race.
    """
    table = _table(outcome)
    rows = [[cell(row) for _, cell in table] for row in standings(outcome)]
    return [header for header, _ in table], rows


def verdict(outcome: Outcome) -> str:
    """What the race comes to, in one sentence.

    Args:
        outcome: of a race.
    """
    rows = standings(outcome)
    if not rows:
        return "No optimizer has run."
    best, *others = rows
    if all(sweep.unmeasured for sweep in outcome.sweeps):
        return (
            f"No winner: the {outcome.measure} was no number at any time, though the "
            "losses were. Check `metric`."
        )
    if np.isnan(best.metric):
        name = best.name if not others else "every optimizer"
        return f"No winner: {name} diverged at every learning rate tried."
    at = at_rate(best.rate)
    result = f"{outcome.measure} {number(best.metric, best.spread)}"
    if not others:
        return (
            f"{best.name}{at} reaches {result}; nothing else has run to compare with."
        )
    return f"{best.name}{at} is best: {result}; {_compared(others)}."


def notes(outcome: Outcome) -> list[str]:
    """What the reader of this table must know: signs, failures, runs cut short.

    Args:
        outcome: of a race.
    """
    rows = standings(outcome)
    found = []
    for arrow, end in (("↑", "highest"), ("↓", "lowest")):
        if any(_arrow(row) == arrow for row in rows):
            found.append(
                f"{arrow} the {end} learning rate tried: a better one may lie beyond."
            )
    for row in rows:
        sweep = row.sweep
        if not sweep.finished:
            done, planned = count(sweep.steps[-1]), count(sweep.planned)
            found.append(
                f"{UNFINISHED} {row.name} was stopped after {done} of {planned} steps."
            )
    tested = [row for row in rows if row.p is not None]
    factors = [row.name for row in tested if row.logarithms]
    if factors:
        some = "" if len(factors) == len(tested) else f" (to {listed(factors)})"
        found.append(
            f"p{some} is about the logarithms of the {outcome.measure}: about factors, "
            "not distances."
        )
    for row in rows:
        began = np.isfinite(row.sweep.loss[..., 0])
        if not began.all():
            found.append(
                f"{row.name}: {began.size - int(began.sum())} of {began.size} runs had "
                "a loss that was no number in the first step already. That is not the "
                "learning rate's doing."
            )
    for row in rows:
        sweep = row.sweep
        if sweep.at_once is not None:
            found.append(
                f"{row.name}: {sweep.at_once} of {sweep.runs} runs were in memory at a "
                "time."
            )
    found += outcome.remarks
    found += [f"{name} did not run: {why}" for name, why in outcome.missing]
    return found


def final(outcome: Outcome) -> Callable[[Standing], str]:
    """How the final metric is written: with equal digits in all rows, if that is fair.

    Args:
        outcome: of a race.
    """
    rows = [row for row in standings(outcome) if not np.isnan(row.metric)]
    wanted = sorted(decimals(row.metric, row.spread) for row in rows)
    alike = rows and all(plain(row.metric, row.spread) for row in rows)
    # A single row with a tiny spread must not give all others digits that say nothing.
    digits = min(wanted[-1], wanted[len(wanted) // 2] + 1) if alike else None

    def text(row: Standing) -> str:
        if np.isnan(row.metric):
            return "no number" if row.sweep.unmeasured else "diverged"
        enough = digits is not None and digits >= significant(row.metric, row.spread)
        return number(row.metric, row.spread, digits if enough else None)

    return text


def _table(outcome: Outcome) -> list[Column]:
    reached: list[Column] = [
        ("steps to target", lambda row: count(row.steps_to_target)),
        ("time to target", lambda row: seconds(row.seconds_to_target)),
    ]
    return [
        ("optimizer", _name),
        ("learning rate", _rate),
        (outcome.measure, final(outcome)),
        *(reached if outcome.target is not None else []),
        ("time per step", _step),
        ("state bytes/param", lambda row: f"{row.sweep.bytes_per_param:.3g}"),
        ("diverged runs", lambda row: f"{row.diverged} of {row.sweep.runs}"),
        ("difference to the best", difference),
    ]


def _step(row: Standing) -> str:
    return seconds(row.sweep.step_seconds, row.sweep.step_spread)


def _name(row: Standing) -> str:
    return row.name if row.sweep.finished else f"{row.name} {UNFINISHED}"


def _rate(row: Standing) -> str:
    if np.isnan(row.metric):
        return NOTHING
    return f"{rate(row.rate)} {_arrow(row)}".strip()


def _arrow(row: Standing) -> str:
    """Where a better learning rate may lie, if the best one is at an edge."""
    if not row.edge or np.isnan(row.metric):
        return ""
    tried = [x for x in row.sweep.rates if x is not None]
    return "↑" if row.rate == max(tried) else "↓"


def difference(row: Standing) -> str:
    if row.verdict in ("best", "diverged"):
        return row.verdict
    if row.p is None:
        return "unknown: one seed"
    return f"{row.verdict}, {chance(row.p)}"


def _compared(others: list[Standing]) -> str:
    """The best one against all others."""
    near = [row.name for row in others if row.verdict == "no clear difference"]
    tested = any(row.p is not None for row in others)
    if near and not tested:
        return "from one seed nobody can tell whether the differences are chance"
    by = " (logarithms compared)" if any(row.logarithms for row in others) else ""
    if near:
        return f"no clear difference to {listed(near)}{by}"
    return f"the difference to every other is significant{by}"
