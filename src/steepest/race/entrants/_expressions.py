"""Optimizers and schedules written as text: parsed, never evaluated.

    adamw    lookahead(adamw)    sgd(momentum=0.9)    contrib.muon(3 * rate)
    chain(clip_by_global_norm(1.0), adamw(cosine_decay_schedule(rate, steps)))

A bare name is a call without arguments. An optimizer without a learning rate gets the
one of the race, which is also available as `rate`; `steps` is the number of steps. Only
the library's own functions can be called.
"""

import re
from collections.abc import Callable, Mapping
from typing import cast

import jax
import jax.numpy as jnp

import steepest
from steepest.core import Real, ScalarOrSchedule, Schedule

from ._line import LITERAL, SourceLine
from ._names import Entrant, kind_of
from ._reader import is_number, Reader

_CLOSING = {"(": ")", "[": "]", "{": "}"}
_LONGEST = 50_000  # characters in a list


def entrant(text: str, *, steps: int, schedule: str | None = None) -> Entrant:
    """Parse an optimizer.

    It is built once here, so that errors surface before the race.

    Args:
        text: an expression, such as `lookahead(adamw)`.
        steps: number of steps.
        schedule: an expression of `rate` and `steps`, used as the learning rate of
            optimizers without one. By default it is `rate`.
    """
    line = SourceLine.of("optimizers", text)
    plan = None if schedule is None else SourceLine.of("schedule", schedule)

    def make(rate: Real) -> steepest.GradientTransformation:
        return _made(line, plan, lambda: rate, steps)

    asked: list[bool] = []

    def rehearse(rate: Real) -> None:
        def ask() -> Real:
            asked.append(True)
            return rate

        _made(line, plan, ask, steps)

    jax.eval_shape(rehearse, jnp.zeros(()))
    return Entrant(line.text, make, swept=bool(asked))


def tidy(text: str) -> str:
    """Normalise the text of an optimizer: single spaces outside quotes.

    Args:
        text: as for `entrant`.

    >>> tidy(" adamw(  b1=0.9)")
    'adamw( b1=0.9)'
    """
    return SourceLine.of("optimizers", text).text


def transformation_of(text: str) -> steepest.GradientTransformation:
    """Parse an optimizer, at a learning rate of 0.001.

    Args:
        text: an expression, as for `entrant`; `steps` is 1000.
    """
    return _made(SourceLine.of("optimizers", text), None, lambda: 1e-3, 1000)


def schedule_of(text: str, **numbers: int | float) -> steepest.Schedule:
    """Parse a schedule; a number is a constant schedule.

    Args:
        text: an expression, such as `linear_schedule(rate, 0, steps)`.
        numbers: values of the names in it.
    """
    line = SourceLine.of("schedule", text)
    names = {name: lambda x=x: x for name, x in numbers.items()}
    schedule = _schedule(line, names)
    return schedule if callable(schedule) else steepest.constant_schedule(schedule)


def split_list(text: str) -> list[str]:
    """Split a list at its commas, except inside brackets and quotes.

    Args:
        text: such as `adamw,lookahead(adamw, 5, 0.5)`.

    >>> split_list('adamw, "lookahead(adamw, 5, 0.5)"')
    ['adamw', 'lookahead(adamw, 5, 0.5)']
    """
    whole = SourceLine("optimizers", text)
    if len(text) > _LONGEST:
        raise whole.too_long(_LONGEST)
    begin, items, awaited = 0, [], []
    marks = re.compile(LITERAL + r"""|[][(){},"']""", re.DOTALL)
    for mark in marks.finditer(text):
        place, sign = mark.start(), mark[0]
        if sign in _CLOSING:
            awaited.append((_CLOSING[sign], place))
        elif sign in _CLOSING.values():
            if not awaited or awaited.pop()[0] != sign:
                raise whole.error(f"this `{sign}` closes nothing.", place)
        elif sign in "\"'":
            raise whole.error("this quote is never closed.", place)
        elif sign == "," and not awaited:
            items.append((begin, text[begin:place].strip()))
            begin = mark.end()
    if awaited:
        close, place = awaited[-1]
        raise whole.error(f"this is never closed, expected a `{close}`.", place)
    items.append((begin, text[begin:].strip()))
    for place, item in items:
        if not item:
            raise whole.error("this item is empty, expected a name.", place)
    return [_bare(item) for _, item in items]


def _bare(item: str) -> str:
    """Strip quotes around the whole item, as a shell would."""
    return item[1:-1] if re.fullmatch(LITERAL, item, re.DOTALL) else item


def _made(
    line: SourceLine, plan: SourceLine | None, rate: Callable[[], Real], steps: int
) -> steepest.GradientTransformation:
    """Build the transformation that a line describes, at a learning rate."""
    names = {"rate": rate, "steps": lambda: steps}
    learning_rate = rate if plan is None else lambda: _schedule(plan, names)
    tx = Reader(line, names, learning_rate).read(line.tree)
    if not isinstance(tx, steepest.GradientTransformation):
        advice = f" Pass it to one: `adamw({line.text})`." if callable(tx) else ""
        raise line.error(f"this is {kind_of(tx)}, expected an optimizer.{advice}")
    return tx


def _schedule(
    line: SourceLine, names: Mapping[str, Callable[[], Real]]
) -> ScalarOrSchedule:
    """Build the schedule that a line describes, or a number."""
    schedule = Reader(line, names, lambda: 1e-3).read(line.tree)
    if callable(schedule):
        return cast(Schedule, schedule)
    if is_number(schedule):
        return schedule
    raise line.error(f"this is {kind_of(schedule)}, expected a schedule.")
