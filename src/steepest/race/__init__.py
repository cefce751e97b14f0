"""Which optimizer, at which learning rate, for my problem?

Several optimizers train the same model from the same seeds, each at several learning
rates; all runs of one optimizer are one compiled program. `steepest race` is the same
on the command line.
"""

from ._devices import use_all_cores as use_all_cores
from ._outcome import Outcome as Outcome, Sweep as Sweep
from ._problem import Problem as Problem
from ._race import race as race
from ._standings import Standing as Standing, standings as standings
from ._watch import Watch as Watch
from .report import results as results, write_report as write_report
