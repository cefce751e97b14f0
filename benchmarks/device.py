"""The time that a GPU works on each step, from JAX's profiler.

A clock on the host also counts what the host does: on a busy one, the slowest of a
hundred equal steps takes a third longer than the median. The kernels do not.
"""

import glob
import tempfile
from collections.abc import Callable, Sequence

import jax
import numpy as np

Event = tuple[float, float]  # when a kernel starts, and how long it runs, in ns


def device_steps(step: Callable[[], None], steps: int = 20) -> list[float] | None:
    """The seconds in which at least one kernel runs, of each step; `None` on a CPU.

    Args:
        step: makes one step, and waits for it.
        steps: the number of steps.
    """
    if jax.default_backend() != "gpu":
        return None
    with tempfile.TemporaryDirectory() as folder:
        with jax.profiler.trace(folder):
            for _ in range(steps):
                step()
        (file,) = glob.glob(f"{folder}/**/*.xplane.pb", recursive=True)
        profile = jax.profiler.ProfileData.from_file(file)
        events = [
            (float(event.start_ns), float(event.duration_ns))
            for plane in profile.planes
            if "GPU" in plane.name
            for line in plane.lines
            if "Stream" in line.name
            for event in line.events
        ]
    return [x / 1e9 for x in busy(events, steps)]


def busy(events: Sequence[Event], steps: int) -> list[float]:
    """The time in which at least one kernel runs, of each step.

    The host waits for a step before it begins the next one, so the longest pauses are
    those between steps.

    Args:
        events: the kernels of all steps, on any number of streams.
        steps: the number of steps.

    >>> busy([(0, 4), (2, 4), (20, 5), (26, 1)], 2)
    [6.0, 6.0]
    """
    if not events:
        return [0.0] * steps
    starts, lengths = np.array(sorted(events), np.float64).T
    ends = np.maximum.accumulate(starts + lengths)
    before = np.concatenate([starts[:1], ends[:-1]])  # when the kernels before ended
    pauses = starts - before
    cuts = np.sort(np.argsort(pauses)[len(pauses) - (steps - 1) :])
    added = np.maximum(starts + lengths - np.maximum(starts, before), 0)
    return [float(part.sum()) for part in np.split(added, cuts)]
