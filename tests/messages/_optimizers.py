"""Bad calls of the optimizers."""

import jax
import jax.numpy as jnp

import steepest

from ._bad import Bad, params

_FLAG = "expected True or False."


def _no_rate(name):
    """An optimizer without a learning rate goes uphill."""
    return Bad(
        lambda: getattr(steepest, name)(None),
        steepest.UnusualValueWarning,
        f"{name}: learning_rate is None, so the updates are not scaled, and point "
        "uphill. Pass a number or a function of the count. For the direction alone, "
        "use the `scale_by_...` that this optimizer is made of.",
    )


def _infinite_rate(name):
    """The error comes from the last link of the chain, and names the optimizer."""
    return Bad(
        lambda: getattr(steepest, name)(float("inf")),
        ValueError,
        f"{name}: learning_rate is inf, expected a number that is finite.",
    )


def _step(tx, updates=None, state=None, with_params=True, **extra):
    """One step of `tx`, with valid values for all other arguments."""
    p = params()
    updates = p if updates is None else updates
    state = tx.init(p) if state is None else state
    return tx.update(updates, state, p if with_params else None, **extra)


def _loss(p):
    return jnp.sum(p["w"] ** 2) + jnp.sum(p["b"])


def _search(tx, **other):
    """A step of a line search with one bad extra argument."""
    given = {"value": 6.0, "grad": params(), "value_fn": _loss}
    return _step(tx, **{**given, **other})


BAD = {
    "adabelief": _infinite_rate("adabelief"),
    "adadelta": Bad(
        lambda: steepest.adadelta(1.0, rho=1.5),
        steepest.UnusualValueWarning,
        "adadelta: rho is 1.5, but is usually a number in [0, 1]. The value is used.",
    ),
    "adafactor": Bad(
        lambda: steepest.adafactor(1e-3, multiply_by_parameter_scale="no"),
        TypeError,
        f"adafactor: multiply_by_parameter_scale is 'no', {_FLAG}",
    ),
    "adagrad": _no_rate("adagrad"),
    "adam": _no_rate("adam"),
    "adamax": _infinite_rate("adamax"),
    "adamaxw": Bad(
        lambda: _step(steepest.adamaxw(1e-3), with_params=False),
        ValueError,
        "adamaxw: `update` needs `params` and was called without it. Call "
        "`tx.update(grads, state, params)`.",
    ),
    "adamw": Bad(
        lambda: steepest.adamw(1e-3, weight_decay=float("inf")),
        ValueError,
        "adamw: weight_decay is inf, expected a number that is finite.",
    ),
    "adan": Bad(
        lambda: steepest.adan(1e-3, b3=1.01),
        steepest.UnusualValueWarning,
        "adan: b3 is 1.01, but is usually a number in [0, 1]. The value is used.",
    ),
    "amsgrad": Bad(
        lambda: _step(steepest.amsgrad(0.1), state=steepest.adam(0.1).init(params())),
        TypeError,
        "amsgrad: the state is a ScaleByAdamState, expected a "
        "ScaleByAmsgradState. Make the state with `tx.init` of the params the updates "
        "are for.",
    ),
    "fromage": Bad(
        lambda: steepest.fromage(float("inf")),
        ValueError,
        "fromage: learning_rate is inf, expected a number that is finite.",
    ),
    "lamb": _no_rate("lamb"),
    "lars": Bad(
        lambda: _step(steepest.lars(0.1), updates={"w": jnp.ones((3, 2))}),
        ValueError,
        ": leaf ['b'] is in the params and not in the updates. Pass the params the "
        "updates are for.",
    ),
    "lbfgs": Bad(
        lambda: steepest.lbfgs(linesearch=steepest.scale_by_zoom_linesearch),
        TypeError,
        "lbfgs: linesearch is a function, expected a gradient transformation (a pair "
        "of `init` and `update`). Call it first: `scale_by_zoom_linesearch(...)`.",
    ),
    "lion": Bad(
        lambda: steepest.lion(1e-4, mu_dtype="bf16"),
        TypeError,
        "lion: mu_dtype is 'bf16', expected a dtype of real numbers, such as "
        "`jnp.float32`.",
    ),
    "muon": Bad(
        lambda: steepest.muon(1e-3, routes={"conv": "in out in"}),
        ValueError,
        "muon: routes['conv'] is 'in out in', expected 'muon', 'adam', or a word for "
        "each of the last axes: 'in' for those that the layer sums over and 'out' for "
        "the others. Keep equal words together, such as 'in in in out'.",
    ),
    "nadam": Bad(
        lambda: steepest.nadam(1e-3, nesterov="yes"),
        TypeError,
        f"nadam: nesterov is 'yes', {_FLAG}",
    ),
    "nadamw": _infinite_rate("nadamw"),
    "nag": Bad(
        lambda: steepest.nag(0.1, momentum=1.5),
        steepest.UnusualValueWarning,
        "nag: momentum is 1.5, but is usually a number in [0, 1]. The value is used.",
    ),
    "noisy_sgd": Bad(
        lambda: steepest.noisy_sgd(0.1, eta=-1.0, key=0),
        ValueError,
        "noisy_sgd: eta is -1.0, expected a number of at least 0 and below infinity.",
    ),
    "novograd": Bad(
        lambda: steepest.novograd(0.1, weight_decay=lambda count: 0.1),
        TypeError,
        "novograd: weight_decay is a function, expected a number that is finite.",
    ),
    "optimistic_adam": Bad(
        lambda: steepest.optimistic_adam(lambda count: 0.1),
        ValueError,
        "optimistic_adam: learning_rate is a schedule, expected a number. Use "
        "`optimistic_adam_v2`, which takes schedules.",
    ),
    "optimistic_adam_v2": _no_rate("optimistic_adam_v2"),
    "optimistic_gradient_descent": Bad(
        lambda: steepest.optimistic_gradient_descent(0.1, beta=float("nan")),
        ValueError,
        "optimistic_gradient_descent: beta is nan, expected a number that is finite.",
    ),
    "polyak_sgd": Bad(
        lambda: _step(steepest.polyak_sgd()),
        TypeError,
        "polyak_sgd: `update` needs `value` and was called without it. Call "
        "`tx.update(grads, state, params, value=...)`.",
    ),
    "radam": _infinite_rate("radam"),
    "rmsprop": Bad(
        lambda: steepest.rmsprop(1e-3, decay=-0.1),
        steepest.UnusualValueWarning,
        "rmsprop: decay is -0.1, but is usually a number in [0, 1]. The value is used.",
    ),
    "rprop": Bad(
        lambda: steepest.rprop(lambda count: 0.1),
        TypeError,
        "rprop: learning_rate is a function, expected a number that is finite.",
    ),
    "scale_by_adadelta": Bad(
        lambda: steepest.scale_by_adadelta(eps=-1e-6),
        ValueError,
        "scale_by_adadelta: eps is -1e-06, expected a number of at least 0.",
    ),
    "scale_by_adam": Bad(
        lambda: steepest.scale_by_adam(b1=1.5),
        steepest.UnusualValueWarning,
        "scale_by_adam: b1 is 1.5, but is usually a number in [0, 1]. The value is "
        "used.",
    ),
    "scale_by_adamax": Bad(
        lambda: steepest.scale_by_adamax("0.9"),
        TypeError,
        "scale_by_adamax: b1 is a str, expected a number in [0, 1].",
    ),
    "scale_by_adan": Bad(
        lambda: _step(steepest.scale_by_adan(), updates={**params(), "b": jnp.ones(3)}),
        ValueError,
        "scale_by_adan: leaf ['b'] has shape (3,) in the updates and shape (2,) in the "
        "params. Pass the params the updates are for.",
    ),
    "scale_by_amsgrad": Bad(
        lambda: steepest.scale_by_amsgrad(bias_correction_nu=None),
        TypeError,
        f"scale_by_amsgrad: bias_correction_nu is None, {_FLAG}",
    ),
    "scale_by_backtracking_linesearch": Bad(
        lambda: _search(
            steepest.scale_by_backtracking_linesearch(5),
            value_fn=lambda p, batch: _loss(p),
        ),
        TypeError,
        "scale_by_backtracking_linesearch: value_fn is called with the params and the "
        "keyword arguments []: missing a required argument: 'batch'. Pass its "
        "arguments to `update` by name.",
    ),
    "scale_by_belief": Bad(
        lambda: steepest.scale_by_belief(eps_root=-1.0),
        ValueError,
        "scale_by_belief: eps_root is -1.0, expected a number of at least 0.",
    ),
    "scale_by_factored_rms": Bad(
        lambda: steepest.scale_by_factored_rms(decay_rate_fn=0.8),
        TypeError,
        "scale_by_factored_rms: decay_rate_fn is a float, expected a function.",
    ),
    "scale_by_lbfgs": Bad(
        lambda: steepest.scale_by_lbfgs(memory_size=0),
        ValueError,
        "scale_by_lbfgs: memory_size is 0, expected at least 1. For an optimizer "
        "without memory, use `sgd`.",
    ),
    "scale_by_lion": Bad(
        lambda: steepest.scale_by_lion(mode="soft"),
        ValueError,
        "scale_by_lion: mode is 'soft', expected one of: hard, smooth, refined.",
    ),
    "scale_by_novograd": Bad(
        lambda: _step(steepest.scale_by_novograd(), with_params=False),
        ValueError,
        "scale_by_novograd: `update` needs `params` and was called without it. Call "
        "`tx.update(grads, state, params)`.",
    ),
    "scale_by_optimistic_gradient": Bad(
        lambda: steepest.scale_by_optimistic_gradient(alpha=jnp.ones(2)),
        ValueError,
        "scale_by_optimistic_gradient: alpha has shape (2,), expected one number that "
        "is finite.",
    ),
    "scale_by_polar": Bad(
        lambda: _step(steepest.scale_by_polar()),
        ValueError,
        "scale_by_polar: leaf ['b'] has shape (2,), expected a matrix. Use `muon`, "
        "which passes other leaves to AdamW.",
    ),
    "scale_by_polyak": Bad(
        lambda: _step(steepest.scale_by_polyak(), value=jnp.ones(3)),
        TypeError,
        "scale_by_polyak: value is an array of float32 of shape (3,), expected one "
        "real number. Pass the value of the function, summed or averaged over its "
        "axes.",
    ),
    "scale_by_radam": Bad(
        lambda: steepest.scale_by_radam(threshold=float("nan")),
        ValueError,
        "scale_by_radam: threshold is nan, expected a number that is not NaN.",
    ),
    "scale_by_rms": Bad(
        lambda: _step(steepest.scale_by_rms(), updates={**params(), "b": "zeros"}),
        TypeError,
        "scale_by_rms: leaf ['b'] of the updates is a str, expected an array.",
    ),
    "scale_by_rprop": Bad(
        lambda: steepest.scale_by_rprop(0.1, min_step_size=1.0, max_step_size=0.5),
        steepest.UnusualValueWarning,
        "scale_by_rprop: min_step_size is 1.0, above max_step_size 0.5. Every step "
        "size that changes becomes max_step_size.",
    ),
    "scale_by_rss": Bad(
        lambda: steepest.scale_by_rss(initial_accumulator_value=-0.1),
        steepest.UnusualValueWarning,
        "scale_by_rss: initial_accumulator_value is -0.1, but is usually a number of "
        "at least 0 and below infinity. The value is used.",
    ),
    "scale_by_sign": Bad(
        lambda: _step(steepest.scale_by_sign(), updates={"w": jnp.ones((3, 2))}),
        ValueError,
        "scale_by_sign: leaf ['b'] is in the params and not in the updates. Pass the "
        "params the updates are for.",
    ),
    "scale_by_sm3": Bad(
        lambda: steepest.scale_by_sm3(b2=1.5),
        steepest.UnusualValueWarning,
        "scale_by_sm3: b2 is 1.5, but is usually a number in [0, 1]. The value is "
        "used.",
    ),
    "scale_by_stddev": Bad(
        lambda: _step(
            steepest.scale_by_stddev(), state=steepest.scale_by_rms().init(params())
        ),
        TypeError,
        "scale_by_stddev: the state is a ScaleByRmsState, expected a "
        "ScaleByRStdDevState. Make the state with `tx.init` of the params the updates "
        "are for.",
    ),
    "scale_by_yogi": Bad(
        lambda: steepest.scale_by_yogi(initial_accumulator_value=float("inf")),
        steepest.UnusualValueWarning,
        "scale_by_yogi: initial_accumulator_value is inf, but is usually a number of "
        "at least 0 and below infinity. The value is used.",
    ),
    "scale_by_zoom_linesearch": Bad(
        lambda: steepest.scale_by_zoom_linesearch(0),
        ValueError,
        "scale_by_zoom_linesearch: max_linesearch_steps is 0, expected a number that "
        "is whole and at least 1.",
    ),
    "sgd": _no_rate("sgd"),
    "sign_sgd": _no_rate("sign_sgd"),
    "signum": _no_rate("signum"),
    "sm3": Bad(
        lambda: steepest.sm3(0.1, momentum=1.5),
        steepest.UnusualValueWarning,
        "sm3: momentum is 1.5, but is usually a number in [0, 1]. The value is used.",
    ),
    "value_and_grad_from_state": Bad(
        lambda: steepest.value_and_grad_from_state(jax.value_and_grad(_loss))(
            params(), state=steepest.lbfgs().init(params())
        ),
        TypeError,
        "value_and_grad_from_state: value_fn returned a tuple, expected one real "
        "number. Return only the value, summed or averaged over its axes.",
    ),
    "yogi": _no_rate("yogi"),
}

# Functions that accept anything, and why.
TAKES_ANYTHING: dict[str, str] = {}
