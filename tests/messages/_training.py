"""Bad calls of a training step."""

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
}

# Functions that accept anything, and why.
TAKES_ANYTHING: dict[str, str] = {}
