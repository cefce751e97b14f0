"""Bad calls of a training step and of a race."""

import steepest

from ._bad import Bad, params

BAD = {
    "make_train_step": Bad(
        lambda: steepest.make_train_step(lambda p: p["w"], steepest.sgd(0.1))(
            params(), steepest.sgd(0.1).init(params())
        ),
        TypeError,
        "make_train_step: loss returns shape (3, 2), expected one number. Return the "
        "sum or the mean of a loss.",
    ),
    "race": Bad(
        lambda: steepest.race(3),
        TypeError,
        "race: the problem is a int, expected a `steepest.race.Problem` or the name of "
        "one.",
    ),
}

# Functions that accept anything, and why.
TAKES_ANYTHING: dict[str, str] = {}
