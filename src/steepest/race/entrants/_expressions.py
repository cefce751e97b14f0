"""Optimizers and schedules written as text: parsed, never evaluated.

    adamw    lookahead(adamw)    sgd(momentum=0.9)    contrib.muon(3 * rate)
    chain(clip_by_global_norm(1.0), adamw(cosine_decay_schedule(rate, steps)))

A bare name is a call without arguments. An optimizer without a learning rate gets the
one of the race, which is also available as `rate`; `steps` is the number of steps. Only
the library's own functions can be called.
"""

from collections.abc import Callable, Mapping
from typing import cast

import jax
import jax.numpy as jnp

import steepest
from steepest.core import Real, ScalarOrSchedule, Schedule

from ._line import SourceLine
from ._names import Entrant, kind_of
from ._own import is_reference, Own
from ._reader import is_number, Reader


def entrant(
    optimizer: str | Own,
    *,
    steps: int,
    schedule: str | None = None,
    name: str | None = None,
) -> Entrant:
    """Parse or import an optimizer.

    It is built once here, so that errors surface before the race.

    Args:
        optimizer: an expression, such as `lookahead(adamw)`; `my_module:mine`; or an
            optimizer of the user.
        steps: number of steps.
        schedule: an expression of `rate` and `steps`, used as the learning rate of
            optimizers without one. By default it is `rate`.
        name: its name in the tables; by default its text.
    """
    source = _source(optimizer)
    plan = None if schedule is None else SourceLine.of("schedule", schedule)

    def make(rate: Real) -> steepest.GradientTransformation:
        return _made(source, plan, lambda: rate, steps)

    asked: list[bool] = []

    def rehearse(rate: Real) -> None:
        def ask() -> Real:
            asked.append(True)
            return rate

        _made(source, plan, ask, steps)

    jax.eval_shape(rehearse, jnp.zeros(()))
    own_name = source.name if isinstance(source, Own) else source.text
    return Entrant(name or source.text or own_name, make, swept=bool(asked))


def tidy(text: str) -> str:
    """Normalise the text of an optimizer: single spaces outside quotes.

    Args:
        text: as for `entrant`.

    >>> tidy(" adamw(  b1=0.9)")
    'adamw( b1=0.9)'
    """
    return SourceLine.of("optimizers", text).text


def transformation_of(text: str) -> steepest.GradientTransformation:
    """Parse or import an optimizer, at a learning rate of 0.001.

    Args:
        text: as for `entrant`; `steps` is 1000.
    """
    return _made(_source(text), None, lambda: 1e-3, 1000)


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


def _source(optimizer: str | Own) -> SourceLine | Own:
    """What the optimizer is made from."""
    if isinstance(optimizer, Own):
        return optimizer
    line = SourceLine.of("optimizers", optimizer)
    return Own.of(line.text) if is_reference(line.text) else line


def _made(
    source: SourceLine | Own,
    plan: SourceLine | None,
    rate: Callable[[], Real],
    steps: int,
) -> steepest.GradientTransformation:
    """Build the optimizer at a learning rate."""
    names = {"rate": rate, "steps": lambda: steps}
    learning_rate = rate if plan is None else lambda: _schedule(plan, names)
    if isinstance(source, Own):
        return source.make(learning_rate)
    tx = Reader(source, names, learning_rate).read(source.tree)
    if not isinstance(tx, steepest.GradientTransformation):
        advice = f" Pass it to one: `adamw({source.text})`." if callable(tx) else ""
        raise source.error(f"this is {kind_of(tx)}, expected an optimizer.{advice}")
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
