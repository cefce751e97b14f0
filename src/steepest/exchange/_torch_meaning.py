"""Where the memory of torch means something else than ours: convert it, or refuse."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from ..core import is_schedule, Rule
from ._torch_kinds import find, is_nesterov, MEMORY, now, OURS, rate, SCALARS
from ._torch_slots import Slot

_ROUNDING = 1e-5  # a difference of steps, in units of the learning rate


class Row(NamedTuple):
    """A parameter of torch beside the rules that are applied to its leaf."""

    slot: Slot
    kind: str  # a key of `MEMORY`
    rules: Sequence[Rule]  # in order
    t: int | None  # the number of steps taken; `None` if torch does not store it

    @property
    def remembering(self) -> list[Rule]:
        """The rules with memory."""
        return [rule for rule in self.rules if rule.memory]


def check_kind(name: str, row: Row) -> None:
    """Check that the rules keep what this optimizer of torch keeps.

    Args:
        name: name used in error messages.
        row: a parameter.
    """
    kind, path = row.kind, row.slot.path
    for rule in row.remembering:
        if rule.name not in MEMORY[kind]:
            why = ""
            if rule.name == "scale_by_amsgrad":
                why = (
                    " torch takes the maximum before the bias correction and steepest "
                    "after it, so neither maximum gives the other."
                )
            elif rule.name == "scale_by_muon":
                why = " `contrib.muon` corrects the bias of its mean; torch does not."
            raise ValueError(
                f"{name}: the state dict is of torch.optim.{_title(row)}, but tx "
                f"applies {rule.name} to leaf {path!r}.{why} Use {OURS[kind]}."
            )
    core = find(row.rules, *MEMORY[kind])
    if core is None:
        if kind != "SGD":
            raise ValueError(
                f"{name}: the state dict is of torch.optim.{_title(row)}, but tx keeps "
                f"no memory for leaf {path!r}. Use {OURS[kind]}."
            )
    elif kind in ("Adam", "NAdam") and is_nesterov(core) != (kind == "NAdam"):
        raise ValueError(
            f"{name}: the state dict is of torch.optim.{_title(row)}, but tx applies "
            f"{core.name} {'with' if kind == 'Adam' else 'without'} Nesterov momentum "
            f"to leaf {path!r}. Use {OURS[kind]}."
        )
    _CHECKS.get(kind, lambda name, row: None)(name, row)


def check_memory(name: str, row: Row) -> None:
    """Check that the rules use all that torch has for a parameter.

    Args:
        name: name used in error messages.
        row: a parameter.
    """
    fields = [MEMORY[row.kind].get(rule.name, {}) for rule in row.remembering]
    used = {key for one in fields for key in one.values()}
    has = {k for k, x in row.slot.memory.items() if x is not None and k not in SCALARS}
    if "max_exp_avg_sq" in has:
        raise ValueError(
            f"{name}: the state dict is of torch.optim.Adam with amsgrad=True. torch "
            "takes the maximum before the bias correction and steepest after it, so "
            "neither maximum gives the other. Start `amsgrad` anew with `tx.init`."
        )
    for key in sorted(has - used):
        raise ValueError(
            f"{name}: torch's parameter {row.slot.title} has {key!r}, for which tx has "
            f"no place at leaf {row.slot.path!r}. {_MORE.get(key, _START)}"
        )
    if has:
        for key in sorted(used - has):
            raise ValueError(
                f"{name}: tx needs {key!r} for leaf {row.slot.path!r}, which torch's "
                f"parameter {row.slot.title} does not have. {_LESS.get(key, _START)}"
            )
    elif row.kind == "SGD" and row.slot.group["dampening"] and used:
        raise ValueError(
            f"{name}: torch's parameter {row.slot.title} has no momentum yet and "
            "dampening is not 0. torch does not dampen the first gradient, and "
            "steepest does. Take one step in torch first."
        )


_START = "Start anew with `tx.init`."
_MORE = {
    "momentum_buffer": "Pass `momentum` to the optimizer.",
    "grad_avg": "Pass `centered=True` to `rmsprop`.",
}
_LESS = {
    "momentum_buffer": "Leave `momentum` out.",
    "grad_avg": "Leave `centered` out.",
}


def factor(name: str, row: Row, rule: Rule) -> float:
    """Our memory is this times torch's.

    Args:
        name: name used in error messages.
        row: a parameter.
        rule: one of its rules with memory.
    """
    if rule.name != "trace":
        return 1.0
    if row.kind == "SGD":
        # buffer <- momentum buffer + (1 - dampening) g; ours is without the factor.
        return 1 / (1 - float(row.slot.group["dampening"]))
    core = find(row.rules, "scale_by_rms", "scale_by_stddev")
    first = row.rules.index(core) if core else 0
    between = row.rules[first : row.rules.index(rule)]
    if any(is_schedule(x) for one in between for x in one.numbers.values()):
        raise ValueError(
            f"{name}: `rmsprop` with momentum accumulates the steps after the learning "
            "rate, torch before it. This is the same only for a constant learning "
            "rate, and tx has a schedule. Use `chain(scale_by_rms(alpha, eps, "
            "eps_in_sqrt=False), trace(momentum), scale_by_learning_rate(schedule))`."
        )
    step = rate(between, None)
    if step == 0:
        raise ValueError(
            f"{name}: the learning rate of `rmsprop` is 0. It multiplies the momentum, "
            "which cannot be converted."
        )
    return 1.0 if step is None else -step


def eps_effects(name: str, rows: Iterable[tuple[Row, np.ndarray]]) -> list[str]:
    """A clause if `eps` is in another place in torch, and it matters.

    Args:
        name: name used in error messages.
        rows: parameters of Adagrad or RAdam, each with its sum or mean of squares.
    """
    del name
    worst, kind = 0.0, ""
    for row, squares in rows:
        v = squares[squares > 0].astype(np.float64)
        core = find(row.rules, *MEMORY[row.kind])
        if core is None or v.size == 0:
            continue
        theirs, ours = float(row.slot.group["eps"]), now(core.numbers["eps"], row.t)
        if row.kind == "Adagrad":
            steps = np.sqrt(v) / (np.sqrt(v) + theirs), np.sqrt(v / (v + ours))
        else:
            c2 = 1 - now(core.numbers["b2"], row.t) ** max(row.t or 1, 1)
            size = np.sqrt(v / c2)
            steps = size / (size + theirs / np.sqrt(c2)), size / (size + ours)
        worst = max(worst, float(np.max(np.abs(steps[0] - steps[1]))))
        kind = row.kind
    if worst < _ROUNDING:
        return []
    place = "outside the square root" if kind == "Adagrad" else "before bias correction"
    return [
        f"torch's {kind} adds eps {place}, and some steps differ by "
        f"{worst:.1g} times the learning rate"
    ]


def _sgd(name: str, row: Row) -> None:
    if float(row.slot.group["dampening"]) >= 1:
        raise ValueError(
            f"{name}: dampening is {row.slot.group['dampening']}, expected a number "
            "below 1: with 1 torch never adds a gradient to the momentum."
        )


def _rmsprop(name: str, row: Row) -> None:
    core = find(row.rules, "scale_by_rms", "scale_by_stddev")
    if core is not None and core.numbers["eps_in_sqrt"] and now(core.numbers["eps"], 0):
        raise ValueError(
            f"{name}: torch's RMSprop adds eps outside the square root, and tx inside "
            "it. Pass `eps_in_sqrt=False` to `rmsprop`."
        )
    if core is not None and "count" in core.shared:
        raise ValueError(
            f"{name}: tx corrects the bias of the mean square, and torch's RMSprop "
            "does not. Leave out `bias_correction`."
        )
    trace = find(row.rules, "trace")
    if trace is not None and is_nesterov(trace):
        raise ValueError(
            f"{name}: torch's RMSprop has no Nesterov momentum, and tx has. Leave out "
            "`nesterov`."
        )


def _adagrad(name: str, row: Row) -> None:
    decay = float(row.slot.group["lr_decay"])
    rates = [r.numbers for r in row.rules if r.name.startswith("scale_by_")]
    if decay and not any(is_schedule(x) for one in rates for x in one.values()):
        raise ValueError(
            f"{name}: torch's Adagrad has lr_decay={decay}, and the learning rate of "
            "tx is constant. Pass a schedule: `adagrad(lambda t: lr / (1 + lr_decay * "
            "t), eps=0.0)`."
        )


def _nadam(name: str, row: Row) -> None:
    """torch's momentum is `b1 (1 - 0.96^(t momentum_decay) / 2)`, ours `b1`."""
    core, t = find(row.rules, "scale_by_adam"), row.t or 0
    if core is None:
        return
    b1 = now(core.numbers["b1"], row.t)
    away = 0.5 * 0.96 ** ((t + 1) * float(row.slot.group["momentum_decay"]))
    product = row.slot.memory.get("mu_product")
    product = b1**t if product is None else float(product)
    if away > 1e-6 or abs(product - b1**t) > 1e-6:
        advice = (
            "Start it anew with `tx.init`, or go on in torch."
            if name == "from_torch"
            else "Leave out `like`: the result then has momentum_decay=1000, and "
            "torch's momentum is constant too."
        )
        raise ValueError(
            f"{name}: torch's NAdam raises its momentum during the run, and it is "
            f"still {away:.1%} below b1 (momentum_decay is "
            f"{row.slot.group['momentum_decay']}, at step {t}); the product of all "
            f"momenta is {product:.3g}, and b1^t is {b1**t:.3g}. steepest's `nadam` "
            f"has a constant momentum. {advice}"
        )


_CHECKS = {"SGD": _sgd, "RMSprop": _rmsprop, "Adagrad": _adagrad, "NAdam": _nadam}


def _title(row: Row) -> str:
    decoupled = row.slot.group.get("decoupled_weight_decay")
    return "AdamW" if row.kind == "Adam" and decoupled else row.kind
