"""Which optimizer, at which learning rate, for my problem?

A race trains the same model from the same seeds with several optimizers, each at
several learning rates. All runs of one optimizer are one compiled program. The command
line is `steepest race`; from Python, call this module: `steepest.race(problem,
optimizers=["adamw", "muon"])` is `steepest.race.race(...)`.
"""

import typing as _typing

from steepest.core import lazy as _lazy

if _typing.TYPE_CHECKING or not _lazy(globals(), call="race"):
    from . import entrants as entrants, problems as problems, report as report
    from ._breadth import Breadth as Breadth
    from ._devices import use_all_cores as use_all_cores
    from ._find_lr import find_lr as find_lr, RangeTest as RangeTest
    from ._outcome import Outcome as Outcome, Sweep as Sweep
    from ._problem import Problem as Problem
    from ._race import race as race
    from ._standings import Standing as Standing, standings as standings
    from ._watch import Watch as Watch
    from .report import (
        log_to_tensorboard as log_to_tensorboard,
        log_to_trackio as log_to_trackio,
        log_to_wandb as log_to_wandb,
        Recommendation as Recommendation,
        recommendation as recommendation,
        results as results,
        write_report as write_report,
    )
