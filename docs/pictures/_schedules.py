"""The gallery of schedules.

The page is the source: each block `schedule = ...` in `docs/guides/schedules.md` is run
and drawn into the file of the image that follows it.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

import steepest
from steepest.race.report import PlotLayout, schedule_picture

HERE = Path(__file__).parent
PAGE = HERE.parent / "guides" / "schedules.md"
STEPS = 1000
LAYOUT = PlotLayout(width=480.0, height=150.0, gutter=0.0)
_BLOCK = re.compile(
    r"```python\n(schedule = .*?)```\n\n"
    r"!\[.*?\]\(\.\./pictures/schedules/(\w+)\.svg\)",
    re.DOTALL,
)


def schedules() -> Iterator[tuple[Path, str]]:
    """The file and the SVG of every schedule on the page."""
    for code, name in _BLOCK.findall(PAGE.read_text("utf-8")):
        scope: dict[str, object] = {"steepest": steepest}
        exec(code, scope)
        schedule = scope["schedule"]
        assert callable(schedule)
        counts = np.arange(STEPS + 1, dtype=np.int32)
        value = lambda count, f=schedule: jnp.asarray(f(count), jnp.float32)
        values = np.asarray(jax.vmap(value)(counts), np.float64)
        kept = _visible(values)
        picture = schedule_picture(
            name, counts[kept], values[kept], LAYOUT, from_zero=True
        )
        yield HERE / "schedules" / f"{name}.svg", picture.alone() + "\n"


def _visible(values: np.ndarray) -> np.ndarray:
    """Every tenth step, and the corners, so that a jump is drawn as a vertical line."""
    bend = np.abs(np.diff(values, 2, prepend=values[0], append=values[-1]))
    return (np.arange(len(values)) % 10 == 0) | (bend > 1e-3 * np.max(values))
