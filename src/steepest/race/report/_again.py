"""The command that runs a race again."""

import shlex

from .._outcome import Outcome
from ..entrants import number_code


def command(outcome: Outcome) -> str | None:
    """The command line of a race.

    `None` if its problem or an optimizer has no name to load it by.

    Args:
        outcome: of a race.
    """
    sweeps = outcome.sweeps
    if outcome.source is None or not sweeps:
        return None
    names = [*(s.name for s in sweeps), *(name for name, _ in outcome.missing)]
    texts = [outcome.written.get(name, name) for name in names]
    known = [text for text in texts if text is not None]
    if known != texts:
        return None
    rates = sorted({r for s in sweeps for r in s.rates if r is not None})
    seeds = sweeps[0].seeds
    words = ["steepest", "race", outcome.source, "--optimizers", ",".join(known)]
    if rates:
        words += ["--learning-rates", ",".join(map(number_code, rates))]
    counted = seeds == tuple(range(len(seeds)))
    listed = ",".join(map(str, seeds)) + ("," if len(seeds) == 1 else "")
    words += ["--seeds", str(len(seeds)) if counted else listed]
    words += ["--steps", str(sweeps[0].planned)]
    if outcome.target is not None:
        words += ["--target", f"{outcome.target:g}"]
    if outcome.schedule is not None:
        words += ["--schedule", outcome.schedule]
    if outcome.halving:
        words.append("--halving")
    return shlex.join(words)
