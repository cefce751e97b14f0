"""Cases: the adaptive optimizers."""

import warnings

from ._cases import Case, cosine, many


def _optimistic_adam(m, *numbers, **options):
    """Suppress Optax's deprecation warning, which is not what is compared."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return m.optimistic_adam(*numbers, **options)


CASES = {
    "adabelief": lambda m: m.adabelief(0.1),
    "adabelief, other numbers": lambda m: m.adabelief(0.1, 0.8, 0.95, 1e-3, 1e-4),
    "adabelief, nesterov": lambda m: m.adabelief(cosine(m), nesterov=True),
    "adadelta": lambda m: m.adadelta(),
    "adadelta, other numbers": lambda m: m.adadelta(0.5, 0.7, 1e-3, 0.1, many),
    "adagrad": lambda m: m.adagrad(0.1),
    "adagrad, other numbers": lambda m: m.adagrad(cosine(m), 0.5, 1e-3),
    "scale_by_rss": lambda m: m.scale_by_rss(0.0, 0.0),
    "adamax": lambda m: m.adamax(0.1),
    "adamax, other numbers": lambda m: m.adamax(cosine(m), 0.8, 0.7, 1e-3),
    "adamaxw": lambda m: m.adamaxw(0.1),
    "adamaxw, other numbers": lambda m: m.adamaxw(0.1, 0.8, 0.7, 1e-3, 0.1, many),
    "adan": lambda m: m.adan(0.1),
    "adan, other numbers": lambda m: m.adan(
        cosine(m), 0.8, 0.7, 0.9, 1e-3, 1e-4, 0.1, many
    ),
    "scale_by_adan": lambda m: m.scale_by_adan(),
    "amsgrad": lambda m: m.amsgrad(0.1),
    "amsgrad, other numbers": lambda m: m.amsgrad(cosine(m), 0.8, 0.7, 1e-3, 1e-4),
    "amsgrad, mu_dtype": Case(
        # Optax multiplies the mean by 0.9 in bfloat16, where 0.9 is 0.8984.
        lambda m: m.amsgrad(0.1, mu_dtype="bfloat16"),
        tolerance=3e-2,
        dtypes=("float32",),
    ),
    "amsgrad, of the mean": lambda m: m.amsgrad(0.1, bias_correction_nu=False),
    "amsgrad, of the square": lambda m: m.amsgrad(0.1, bias_correction_mu=False),
    "amsgrad, as the paper": lambda m: m.scale_by_amsgrad(
        bias_correction_mu=False, bias_correction_nu=False
    ),
    "radam": lambda m: m.radam(0.1),
    "radam, other numbers": lambda m: m.radam(cosine(m), 0.8, 0.9, 1e-3, 1e-4, 6.5),
    "radam, nesterov": lambda m: m.radam(0.1, nesterov=True),
    "rmsprop": lambda m: m.rmsprop(0.1),
    "rmsprop, other numbers": lambda m: m.rmsprop(cosine(m), 0.7, 1e-3, 0.5),
    "rmsprop, eps outside": lambda m: m.rmsprop(0.1, eps=1e-2, eps_in_sqrt=False),
    "rmsprop, nesterov": lambda m: m.rmsprop(0.1, momentum=0.8, nesterov=True),
    "rmsprop, bias": lambda m: m.rmsprop(0.1, bias_correction=True),
    "rmsprop, centered": lambda m: m.rmsprop(0.1, centered=True),
    "rmsprop, all": Case(
        # Differences of squares lose digits, and the momentum accumulates the errors.
        lambda m: m.rmsprop(cosine(m), 0.7, 1e-3, 0.5, False, True, 0.8, True, True),
        tolerance=5e-5,
    ),
    "scale_by_rms": lambda m: m.scale_by_rms(0.5, 1e-3, 0.1, False, True),
    "scale_by_stddev": lambda m: m.scale_by_stddev(0.5, 1e-3, 0.1, False, True),
    "scale_by_stddev, eps outside": lambda m: m.scale_by_stddev(
        eps=1e-2, eps_in_sqrt=False
    ),
    "yogi": lambda m: m.yogi(0.1),
    "yogi, other numbers": lambda m: m.yogi(cosine(m), 0.8, 0.7, 1e-2),
    "scale_by_yogi": lambda m: m.scale_by_yogi(0.8, 0.7, 1e-2, 1e-4, 0.1),
    "novograd": lambda m: m.novograd(0.1),
    "novograd, other numbers": lambda m: m.novograd(
        cosine(m), 0.8, 0.7, 1e-3, 1e-4, 0.1
    ),
    "optimistic_gradient_descent": lambda m: m.optimistic_gradient_descent(0.1),
    "optimistic_gradient_descent, other numbers": lambda m: (
        m.optimistic_gradient_descent(cosine(m), 0.7, 0.3)
    ),
    "optimistic_adam": lambda m: _optimistic_adam(m, 0.1),
    "optimistic_adam, other numbers": lambda m: _optimistic_adam(
        m, 0.1, 0.05, 0.8, 0.7, 1e-3, 1e-4, nesterov=False
    ),
    "optimistic_adam_v2": lambda m: m.optimistic_adam_v2(cosine(m)),
    "optimistic_adam_v2, other numbers": lambda m: m.optimistic_adam_v2(
        0.1, alpha=0.7, beta=0.3, b1=0.8, b2=0.7, eps=1e-3, nesterov=False
    ),
    "rprop": lambda m: m.rprop(0.1),
    "rprop, other numbers": lambda m: m.rprop(0.5, 0.4, 1.5, 0.1, 2.0),
    "scale_by_rprop": lambda m: m.scale_by_rprop(9.0, 0.9, max_step_size=3.0),
    "sign_sgd, scheduled": lambda m: m.sign_sgd(cosine(m)),
    "scale_by_sign": lambda m: m.scale_by_sign(),
    "signum": lambda m: m.signum(cosine(m), 0.8),
    "signum, accumulator_dtype": Case(
        # Only the signs are compared: the mean is rounded to 8 bits.
        lambda m: m.signum(0.1, accumulator_dtype="bfloat16"),
        tolerance=3e-2,
        dtypes=("float32",),
    ),
}
