"""The learning rates that halving has stopped, in words."""

from .._halving import FRACTIONS
from .._outcome import Sweep
from .._standings import Standing
from ._numbers import count, listed, rate

WHEN = f"after {listed(list(map(str, FRACTIONS)))} of the steps"


def stops(sweep: Sweep) -> str:
    """Which learning rates of an optimizer were stopped, and when.

    Args:
        sweep: all its runs.

    Returns:
        Such as "0.1 and 1 at step 25, 1e-3 at step 50"; empty if none was stopped.
    """
    steps = sorted({step for step in sweep.stopped if step is not None})
    pairs = list(zip(sweep.rates, sweep.stopped, strict=True)) if steps else []
    rates = {step: [rate(r) for r, s in pairs if s == step] for step in steps}
    texts = [f"{listed(rates[s], len(pairs))} at step {count(s)}" for s in steps]
    return ", ".join(texts)


def stop_notes(rows: list[Standing]) -> list[str]:
    """What the reader of the table must know about stopped learning rates.

    Args:
        rows: of the table.
    """
    lines = []
    for row in rows:
        if told := stops(row.sweep):
            many = sum(step is not None for step in row.sweep.stopped)
            what = "learning rate" if many == 1 else "learning rates"
            lines.append(f"{row.name}: halving stopped the {what} {told}.")
    return lines + [f"{row.name}: {caution(row)}" for row in rows if caution(row)]


def caution(row: Standing) -> str:
    """A warning if halving may have stopped the best learning rate; else empty.

    Args:
        row: an optimizer.
    """
    if not row.beside:
        return ""
    near = listed([rate(r) for r in row.beside])
    verb = "was" if len(row.beside) == 1 else "were"
    return f"{near}, next to the best rate, {verb} stopped early and may be better."
