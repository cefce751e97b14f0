"""The adaptive optimizers."""

import steepest

from ._row import Row, SQUARED

TWO = {"b1": 0.9, "b2": 0.999}
ADAMAX = {"learning_rate": 0.1, **TWO, "eps": 1e-8}
FLOORS = {"eps": 1e-8, "eps_root": 0.0}
BELIEF = {"learning_rate": 0.1, **TWO, "eps": 1e-16, "eps_root": 1e-16}
OPTIMISTIC = {"alpha": 1.0, "beta": 1.0}
RPROP = {
    "learning_rate": 0.1,
    "eta_minus": 0.5,
    "eta_plus": 1.2,
    "min_step_size": 1e-6,
    "max_step_size": 50.0,
}
GENTLY = {"learning_rate": 5e-4}

OPTIMIZERS = [
    Row(steepest.adabelief, BELIEF, {"nesterov": True}),
    Row(
        steepest.adadelta,
        {"learning_rate": 1.0, "rho": 0.9, "eps": 1e-4, "weight_decay": 0.01},
        still=False,
        of_complex=SQUARED,
    ),
    Row(
        steepest.adagrad,
        {"learning_rate": 0.5, "initial_accumulator_value": 0.1, "eps": 1e-7},
    ),
    Row(steepest.adamax, ADAMAX, scale_free=True),
    Row(steepest.adamaxw, {**ADAMAX, "weight_decay": 1e-4}, still=False),
    Row(
        steepest.adan,
        {
            "learning_rate": 0.1,
            "b1": 0.98,
            "b2": 0.92,
            "b3": 0.99,
            "weight_decay": 0.01,
        },
        still=False,
    ),
    Row(steepest.amsgrad, {"learning_rate": 0.1, **TWO, **FLOORS}, scale_free=True),
    Row(
        steepest.novograd,
        {
            "learning_rate": 0.05,
            "b1": 0.9,
            "b2": 0.25,
            "eps": 1e-6,
            "weight_decay": 0.01,
        },
        still=False,
    ),
    Row(steepest.optimistic_adam, {"learning_rate": 0.05, "optimism": 0.02, **TWO}),
    Row(steepest.optimistic_adam_v2, {"learning_rate": 0.05, **OPTIMISTIC, **TWO}),
    Row(
        steepest.optimistic_gradient_descent,
        {"learning_rate": 0.1, **OPTIMISTIC},
        linear=True,
        rotates=True,
        steep=GENTLY,
    ),
    Row(
        steepest.radam,
        {"learning_rate": 0.1, **TWO, **FLOORS, "threshold": 5.0},
        steep=GENTLY,
    ),
    Row(
        steepest.rmsprop,
        {"learning_rate": 0.02, "decay": 0.9, "eps": 1e-8, "initial_scale": 0.0},
    ),
    Row(
        steepest.rmsprop,
        {"learning_rate": 0.02, "decay": 0.9, "eps": 1e-2, "momentum": 0.5},
        {"centered": True, "nesterov": True},
        "centered",
        steep=GENTLY,
    ),
    Row(steepest.rprop, RPROP, complex=False, scale_free=True),
    Row(steepest.sign_sgd, {"learning_rate": 0.02}, scale_free=True),
    Row(steepest.signum, {"learning_rate": 0.02, "beta": 0.9}, scale_free=True),
    Row(steepest.yogi, {"learning_rate": 0.1, **TWO, "eps": 1e-3}, still=False),
]


def _part(maker, hyper, options=None, variant="", **flags):
    return Row(maker, hyper, options or {}, variant, optimizer=False, **flags)


PARTS = [
    _part(steepest.scale_by_adadelta, {"rho": 0.9, "eps": 1e-6}, of_complex=SQUARED),
    _part(steepest.scale_by_adamax, TWO),
    _part(steepest.scale_by_adan, {"b1": 0.98, "b2": 0.92, "b3": 0.99, **FLOORS}),
    _part(
        steepest.scale_by_amsgrad,
        TWO,
        {"bias_correction_mu": False, "bias_correction_nu": False},
    ),
    _part(steepest.scale_by_belief, TWO),
    _part(steepest.scale_by_novograd, {"b1": 0.9, "b2": 0.25}),
    _part(
        steepest.scale_by_optimistic_gradient, {"alpha": 0.5, "beta": -0.2}, linear=True
    ),
    _part(
        steepest.scale_by_radam,
        {**TWO, "threshold": 0.0},
        {"nesterov": True},
        of_complex="split",  # below 4 Optax gives NaN
    ),
    _part(steepest.scale_by_rms, {"decay": 0.9}, {"bias_correction": True}),
    _part(steepest.scale_by_rprop, {"learning_rate": 0.1}, complex=False),
    _part(
        steepest.scale_by_rss,
        {"initial_accumulator_value": 0.0, "eps": 0.0},
        scale_free=True,
    ),
    _part(steepest.scale_by_sign, {}, scale_free=True),
    _part(steepest.scale_by_stddev, {"decay": 0.9, "eps": 0.1}, {"eps_in_sqrt": False}),
    _part(steepest.scale_by_yogi, {**TWO, "initial_accumulator_value": 0.1}),
]
