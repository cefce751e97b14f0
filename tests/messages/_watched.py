"""Bad calls of functions that inspect an optimizer or set how it stores its state."""

import steepest

from ._bad import Bad, params

BAD = {
    "describe": Bad(
        lambda: steepest.describe(steepest.adam, params()),
        TypeError,
        "describe: tx is a function, expected a gradient transformation (a pair of "
        "`init` and `update`). Call it first: `adam(...)`.",
    ),
    "keeping": Bad(
        lambda: steepest.keeping(steepest.adam(0.1), memory_dtype="int16"),
        TypeError,
        "keeping: memory_dtype is 'int16', expected a dtype of real numbers, such as "
        "`jnp.bfloat16`, or one of: int8, int4, float8.",
    ),
    "metrics": Bad(
        lambda: steepest.metrics(steepest.adam(0.1).init(params()), 0.1),
        TypeError,
        "metrics: tx is a float, expected a gradient transformation (a pair of `init` "
        "and `update`). Pass a transformation, such as `steepest.adam(1e-3)`",
    ),
    "read": Bad(
        lambda: steepest.read(steepest.adam(0.1).init(params()), "learning_rate"),
        KeyError,
        (
            "read: the state has no 'learning_rate', expected one of ['count', 'mu', "
            "'nu', ",
            "Wrap the optimizer in `steepest.watched`, or pass it as `tx`.",
        ),
    ),
    "restore_as": Bad(
        lambda: steepest.restore_as(
            steepest.adam(0.1).init(params()), steepest.lion(0.1), params()
        ),
        ValueError,
        (
            "restore_as: ",
            "Pass a state of the same optimizer; only storage and devices may differ.",
        ),
    ),
    "watched": Bad(
        lambda: steepest.watched(0.1),
        TypeError,
        "watched: inner is a float, expected a gradient transformation (a pair of "
        "`init` and `update`). Pass a transformation, such as `steepest.adam(1e-3)`",
    ),
}

# Functions that accept anything, and why.
TAKES_ANYTHING = {"Description": "made by `describe`"}
