"""The small commands: describe, plot-schedule, optimizers and problems.

What needs JAX is imported inside the commands, so that `--help` answers at once.
"""

import sys
from fnmatch import fnmatch

from rich.table import Table
from rich.text import Text

import steepest

from .._visible import visible
from ..report import count, rate
from ._console import console_for
from ._curve import draw
from ._parameters import Count, File


def describe(optimizer: str, /, *, problem: str = "digits") -> None:
    """Show which transformation updates each leaf of a model, and its state in bytes.

    Args:
        optimizer: for example `"adamw(weight_decay=0.1)"`.
        problem: the problem whose model to use. Default: `digits`.
    """
    import jax

    from .._calls import initial
    from ..entrants import transformation_of
    from ..problems import load

    tx, known = transformation_of(optimizer), load(problem)
    begin = lambda key: initial(known, key)[0]
    params = jax.eval_shape(begin, jax.random.key(0))
    print(visible(str(steepest.describe(tx, params))))


def plot_schedule(schedule: str, /, *, steps: Count = None, svg: File = None) -> None:
    """Plot a schedule in the terminal.

    Args:
        schedule: for example `"warmup_cosine_decay_schedule(0, 1e-3, 100, 1000)"`;
            `rate` is 1.
        steps: number of steps to plot. Default: guessed from the schedule.
        svg: also write the plot to this SVG file.
    """
    import numpy as np

    from ..report import guessed_steps, schedule_picture, schedule_values

    if steps is not None and steps < 1:
        raise ValueError(f"plot-schedule: --steps is {steps}, expected at least 1.")
    counts, values = schedule_values(schedule, steps or guessed_steps(schedule))
    last = int(counts[-1])
    width = min(console_for(sys.stdout).width - 20, 72)
    print("\n".join(draw(values.tolist(), last, max(width, 10))))
    print()
    wide = len(count(last))
    for place in np.linspace(0, len(counts) - 1, 5).round().astype(int):
        print(f"  at {count(int(counts[place])):>{wide}}  {rate(float(values[place]))}")
    if svg is not None:
        svg.write_text(
            schedule_picture(schedule, counts, values).alone(), encoding="utf-8"
        )


def optimizers(pattern: str = "*", /) -> None:
    """List the optimizers that can race, with one line about each.

    Args:
        pattern: show only matching names: `adam` matches anywhere, `adam*` at the
            start.
    """
    from ..entrants import optimizers as known

    shape = pattern if set(pattern) & set("*?[") else f"*{pattern}*"
    matching = [one for one in known() if fnmatch(one.name, shape.lower())]
    if not matching:
        raise ValueError(
            f"optimizers: no name matches {pattern!r}. Omit the pattern to list all."
        )
    _list([(one.name, one.about) for one in matching])


def problems() -> None:
    """List the built-in problems, with one line about each."""
    from ..problems import known

    _list(list(known().items()))


def _list(rows: list[tuple[str, str]]) -> None:
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0), pad_edge=False)
    table.add_column(no_wrap=True, style="bold")
    table.add_column()
    for row in rows:
        table.add_row(*map(Text, row))
    console_for(sys.stdout).print(table)
