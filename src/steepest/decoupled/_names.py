"""Look up update rules by name."""

import inspect
from collections.abc import Callable
from functools import partial

from jaxtyping import PyTree

from ..core import OptState
from ._adam import adam_init, adam_step
from ._compiled import checked, Stepped
from ._nag import nag_init, nag_step
from ._of import Decoupled
from ._sgd import sgd_init, sgd_step

RULES = {
    "adam": Decoupled(adam_init, adam_step),
    "nag": Decoupled(nag_init, nag_step),
    "sgd": Decoupled(sgd_init, sgd_step),
}


def get_opt_init_fn(opt: str = "adam") -> Callable[[PyTree], OptState]:
    """The `init` function of a rule.

    Args:
        opt: `adam`, `nag` or `sgd`.
    """
    return _named("get_opt_init_fn", opt).init


def get_opt_step_fn(opt: str = "adam", **hyper: object) -> Callable[..., Stepped]:
    """The `step` function of a rule, with its hyperparameters set.

    Args:
        opt: `adam`, `nag` or `sgd`.
        hyper: hyperparameters of the rule: numbers, or functions of the time step.

    >>> step = get_opt_step_fn("nag", eta=0.1, mu=0.5)
    >>> step.keywords
    {'eta': 0.1, 'mu': 0.5}
    """
    step = _named("get_opt_step_fn", opt).step
    known = list(inspect.signature(step).parameters)[3:]
    for key in hyper:
        if key not in known:
            raise TypeError(
                f"get_opt_step_fn: {opt} has no hyperparameter {key!r}, expected one "
                f"of: {', '.join(known)}."
            )
    checked("get_opt_step_fn", **hyper)
    return partial(step, **hyper)


def _named(name: str, opt: str) -> Decoupled:
    if not isinstance(opt, str) or opt not in RULES:
        raise ValueError(
            f"{name}: opt is {opt!r}, expected one of: {', '.join(RULES)}. Use "
            "`decoupled.of` for any other optimizer."
        )
    return RULES[opt]
