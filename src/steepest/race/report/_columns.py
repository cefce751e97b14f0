"""The table of a race as strings, the verdict and the notes."""

from collections.abc import Callable

import numpy as np

from .._choice import none_improved
from .._outcome import Outcome
from .._standings import spread_of, Standing, standings
from ._advice import beaten, breadth_text, step_text, target_text
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
    significant,
)
from ._stopped import stop_notes

UNFINISHED = "†"  # marks an optimizer that did not take all its steps

Column = tuple[str, Callable[[Standing], str]]


def columns(outcome: Outcome) -> tuple[list[str], list[list[str]]]:
    """The headers of the table, and a row for each optimizer, best first.

    The first and the last column hold words, all others numbers.

    Args:
        outcome: of a race.
    """
    table = _table(outcome)
    rows = [[cell(row) for _, cell in table] for row in standings(outcome)]
    return [header for header, _ in table], rows


def sort_keys(outcome: Outcome) -> list[list[float]]:
    """Numbers to sort the table by, in the order of `columns`; NaN comes last.

    Args:
        outcome: of a race.
    """
    nan = float("nan")
    known = lambda x: nan if x is None else float(x)
    table: list[list[float]] = []
    for place, row in enumerate(standings(outcome)):
        reached = [known(row.steps_to_target), known(row.seconds_to_target)]
        table.append(
            [
                float(place),
                known(None if np.isnan(row.metric) else row.rate),
                row.metric,
                *(reached if outcome.target is not None else []),
                row.sweep.step_seconds,
                row.sweep.bytes_per_param,
                known(row.breadth and row.breadth.factor),
                float(row.diverged),
                *([float(row.stopped)] if outcome.halving else []),
                float(place),
            ]
        )
    return table


def verdict(outcome: Outcome) -> str:
    """The result of the race in one sentence.

    Args:
        outcome: of a race.
    """
    rows = standings(outcome)
    if not rows:
        return "No optimizer ran."
    best, *others = rows
    if all(sweep.unmeasured for sweep in outcome.sweeps):
        return (
            f"No winner: the {outcome.measure} was always NaN or infinite, although "
            "the losses were finite. Check `metric`."
        )
    if np.isnan(best.metric):
        name = best.name if not others else "every optimizer"
        left = "left by halving" if any(row.stopped for row in rows) else "tried"
        return f"No winner: {name} diverged at every learning rate {left}."
    at = at_rate(best.rate)
    result = f"{outcome.measure} {number(best.metric, best.spread)}"
    if none_improved(outcome, rows):
        begin = best.sweep.metric[best.place, :, 0]
        before = number(float(begin.mean()), spread_of(begin))
        return (
            f"No winner: no optimizer improved on the initial {outcome.measure}, "
            f"{before}; {best.name}{at} ends at {number(best.metric, best.spread)}."
        )
    if not others:
        return (
            f"{best.name}{at} reaches {result}; no other optimizer ran to compare with."
        )
    return f"{best.name}{at} is best: {result}; {_compared(others)}."


def notes(outcome: Outcome) -> list[str]:
    """What the reader of the table must know: symbols, failures, unfinished runs.

    Args:
        outcome: of a race.
    """
    rows = standings(outcome)
    lines = []
    for arrow, end, side in (("↑", "highest", "above"), ("↓", "lowest", "below")):
        if any(_arrow(row) == arrow for row in rows):
            lines.append(
                f"{arrow} the {end} learning rate tried; a better one may lie {side}."
            )
    for row in rows:
        sweep = row.sweep
        if not sweep.finished:
            done, planned = count(sweep.steps[-1]), count(sweep.planned)
            lines.append(
                f"{UNFINISHED} {row.name} was stopped after {done} of {planned} steps."
            )
    lines += stop_notes(rows)
    tested = [row for row in rows if row.p is not None]
    factors = [row.name for row in tested if row.logarithms]
    if factors:
        some = "" if len(factors) == len(tested) else f" of {listed(factors)}"
        lines.append(
            f"The p-value{some} compares logarithms of the {outcome.measure}, that is "
            "ratios instead of differences."
        )
    for row in rows:
        began = np.isfinite(row.sweep.loss[..., 0])
        if not began.all():
            lines.append(
                f"{row.name}: in {began.size - int(began.sum())} of {began.size} runs "
                "the loss was NaN or infinite at the first step. The learning rate is "
                "not the cause."
            )
    for row in rows:
        sweep = row.sweep
        if sweep.at_once is not None:
            lines.append(
                f"{row.name}: {sweep.at_once} of {sweep.runs} runs were in memory at a "
                "time."
            )
    lines += outcome.remarks
    lines += [f"{name} did not run: {why}" for name, why in outcome.missing]
    return lines


def final(outcome: Outcome) -> Callable[[Standing], str]:
    """Returns a formatter of the final metric, with equal digits where sensible.

    Args:
        outcome: of a race.
    """
    rows = [row for row in standings(outcome) if not np.isnan(row.metric)]
    needed = sorted(decimals(row.metric, row.spread) for row in rows)
    alike = rows and all(plain(row.metric, row.spread) for row in rows)
    # One row with a tiny spread must not give the others meaningless digits.
    digits = min(needed[-1], needed[len(needed) // 2] + 1) if alike else None

    def text(row: Standing) -> str:
        if np.isnan(row.metric):
            return "NaN" if row.sweep.unmeasured else "diverged"
        enough = digits is not None and digits >= significant(row.metric, row.spread)
        return number(row.metric, row.spread, digits if enough else None)

    return text


def _table(outcome: Outcome) -> list[Column]:
    reached: list[Column] = [
        ("steps to target", lambda row: count(row.steps_to_target)),
        ("time to target", target_text),
    ]
    halving: list[Column] = [
        ("stopped rates", lambda row: f"{row.stopped} of {len(row.sweep.rates)}")
    ]
    return [
        ("optimizer", _name),
        ("learning rate", _rate),
        (outcome.measure, final(outcome)),
        *(reached if outcome.target is not None else []),
        ("time per step", step_text),
        ("state bytes/param", lambda row: f"{row.sweep.bytes_per_param:.3g}"),
        ("good rates", lambda row: breadth_text(row.breadth)),
        ("diverged runs", lambda row: f"{row.diverged} of {row.sweep.runs}"),
        *(halving if outcome.halving else []),
        ("vs. the best", difference),
    ]


def _name(row: Standing) -> str:
    return row.name if row.sweep.finished else f"{row.name} {UNFINISHED}"


def _rate(row: Standing) -> str:
    if np.isnan(row.metric):
        return NOTHING
    return f"{rate(row.rate)} {_arrow(row)}".strip()


def _arrow(row: Standing) -> str:
    """The direction of better learning rates, if the best one is at an edge."""
    if not row.edge or np.isnan(row.metric):
        return ""
    tried = [x for x in row.sweep.rates if x is not None]
    return "↑" if row.rate == max(tried) else "↓"


def difference(row: Standing) -> str:
    """The comparison with the best optimizer, in words.

    Args:
        row: an optimizer.
    """
    if row.verdict in ("best", "diverged"):
        return row.verdict
    if row.p is None:
        return "unknown: one seed"
    return f"{row.verdict}, {chance(row.p)}"


def _compared(others: list[Standing]) -> str:
    """The best optimizer compared with all others, in words."""
    near = [row.name for row in others if row.verdict == "no clear difference"]
    tested = any(row.p is not None for row in others)
    if near and not tested:
        return "with one seed, the differences may be due to chance"
    by = " (logarithms compared)" if any(row.logarithms for row in others) else ""
    if near:
        return f"no clear difference from {listed(near)}{by}"
    return f"{beaten(others)}{by}"
