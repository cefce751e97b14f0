"""The rules by name, as a synapse asks for its own."""

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

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


def get_opt_init_fn(opt: str = "adam") -> Callable[..., Any]:
    """`x_init` of the rule called `opt`.

    Args:
        opt: `adam`, `nag` or `sgd`.
    """
    return _named("get_opt_init_fn", opt).init


def get_opt_step_fn(opt: str = "adam", **hyper: Any) -> Callable[..., Stepped]:
    """`x_step` of the rule called `opt`, with its hyperparameters set.

    Args:
        opt: `adam`, `nag` or `sgd`.
        hyper: those of the rule; a number each, or a function of the time step.

    >>> step = get_opt_step_fn("nag", eta=0.1, mu=0.5)
    >>> step.keywords
    {'eta': 0.1, 'mu': 0.5}
    """
    step = _named("get_opt_step_fn", opt).step
    known = list(inspect.signature(step).parameters)[3:]
    for name in hyper:
        if name not in known:
            raise TypeError(
                f"get_opt_step_fn: {opt} has no hyperparameter {name!r}; "
                f"it has {', '.join(known)}."
            )
    checked("get_opt_step_fn", **hyper)
    return partial(step, **hyper)


def _named(who: str, name: str) -> Decoupled:
    if not isinstance(name, str) or name not in RULES:
        raise ValueError(
            f"{who}: there is no rule {name!r}; there are {', '.join(RULES)}. "
            "Make one of any optimizer with `decoupled.of`."
        )
    return RULES[name]
