"""Bad calls of schedules."""

import steepest

from ._bad import Bad

NAN, INF = float("nan"), float("inf")

BAD = {
    "constant_schedule": Bad(
        lambda: steepest.constant_schedule(NAN),
        ValueError,
        "constant_schedule: value is nan, expected a number that is not NaN.",
    ),
    "linear_schedule": Bad(
        lambda: steepest.linear_schedule(0.0, INF, 100),
        ValueError,
        "linear_schedule: end_value is inf, expected a number that is finite.",
    ),
    "polynomial_schedule": Bad(
        lambda: steepest.polynomial_schedule(1.0, 0.0, -2, 100),
        steepest.UnusualValueWarning,
        "polynomial_schedule: power is -2, but is usually a number of at least 0. The "
        "value is used.",
    ),
    "cosine_decay_schedule": Bad(
        lambda: steepest.cosine_decay_schedule(0.1, 0),
        ValueError,
        "cosine_decay_schedule: decay_steps is 0, expected a number above 0.",
    ),
    "exponential_decay": Bad(
        lambda: steepest.exponential_decay(0.1, 100, -0.9),
        ValueError,
        "exponential_decay: decay_rate is -0.9, expected at least 0: fractional "
        "powers of a negative number are not real. Pass `staircase=True` to allow it.",
    ),
    "piecewise_constant_schedule": Bad(
        lambda: steepest.piecewise_constant_schedule(0.1, [(100, 0.5)]),
        TypeError,
        "piecewise_constant_schedule: boundaries_and_scales is a list, expected a "
        "dict {step: factor}.",
    ),
    "piecewise_interpolate_schedule": Bad(
        lambda: steepest.piecewise_interpolate_schedule("spline", 0.1, {100: 0.5}),
        ValueError,
        "piecewise_interpolate_schedule: interpolate_type is 'spline', expected one "
        "of: linear, cosine.",
    ),
    "linear_onecycle_schedule": Bad(
        lambda: steepest.linear_onecycle_schedule(100, 0.1, 0.9, 0.5),
        ValueError,
        "linear_onecycle_schedule: pct_start is 0.9 and pct_final is 0.5, expected "
        "pct_final to be at least pct_start.",
    ),
    "cosine_onecycle_schedule": Bad(
        lambda: steepest.cosine_onecycle_schedule(100, 0.1, pct_start=30),
        steepest.UnusualValueWarning,
        "cosine_onecycle_schedule: pct_start is 30, but is usually a number in [0, 1]."
        " The value is used.",
    ),
    "warmup_constant_schedule": Bad(
        lambda: steepest.warmup_constant_schedule(0.0, "0.1", 10),
        TypeError,
        "warmup_constant_schedule: peak_value is a str, expected a number that is "
        "finite.",
    ),
    "warmup_cosine_decay_schedule": Bad(
        lambda: steepest.warmup_cosine_decay_schedule(0.0, 0.1, 100, 50),
        ValueError,
        "warmup_cosine_decay_schedule: decay_steps is 50 and warmup_steps is 100, "
        "expected more decay_steps than warmup_steps: they include the warm-up.",
    ),
    "warmup_exponential_decay_schedule": Bad(
        lambda: steepest.warmup_exponential_decay_schedule(0.0, 0.1, -5, 100, 0.9),
        steepest.UnusualValueWarning,
        "warmup_exponential_decay_schedule: warmup_steps is -5, but is usually a "
        "number of at least 0. The value is used.",
    ),
    "sgdr_schedule": Bad(
        lambda: steepest.sgdr_schedule([{"init_value": 0.0, "peak_value": 0.1}]),
        TypeError,
        "sgdr_schedule: cosine_kwargs[0]: missing a required argument: "
        "'warmup_steps'. Pass the arguments of `warmup_cosine_decay_schedule`.",
    ),
    "wsd": Bad(
        lambda: steepest.wsd(1e-3, 1000, 100, 950),
        ValueError,
        "wsd: warmup_steps is 100 and decay_steps is 950, expected at most total_steps "
        "together, which is 1000.",
    ),
    "join_schedules": Bad(
        lambda: steepest.join_schedules([0.1, 0.01], [100]),
        TypeError,
        "join_schedules: schedules[0] is a float, expected a function.",
    ),
    "WrappedSchedule": Bad(
        lambda: steepest.schedules.WrappedSchedule(0.1),
        TypeError,
        "WrappedSchedule: schedule_fn is a float, expected a function.",
    ),
    "inject_hyperparams": Bad(
        lambda: steepest.inject_hyperparams(steepest.adam(0.1)),
        TypeError,
        "inject_hyperparams: inner_factory is a Transformation, expected a function "
        "that makes a transformation. Pass the function first and its arguments "
        "afterwards: `inject_hyperparams(steepest.adam)(learning_rate=0.1)`.",
    ),
    "inject_stateful_hyperparams": Bad(
        lambda: steepest.inject_stateful_hyperparams(steepest.sgd, "momentun"),
        ValueError,
        (
            "inject_hyperparams: static_args has ['momentun'], expected arguments of "
            "sgd: ['learning_rate', 'momentum'",
            "Check the spelling.",
        ),
    ),
}

TAKES_ANYTHING: dict[str, str] = {}
