"""The proof that the optimizers are right: all of them, tuned alike, on one problem.

The command is `steepest race bytes --suite`.
"""

from ._arms import Arm as Arm, ARMS as ARMS, arms_named as arms_named
from ._record import Record as Record
from ._run import calibrate as calibrate, run_suite as run_suite
from ._size import Size as Size, SIZES as SIZES
