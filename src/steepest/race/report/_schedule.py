"""The values of a schedule that is written as text, and a plot of them."""

import ast
import math

import jax
import jax.numpy as jnp
import numpy as np

from ..entrants import schedule_of
from ._picture import Picture
from ._plot import axes, PlotLayout, room, TOP
from ._scales import fit, Scale
from ._svg import line, series

_POINTS = 2000  # maximum number of points of the curve
_USUAL = 1000  # steps, if the text contains no number of steps
_BEYOND = 5  # times the largest number in the text: how far to search for its end
_LAYOUT = PlotLayout(width=880.0, height=330.0, gutter=0.0)


def schedule_values(
    text: str, steps: int, last: int | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Evaluate a schedule. Returns the steps and its values there.

    Args:
        text: an expression of `rate`, which is 1, and `steps`.
        steps: the value of `steps`.
        last: the last step; by default `steps`.
    """
    schedule = schedule_of(text, rate=1.0, steps=steps)
    last = last or steps
    counts = np.linspace(0, last, min(last, _POINTS) + 1).round().astype(np.int32)
    value = lambda count: jnp.asarray(schedule(count), jnp.float32)
    return counts, np.asarray(jax.vmap(value)(counts), np.float64)


def guessed_steps(text: str) -> int:
    """Guess the number of steps of a schedule.

    It is the largest whole number in the text, or more if the schedule still changes
    after that.

    Args:
        text: as for `schedule_values`.
    """
    schedule_of(text, rate=1.0, steps=_USUAL)  # raises if the text is wrong
    nodes = ast.walk(ast.parse(text.strip(), mode="eval"))
    whole = [node.value for node in nodes if isinstance(node, ast.Constant)]
    named = max((n for n in whole if type(n) is int and n > 1), default=_USUAL)
    counts, values = schedule_values(text, named, _BEYOND * named)
    moves = np.abs(values - values[-1]) > 0.005 * np.ptp(values)
    rest = int(counts[moves][-1]) if moves.any() else 0
    if rest < named - 1:
        return named
    digit = 10 ** max(len(str(rest)) - 2, 0)  # round up to two digits
    return min(math.ceil(1.1 * rest / digit) * digit, _BEYOND * named)


def schedule_picture(
    text: str,
    counts: np.ndarray,
    values: np.ndarray,
    layout: PlotLayout = _LAYOUT,
    *,
    from_zero: bool = False,
) -> Picture:
    """Plot a schedule as SVG.

    Args:
        text: the title.
        counts: the steps.
        values: the schedule at these steps.
        layout: the size of the picture.
        from_zero: whether the vertical axis includes 0.
    """
    shown = [*values.tolist(), *([0.0] if from_zero else [])]
    y = fit(shown, TOP + layout.height, TOP)
    up = y.ticks(round(layout.height / 47))
    box = room(layout, up, 1)
    x = Scale(0.0, float(counts[-1]), box.left, box.right)
    frame = axes(
        box,
        [(x(at), name) for at, name in x.ticks(round(layout.width / 110))],
        [(y(at), name) for at, name in up],
        ("steps", text),
    )
    pixels = (
        np.array([axis(float(v)) for v in a]) for axis, a in ((x, counts), (y, values))
    )
    says = f"From {values[0]:.3g} to {values[-1]:.3g} in {counts[-1]} steps."
    body = frame + series(0, line(*pixels))
    return Picture("schedule", text, says, layout.width, box.bottom + 50, body)
