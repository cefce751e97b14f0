"""The grammar of the random expressions."""

from random import Random
from typing import Any

from ._expression import Call, Name, names
from ._problems import DTYPES, GRADIENTS, Problem, STEPS, TREES
from ._user import CONCRETE, CONDITIONS, MASKS, STATEFUL

RATE = object()  # placeholder for a learning rate: a number or a schedule
MATRICES = Name("user.matrices")
KEY = 3


def _may(*args: Any, **kwargs: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    return args, kwargs


# name -> the ways to call it
TRANSFORMS: dict[str, list[Any]] = {
    "adaptive_grad_clip": [_may(0.1), _may(0.3, 0.7)],
    "add_decayed_weights": [_may(0.1), _may(RATE), _may(0.1, MATRICES)],
    "add_noise": [_may(0.1, 0.55, KEY)],
    "apply_every": [_may(2), _may(3)],
    "centralize": [_may()],
    "clip": [_may(0.5)],
    "clip_by_block_rms": [_may(0.5)],
    "clip_by_global_norm": [_may(0.5), _may(1e9)],
    "ema": [_may(0.9), _may(0.5, False), _may(0.9, accumulator_dtype="float32")],
    "identity": [_may()],
    "keep_params_nonnegative": [_may()],
    "normalize_by_update_norm": [_may(), _may(2.0, 0.1)],
    "scale": [_may(-2.0)],
    "scale_by_adadelta": [_may(), _may(0.7, 1e-3)],
    "scale_by_adam": [_may(), _may(0.0, 0.5), _may(nesterov=True, eps_root=1e-4)],
    "scale_by_adamax": [_may(), _may(0.5, 0.9)],
    "scale_by_adan": [_may()],
    "scale_by_amsgrad": [_may(), _may(bias_correction_mu=False)],
    "scale_by_belief": [_may(), _may(nesterov=True)],
    "scale_by_distance_over_gradients": [_may(1e-2)],
    "scale_by_factored_rms": [_may(), _may(min_dim_size_to_factor=2)],
    "scale_by_lbfgs": [_may(2)],
    "scale_by_learning_rate": [_may(RATE), _may(RATE, flip_sign=False)],
    "scale_by_lion": [_may(), _may(0.5, 0.8)],
    "scale_by_novograd": [_may(), _may(weight_decay=0.1)],
    "scale_by_optimistic_gradient": [_may(), _may(0.5, -0.2)],
    "scale_by_param_block_norm": [_may(), _may(0.5)],
    "scale_by_param_block_rms": [_may()],
    "scale_by_polyak": [_may(f_min=-1.0)],
    "scale_by_radam": [_may(), _may(threshold=4.5, nesterov=True)],
    "scale_by_rms": [_may(), _may(0.5, 1e-3, 0.1), _may(bias_correction=True)],
    "scale_by_rprop": [_may(0.1)],
    "scale_by_rss": [_may(), _may(0.5, 1e-3)],
    "scale_by_schedule": [_may(Name("user.falling_schedule"))],
    "scale_by_sign": [_may()],
    "scale_by_sm3": [_may(), _may(0.5, 0.9)],
    "scale_by_stddev": [_may(eps=0.1), _may(0.5, 0.1, 0.1)],
    "scale_by_trust_ratio": [_may(), _may(0.5, 0.1, 0.2)],
    "scale_by_yogi": [_may(), _may(initial_accumulator_value=0.1)],
    "set_to_zero": [_may()],
    "trace": [_may(0.9), _may(0.5, True), _may(0.9, accumulator_dtype="float32")],
    "user.averaged": [_may()],
    "user.frozen": [_may()],
    "user.measured": [_may()],
    "user.monitored": [_may()],
    "zero_nans": [_may()],
    "contrib.normalize": [_may()],
    "contrib.reduce_on_plateau": [_may(0.5, 1), _may(patience=1, accumulation_size=2)],
    "contrib.scale_by_acprop": [_may()],
    "contrib.scale_by_ademamix": [_may(), _may(b3=Name("user.falling_schedule"))],
    "contrib.scale_by_adopt": [_may(), _may(nesterov=True)],
    "contrib.scale_by_cocob": [_may(), _may(10.0)],
    "contrib.scale_by_galore": [_may(1, 2)],
    "contrib.scale_by_madgrad": [_may(0.1)],
    "contrib.scale_by_simplified_ademamix": [_may()],
    **{name: [_may()] for name in STATEFUL},
}
OPTIMIZERS: dict[str, list[Any]] = {
    "adabelief": [_may(RATE), _may(RATE, 0.5, nesterov=True)],
    "adadelta": [_may(RATE), _may(0.5, 0.7, 1e-3, 0.1, MATRICES)],
    "adafactor": [_may(RATE), _may(RATE, 2, momentum=0.5)],
    "adagrad": [_may(RATE), _may(RATE, 0.5)],
    "adam": [_may(RATE), _may(RATE, 0.5, 0.9), _may(RATE, mu_dtype="float32")],
    "adamax": [_may(RATE)],
    "adamaxw": [_may(RATE, weight_decay=0.1)],
    "adamw": [_may(RATE), _may(RATE, weight_decay=0.1, mask=MATRICES)],
    "adan": [_may(RATE)],
    "amsgrad": [_may(RATE)],
    "fromage": [_may(RATE)],
    "lamb": [_may(RATE), _may(RATE, weight_decay=0.1)],
    "lars": [_may(RATE), _may(RATE, 0.1, momentum=0.5, nesterov=True)],
    "lbfgs": [_may(RATE, 2, linesearch=None)],
    "lion": [_may(RATE)],
    "nadam": [_may(RATE)],
    "nadamw": [_may(RATE, weight_decay=0.1)],
    "noisy_sgd": [_may(RATE, 0.1, 0.3, KEY)],
    "novograd": [_may(RATE)],
    "optimistic_adam": [_may(0.1)],
    "optimistic_adam_v2": [_may(RATE)],
    "optimistic_gradient_descent": [_may(RATE), _may(RATE, 0.5, 0.2)],
    "polyak_sgd": [_may(), _may(f_min=-2.0, scaling=0.5)],
    "radam": [_may(RATE)],
    "rmsprop": [_may(RATE), _may(RATE, 0.7, 1e-3, 0.5, momentum=0.5)],
    "rprop": [_may(0.1)],
    "sgd": [_may(RATE), _may(RATE, 0.9), _may(RATE, 0.5, True)],
    "sign_sgd": [_may(RATE)],
    "signum": [_may(RATE)],
    "sm3": [_may(0.1)],
    "yogi": [_may(RATE)],
    "contrib.acprop": [_may(RATE)],
    "contrib.ademamix": [_may(RATE)],
    "contrib.adopt": [_may(RATE)],
    "contrib.cocob": [_may(), _may(alpha=10.0)],
    "contrib.dadapt_adamw": [_may(RATE), _may(estim_lr0=0.01)],
    "contrib.dog": [_may(RATE)],
    "contrib.dowg": [_may(RATE)],
    "contrib.galore": [_may(RATE, 1, 2)],
    "contrib.madgrad": [_may(RATE), _may(RATE, 0.5, 0.1)],
    "contrib.momo": [_may(), _may(RATE, adapt_lower_bound=True)],
    "contrib.momo_adam": [_may(RATE), _may(RATE, adapt_lower_bound=True)],
    "contrib.muon": [_may(RATE)],
    "contrib.prodigy": [_may(RATE), _may(estim_lr0=0.01)],
    "contrib.schedule_free_adamw": [_may(0.1), _may(0.1, 3)],
    "contrib.schedule_free_sgd": [_may(0.3), _may(0.3, 3)],
    "contrib.simplified_ademamix": [_may(RATE)],
}
# Public names that are left out, and where they are compared instead.
LEFT_OUT = {
    "freeze": "lasts to the chain's end on purpose: tests/transforms/test_freeze.py",
    "selective_transform": "calls its mask on purpose: tests/transforms/test_freeze.py",
    "scale_by_backtracking_linesearch": "needs the loss: tests/oracles",
    "scale_by_zoom_linesearch": "needs the loss: tests/oracles",
    "contrib.sophia": "needs the loss: tests/oracles",
    "contrib.hutchinson_estimator_diag_hessian": "needs the loss: tests/oracles",
    "contrib.scale_by_muon": "takes only matrices; `contrib.muon` is included",
    "contrib.dpsgd": "needs per-example gradients: tests/contrib/test_privacy.py",
    "contrib.differentially_private_aggregate": "as `dpsgd`",
    "per_example_global_norm_clip": "as `dpsgd`",
    "per_example_layer_norm_clip": "as `dpsgd`",
    "inject_stateful_hyperparams": "a second name of `inject_hyperparams`",
    "stateless_with_tree_map": "a shorter form of `stateless`",
    "with_extra_args_support": "around every expression: see `_run.py`",
}

_SCHEDULES = [
    Call("constant_schedule", 0.1),
    Call("linear_schedule", 0.3, 0.01, 4),
    Call("linear_schedule", 0.3, 0.01, 4, 1),
    Call("cosine_decay_schedule", 0.3, 4),
    Call("cosine_decay_schedule", 0.3, 4, 0.1, 2.0),
    Call("exponential_decay", 0.3, 3, 0.5),
    Call("exponential_decay", 0.3, 2, 0.5, 1, True, end_value=0.1),
    Call("polynomial_schedule", 0.3, 0.1, 2, 4),
    Call("piecewise_constant_schedule", 0.3, {2: 0.5, 4: 0.1}),
    Call("piecewise_interpolate_schedule", "linear", 0.3, {2: 0.5, 5: 0.1}),
    Call("warmup_constant_schedule", 0.0, 0.3, 3),
    Call("warmup_cosine_decay_schedule", 0.0, 0.3, 2, 5),
    Call("warmup_exponential_decay_schedule", 0.1, 0.3, 2, 2, 0.5),
    Call("linear_onecycle_schedule", 6, 0.3),
    Call("cosine_onecycle_schedule", 6, 0.3),
    Call(
        "sgdr_schedule",
        [
            {"init_value": 0.1, "peak_value": 0.3, "decay_steps": 3, "warmup_steps": 1},
            {"init_value": 0.1, "peak_value": 0.2, "decay_steps": 3, "warmup_steps": 1},
        ],
    ),
    Name("user.falling_schedule"),
]
_INJECTED = {
    "sgd": [_may(RATE), _may(RATE, 0.9)],
    "adam": [_may(RATE), _may(RATE, 0.8), _may(RATE, b2=Name("user.falling_schedule"))],
    "adamw": [_may(RATE, weight_decay=0.1)],
    "lion": [_may(RATE)],
    "rmsprop": [_may(RATE, 0.5)],
    "scale": [_may(-0.1)],
    "clip_by_global_norm": [_may(0.5), _may(Name("user.falling_schedule"))],
    "add_decayed_weights": [_may(0.1)],
    "ema": [_may(0.5)],
}


HOLDS = "apply_if_finite", "skip_not_finite", "user.skip_large"


class Grammar:
    """Draws expressions and problems.

    Args:
        random: source of its choices.
        concrete: whether users' functions use Python's `if` on values.
    """

    def __init__(self, random: Random, *, concrete: bool = False):
        self._random = random
        self._concrete = concrete

    def case(self) -> tuple[Call, Problem]:
        """An expression and a problem to run it on."""
        pick = self._random.choice
        depth = pick([0, 1, 1, 2, 2, 3])
        if pick(range(20)) == 0:
            inner = self.expression(min(depth, 1))
            expression = Call("lookahead", inner, 2, 0.5, pick([True, False]))
        else:
            expression = self.expression(depth)
        used = set(names(expression))
        if self._concrete and used.isdisjoint(CONCRETE):
            return self.case()
        return expression, self.problem(used)

    def problem(self, used: set[str]) -> Problem:
        """A problem: mostly float32, mostly with good gradients."""
        pick = self._random.choice
        kinds = "normal", "normal", "normal", "normal", *GRADIENTS
        gradients = tuple(pick(kinds) for _ in range(STEPS))
        dtype = pick(["float32", "float32", "float32", "float32", *DTYPES])
        if used & set(HOLDS):
            # Give wrappers that skip steps a reason to skip, preferably the first one:
            # a state that a step has computed is always representable in the dtypes of
            # the step.
            k = pick([*[0] * STEPS, *range(STEPS)])
            bad = pick(["nan", "inf", "nan", "huge"])
            gradients = *gradients[:k], bad, *gradients[k + 1 :]
        eager = bool(used & set(CONCRETE)) or pick([True, False, False])
        return Problem(pick(sorted(TREES)), dtype, gradients, eager)

    def expression(self, depth: int) -> Call:
        """An expression with at most this many nested wrappers."""
        if depth < 1:
            return self._from(self._random.choice([OPTIMIZERS, TRANSFORMS]))
        return self._random.choice(self._wrappers())(lambda: self._part(depth - 1))

    def rate(self) -> Any:
        """A learning rate."""
        pick = self._random.choice
        if pick([True, False]):
            return pick([0.1, 0.01, 1.0])
        if self._concrete and pick([True, False]):
            return Name(pick(["user.if_schedule", "user.box_schedule"]))
        if pick([True, False, False]):
            pair = [pick(_SCHEDULES), pick(_SCHEDULES)]
            return Call("join_schedules", pair, [pick([1, 2, 4])])
        return pick(_SCHEDULES)

    def _part(self, depth: int) -> Call:
        return self.expression(self._random.choice(range(depth + 1)))

    def _from(self, table: dict[str, list[Any]]) -> Call:
        name = self._random.choice(sorted(table))
        args, kwargs = self._random.choice(table[name])
        return Call(name, *(self.rate() if x is RATE else x for x in args), **kwargs)

    def _condition(self) -> dict[str, Any]:
        names = CONDITIONS
        if self._concrete:
            names = *names, "user.if_condition", "user.box_condition"
        name = self._random.choice([*names, "user.low"])
        found = {"should_transform_fn": Name(name)}
        return {**found, "forward_extra_args": True} if name == "user.low" else found

    def _multi_steps(self, part: Any) -> Call:
        pick = self._random.choice
        skips = ["skip_not_finite", "user.skip_large", "user.skip_second"]
        if self._concrete:
            skips.append("user.if_skip")
        options: dict[str, Any] = pick([{}, {}, {"use_grad_mean": False}])
        if pick([True, False]):
            options = {**options, "should_skip_update_fn": Name(pick(skips))}
        every = pick([1, 2, 3, Name("user.every")])
        return Call("user.multi_steps", part(), every, **options)

    def _inject(self, part: Any) -> Call:
        name = self._random.choice(sorted(_INJECTED))
        call = self._from({name: _INJECTED[name]})
        return Call("user.inject", Name(name), *call.args, **call.kwargs)

    def _wrappers(self) -> list[Any]:
        """Functions of a function that draws a part; common ones are repeated."""
        pick = self._random.choice
        chains = [
            lambda part: Call("chain", *(part() for _ in range(pick([2, 2, 3])))),
            lambda part: Call("named_chain", ("a", part()), ("b", part())),
            lambda part: Call("masked", part(), Name(pick(MASKS))),
            lambda part: Call(
                pick(["partition", "multi_transform"]),
                {"many": part(), "few": part()},
                Name("user.labels"),
            ),
            lambda part: Call("flatten", part()),
        ]
        either = lambda part: pick([part, lambda: Call(pick(STATEFUL))])()
        holds = [
            lambda part: Call("apply_if_finite", either(part), pick([0, 1, 2, 3])),
            lambda part: Call("apply_if_finite", either(part), pick([2, 3])),
            lambda part: Call("conditionally_mask", either(part), **self._condition()),
            lambda part: Call(
                "conditionally_transform", either(part), **self._condition()
            ),
            self._multi_steps,
            self._inject,
        ]
        rare = [
            lambda part: Call("contrib.mechanize", part()),
            lambda part: Call("contrib.schedule_free", part(), self.rate()),
            lambda part: Call("contrib.split_real_and_imaginary", part()),
            lambda part: Call("contrib.sam", part(), part()),
        ]
        if self._concrete:
            holds.append(lambda part: Call("apply_if_finite", Call("user.if_value"), 2))
        return [*chains, *chains, *holds, *holds, *rare]
