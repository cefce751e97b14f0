"""A schedule written as a text: its steps, its values, and a picture of them."""

import ast
import math

import jax
import jax.numpy as jnp
import numpy as np

from ..entrants import schedule_of
from ._picture import Picture
from ._plot import axes, Layout, room, TOP
from ._scales import fit, Scale
from ._svg import line, series

_POINTS = 2000  # at which a schedule is looked at
_USUAL = 1000  # steps, where nothing in the text says how many
_BEYOND = 5  # times the largest number of the text: how far to look for its end
_LAYOUT = Layout(width=880.0, height=330.0, gutter=0.0)


def schedule_values(
    text: str, steps: int, last: int | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Some steps from 0 to the last, and the schedule there.

    Args:
        text: an expression of `rate`, which is 1, and `steps`.
        steps: what `steps` in it stands for.
        last: the last step; by default `steps`.
    """
    schedule = schedule_of(text, rate=1.0, steps=steps)
    last = last or steps
    counts = np.linspace(0, last, min(last, _POINTS) + 1).round().astype(np.int32)
    value = lambda count: jnp.asarray(schedule(count), jnp.float32)
    return counts, np.asarray(jax.vmap(value)(counts), np.float64)


def guessed_steps(text: str) -> int:
    """How many steps a schedule seems to be about.

    As many as the largest whole number in the text, and more if the schedule has not
    come to rest by then.

    Args:
        text: as for `schedule_values`.
    """
    schedule_of(text, rate=1.0, steps=_USUAL)  # says what is wrong with the text
    nodes = ast.walk(ast.parse(text.strip(), mode="eval"))
    whole = [node.value for node in nodes if isinstance(node, ast.Constant)]
    named = max((n for n in whole if type(n) is int and n > 1), default=_USUAL)
    counts, found = schedule_values(text, named, _BEYOND * named)
    moves = np.abs(found - found[-1]) > 0.005 * np.ptp(found)
    rest = int(counts[moves][-1]) if moves.any() else 0
    if rest < named - 1:
        return named
    digit = 10 ** max(len(str(rest)) - 2, 0)  # the second one
    return min(math.ceil(1.1 * rest / digit) * digit, _BEYOND * named)


def schedule_picture(text: str, counts: np.ndarray, found: np.ndarray) -> Picture:
    """The schedule in SVG.

    Args:
        text: what to call it.
        counts: the steps.
        found: the values there.
    """
    y = fit(found.tolist(), TOP + _LAYOUT.height, TOP)
    up = y.ticks(7)
    box = room(_LAYOUT, up, 1)
    x = Scale(0.0, float(counts[-1]), box.left, box.right)
    frame = axes(
        box,
        [(x(at), name) for at, name in x.ticks(8)],
        [(y(at), name) for at, name in up],
        ("steps", text),
    )
    pixels = (
        np.array([axis(float(v)) for v in a]) for axis, a in ((x, counts), (y, found))
    )
    says = f"From {found[0]:.3g} to {found[-1]:.3g} in {counts[-1]} steps."
    body = frame + series(0, line(*pixels))
    return Picture("schedule", text, says, _LAYOUT.width, box.bottom + 50, body)
