"""The optimizers of `torch.optim`: their memory and numbers, and ours beside them."""

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

import jax.numpy as jnp
import numpy as np

from ..core import At, is_schedule, Rule

# torch's optimizer -> a rule of ours -> our field -> torch's key.
MEMORY: dict[str, dict[str, dict[str, str]]] = {
    "SGD": {"trace": {"trace": "momentum_buffer"}},
    "Adam": {"scale_by_adam": {"mu": "exp_avg", "nu": "exp_avg_sq"}},
    "NAdam": {"scale_by_adam": {"mu": "exp_avg", "nu": "exp_avg_sq"}},
    "RAdam": {"scale_by_radam": {"mu": "exp_avg", "nu": "exp_avg_sq"}},
    "RMSprop": {
        "scale_by_rms": {"nu": "square_avg"},
        "scale_by_stddev": {"mu": "grad_avg", "nu": "square_avg"},
        "trace": {"trace": "momentum_buffer"},
    },
    "Adagrad": {"scale_by_rss": {"sum_of_squares": "sum"}},
    "Muon": {"scale_by_polar": {"mu": "momentum_buffer"}},
}
# The transformation to advise.
OURS = {
    "SGD": "`sgd(lr, momentum)`",
    "Adam": "`adam(lr, b1, b2, eps)` or `adamw(lr, b1, b2, eps, weight_decay=...)`",
    "NAdam": "`nadam(lr, b1, b2, eps)`",
    "RAdam": "`radam(lr, b1, b2, eps)`",
    "RMSprop": "`rmsprop(lr, alpha, eps, eps_in_sqrt=False)`",
    "Adagrad": "`adagrad(lr, eps=0.0)`",
    "Muon": "`muon(lr, momentum, weight_decay, eps=1e-7, coefficients='standard', "
    "scale='original')`",
}
WITHOUT_STEP = ("SGD", "Muon")  # torch does not store the number of steps
# What torch keeps besides arrays like the parameter.
SCALARS = ("step", "mu_product")

# The rest of a param group, as torch fills it in.
_FLAGS = {
    "maximize": False,
    "foreach": None,
    "capturable": False,
    "differentiable": False,
}
_REST: dict[str, dict[str, Any]] = {
    "SGD": {
        "dampening": 0.0,
        "maximize": False,
        "foreach": None,
        "differentiable": False,
        "fused": None,
    },
    "Adam": {**_FLAGS, "amsgrad": False, "fused": None},
    # With this decay torch's momentum is b1 in every step, as ours is.
    "NAdam": {**_FLAGS, "momentum_decay": 1000.0},
    "RAdam": _FLAGS,
    "RMSprop": _FLAGS,
    "Adagrad": {
        "lr_decay": 0.0,
        "initial_accumulator_value": 0.0,
        "eps": 0.0,
        "foreach": None,
        "maximize": False,
        "differentiable": False,
        "fused": None,
    },
    "Muon": {},
}
_NO_CHOICE = {"SGD": False, "RMSprop": False, "Adagrad": False, "Muon": True}


def kind_of(name: str, group: Mapping[str, Any], memory: Mapping[str, Any]) -> str:
    """The torch optimizer that has such a param group, a key of `MEMORY`.

    Args:
        name: name used in error messages.
        group: the param group.
        memory: what it keeps for a parameter.
    """
    if "ns_coefficients" in group:
        return "Muon"
    if "momentum_decay" in group:
        return "NAdam"
    if "lr_decay" in group:
        return "Adagrad"
    if "centered" in group:
        return "RMSprop"
    if "dampening" in group:
        return "SGD"
    if "amsgrad" in group:
        return "Adam"
    if {"betas", "weight_decay"} <= group.keys() and "exp_inf" not in memory:
        return "RAdam"
    keys = sorted(k for k in group if k not in ("params", "param_names"))
    raise ValueError(
        f"{name}: a param group has the keys {keys}, which are not those of an "
        "optimizer that can be converted. Expected one of: SGD, Adam, AdamW, NAdam, "
        "RAdam, RMSprop, Adagrad, Muon."
    )


def kind_of_rules(name: str, path: str, rules: Sequence[Rule]) -> str:
    """The torch optimizer that computes what these rules compute.

    Args:
        name: name used in error messages.
        path: the path of the leaf.
        rules: the rules that are applied to a leaf, in order.
    """
    remembering = [rule for rule in rules if rule.memory]
    if not remembering:
        return "SGD"
    first = remembering[0]
    kinds = [kind for kind, ours in MEMORY.items() if first.name in ours]
    if not kinds:
        raise ValueError(
            f"{name}: tx applies {first.name} to leaf {path!r}, which torch does not "
            f"have. Expected one of: {', '.join(sorted(set(chain(*MEMORY.values()))))}."
        )
    return "NAdam" if kinds[0] == "Adam" and is_nesterov(first) else kinds[0]


def is_nesterov(rule: Rule) -> bool:
    """Whether the formula of a rule has Nesterov momentum."""
    return rule.formula.__name__.startswith(("nesterov_", "nadam_"))


def find(rules: Sequence[Rule], *names: str) -> Rule | None:
    """The first rule with one of these names."""
    return next((rule for rule in rules if rule.name in names), None)


def now(x: Any, t: int | None) -> float:
    """A number of a rule, or the value of a schedule after `t` steps."""
    if isinstance(x, At):
        x = x.schedule
    return float(x(jnp.asarray(t or 0, jnp.int32)) if is_schedule(x) else x)


def rate(rules: Sequence[Rule], t: int | None) -> float | None:
    """The learning rate of these rules after `t` steps; `None` if they have none.

    Args:
        rules: the rules after the one with the memory.
        t: the number of steps taken.
    """
    product: float | None = None
    for rule in rules:
        numbers = rule.numbers
        if rule.name == "scale_by_learning_rate":
            down = rule.formula.__name__ == "descent_formula"
            factor = now(numbers["learning_rate"], t) * (1 if down else -1)
        elif rule.name in ("scale", "scale_by_schedule"):
            factor = -now(numbers["step_size"], t)
        else:
            continue
        product = factor if product is None else -product * factor
    return product


def numbers_of_rules(kind: str, rules: Sequence[Rule], t: int | None) -> dict[str, Any]:
    """The numbers of these rules, by torch's names.

    Args:
        kind: a key of `MEMORY`.
        rules: the rules that are applied to a leaf, in order.
        t: the number of steps taken.
    """
    core = find(rules, *MEMORY[kind])
    place = rules.index(core) if core else len(rules)
    after = rules[place:] if core else rules
    decays = [
        (k > place, now(rule.numbers["weight_decay"], t))
        for k, rule in enumerate(rules)
        if rule.name == "add_decayed_weights"
    ]
    values: dict[str, Any] = {
        "lr": rate(after, t),
        "weight_decay": sum(x for _, x in decays),
        "decoupled_weight_decay": any(decoupled for decoupled, _ in decays),
    }
    mine = core.numbers if core else {}
    if kind == "SGD":
        values["momentum"] = now(mine["decay"], t) if core else 0.0
        values["nesterov"] = core is not None and is_nesterov(core)
    elif kind in ("Adam", "NAdam", "RAdam"):
        values["betas"] = now(mine["b1"], t), now(mine["b2"], t)
        values["eps"] = now(mine["eps"], t)
        values["eps_root"] = now(mine["eps_root"], t)
        if kind == "RAdam":
            values["threshold"] = now(mine["threshold"], t)
    elif kind == "RMSprop":
        trace = find(rules, "trace")
        values["alpha"] = now(mine["decay"], t)
        values["eps"] = now(mine["eps"], t)
        values["momentum"] = now(trace.numbers["decay"], t) if trace else 0.0
        values["centered"] = core is not None and core.name == "scale_by_stddev"
    elif kind == "Muon":
        values |= _muon(core, find(rules, "scale_by_shape"), t)
    return values


def _muon(core: Rule | None, shape: Rule | None, t: int | None) -> dict[str, Any]:
    """Muon's own numbers. torch uses one polynomial in all steps."""
    mine = core.numbers if core else {}
    rows = sorted(set(mine["polynomials"]))
    scale = None if shape is None else shape.numbers["scale"]
    if scale == "rms" and shape and np.isclose(now(shape.numbers["rms"], t), 0.2):
        scale = "match_rms_adamw"
    return {
        "momentum": now(mine["beta"], t),
        "nesterov": core is not None and is_nesterov(core),
        "eps": now(mine["eps"], t),
        "ns_steps": len(mine["polynomials"]),
        "ns_coefficients": rows[0] if len(rows) == 1 else tuple(mine["polynomials"]),
        "adjust_lr_fn": scale,
    }


def numbers_of_group(
    kind: str, group: Mapping[str, Any], t: int | None
) -> dict[str, Any]:
    """The numbers of a param group that `numbers_of_rules` should equal.

    Args:
        kind: a key of `MEMORY`.
        group: the param group.
        t: the number of steps taken.
    """
    values = {k: _plain(x) for k, x in group.items() if k != "params"}
    values.setdefault("decoupled_weight_decay", _NO_CHOICE.get(kind))
    if kind == "SGD":
        # m = buffer / (1 - dampening), so a step has this factor.
        values["lr"] *= 1 - values["dampening"]
    elif kind == "Adagrad":
        values["lr"] /= 1 + (t or 0) * values["lr_decay"]
        values.pop("eps")  # compared by its effect, see `eps_effect`
    elif kind == "Muon":
        values["adjust_lr_fn"] = values.get("adjust_lr_fn") or "original"
    if kind in ("Adam", "NAdam", "RAdam"):
        values["eps_root"] = 0.0
        values["threshold"] = 5.0
    return values


def blank_group(kind: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """A param group of torch with these numbers of `numbers_of_rules`.

    Args:
        kind: a key of `MEMORY`.
        values: the numbers.
    """
    ours = (
        "eps_root",
        "threshold",
        *(["decoupled_weight_decay"] * (kind in _NO_CHOICE)),
    )
    return {**_REST[kind], **{k: x for k, x in values.items() if k not in ours}}


def differences(ours: Mapping[str, Any], torch: Mapping[str, Any]) -> list[str]:
    """A clause for each number that differs."""
    clauses = []
    for key, x in ours.items():
        y = torch.get(key)
        if y is None and key != "lr":
            continue
        if key == "decoupled_weight_decay":
            where = ["in the gradient", "apart from the gradient"]
            if (
                torch.get("weight_decay")
                and ours["weight_decay"]
                and bool(x) != bool(y)
            ):
                clauses.append(
                    f"weight_decay is {where[bool(y)]} in torch and {where[bool(x)]} "
                    "in tx"
                )
        elif not _equal(x, y):
            clauses.append(f"{key} is {y} in torch and {x} in tx")
    return clauses


def _equal(x: Any, y: Any) -> bool:
    if isinstance(x, bool | str | None) or isinstance(y, bool | str | None):
        return x == y
    a, b = np.asarray(x, float), np.asarray(y, float)
    return a.shape == b.shape and bool(np.allclose(a, b, rtol=1e-6, atol=0))


def _plain(x: Any) -> Any:
    """A number of a param group, which may be a tensor."""
    if isinstance(x, list | tuple):
        return tuple(map(_plain, x))
    return float(x) if hasattr(x, "item") else x
