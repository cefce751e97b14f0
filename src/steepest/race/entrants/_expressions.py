"""Optimizers and schedules written as text: read, never run.

    adamw    lookahead(adamw)    sgd(momentum=0.9)    contrib.muon(3 * rate)
    chain(clip_by_global_norm(1.0), adamw(cosine_decay_schedule(rate, steps)))

A bare name is a call without arguments. An optimizer that is given no learning rate
gets that of the race, which is `rate` where it is written out; `steps` is how many
there are. Only the library's own functions can be called.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp

import steepest

from ._line import Line, LITERAL
from ._names import Entrant, said
from ._reader import is_number, Reader

_CLOSING = {"(": ")", "[": "]", "{": "}"}
_LONGEST = 50_000  # characters of a list


def entrant(text: str, *, steps: int, schedule: str | None = None) -> Entrant:
    """The optimizer that a text describes.

    It is made once here, so that what is wrong with it is found before the race.

    Args:
        text: an expression, such as `lookahead(adamw)`.
        steps: how many steps there are.
        schedule: an expression with `rate` and `steps` in it, which stands for the
            learning rate where none is given. By default it is `rate`.
    """
    line = Line.of("optimizers", text)
    plan = None if schedule is None else Line.of("schedule", schedule)

    def make(rate: Any) -> steepest.GradientTransformation:
        return _made(line, plan, lambda: rate, steps)

    asked: list[bool] = []

    def rehearse(rate: Any) -> None:
        def ask() -> Any:
            asked.append(True)
            return rate

        _made(line, plan, ask, steps)

    jax.eval_shape(rehearse, jnp.zeros(()))
    return Entrant(line.text, make, swept=bool(asked))


def tidy(text: str) -> str:
    """The text of an optimizer as a race calls it: with single spaces outside quotes.

    Args:
        text: as for `entrant`.

    >>> tidy(" adamw(  b1=0.9)")
    'adamw( b1=0.9)'
    """
    return Line.of("optimizers", text).text


def transformation_of(text: str) -> steepest.GradientTransformation:
    """The optimizer that a text describes, at a learning rate of 0.001.

    Args:
        text: an expression, as for `entrant`; `steps` is 1000.
    """
    return _made(Line.of("optimizers", text), None, lambda: 1e-3, 1000)


def schedule_of(text: str, **numbers: int | float) -> Callable[[Any], Any]:
    """The schedule that a text describes; a number is one that stays as it is.

    Args:
        text: an expression, such as `linear_schedule(rate, 0, steps)`.
        numbers: what the names in it stand for.
    """
    line = Line.of("schedule", text)
    names = {name: lambda x=x: x for name, x in numbers.items()}
    found = _schedule(line, names)
    return found if callable(found) else steepest.constant_schedule(found)


def split_list(text: str) -> list[str]:
    """The items between the commas, but for those inside brackets and quotes.

    Args:
        text: such as `adamw,lookahead(adamw, 5, 0.5)`.

    >>> split_list('adamw, "lookahead(adamw, 5, 0.5)"')
    ['adamw', 'lookahead(adamw, 5, 0.5)']
    """
    whole = Line("optimizers", text)
    if len(text) > _LONGEST:
        raise whole.too_long(_LONGEST)
    begin, items, awaited = 0, [], []
    marks = re.compile(LITERAL + r"""|[][(){},"']""", re.DOTALL)
    for mark in marks.finditer(text):
        place, found = mark.start(), mark[0]
        if found in _CLOSING:
            awaited.append((_CLOSING[found], place))
        elif found in _CLOSING.values():
            if not awaited or awaited.pop()[0] != found:
                raise whole.error(f"nothing is closed by `{found}`.", place)
        elif found in "\"'":
            raise whole.error("this quotation has no end.", place)
        elif found == "," and not awaited:
            items.append((begin, text[begin:place].strip()))
            begin = mark.end()
    if awaited:
        close, place = awaited[-1]
        raise whole.error(f"this is never closed; a `{close}` is missing.", place)
    items.append((begin, text[begin:].strip()))
    for place, item in items:
        if not item:
            raise whole.error("nothing is written here, expected a name.", place)
    return [_bare(item) for _, item in items]


def _bare(item: str) -> str:
    """Without quotes around all of it, which a shell would have taken away."""
    return item[1:-1] if re.fullmatch(LITERAL, item, re.DOTALL) else item


def _made(
    line: Line, plan: Line | None, rate: Callable[[], Any], steps: int
) -> steepest.GradientTransformation:
    """The transformation that a line describes, at a learning rate."""
    names = {"rate": rate, "steps": lambda: steps}
    learning_rate = rate if plan is None else lambda: _schedule(plan, names)
    found = Reader(line, names, learning_rate).read(line.tree)
    if not isinstance(found, steepest.GradientTransformation):
        advice = f" Hand it to one: `adamw({line.text})`." if callable(found) else ""
        raise line.error(f"this is {said(found)}, expected an optimizer.{advice}")
    return found


def _schedule(line: Line, names: Mapping[str, Callable[[], Any]]) -> Any:
    """The schedule that a line describes, or a number."""
    found = Reader(line, names, lambda: 1e-3).read(line.tree)
    if not (callable(found) or is_number(found)):
        raise line.error(f"this is {said(found)}, expected a schedule.")
    return found
