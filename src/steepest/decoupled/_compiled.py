"""How a decoupled step is compiled: numbers are traced, schedules are read first."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import jax
from jaxtyping import PyTree

Stepped = tuple[Any, PyTree]  # (opt_params, theta)
Functions = tuple[tuple[str, Callable[..., Any]], ...]  # by name, and hashable


def compiled(
    step: Callable[..., Stepped],
    opt_params: Any,
    theta: PyTree,
    updates: PyTree,
    **hyper: Any,
) -> Stepped:
    """`step(opt_params, theta, updates, **hyper)`, compiled once for all numbers.

    It is compiled again for each other function among the hyperparameters: keep the
    function, rather than write a new `lambda` at each call.

    Args:
        step: a function of a module, which alone decides what is compiled.
        opt_params: the state; its last item, or it itself, is the time step.
        theta: the weights.
        updates: what is to be subtracted from them, after the rule has had its say.
        hyper: a number each, or a function of the time step.
    """
    schedules, numbers = split(hyper)
    return _compiled(step, schedules, opt_params, theta, updates, numbers)


def checked(check: Callable[..., Any], who: str, **hyper: Any) -> None:
    """Refuse impossible numbers; what a schedule will say is not known yet."""
    check(who, **split(hyper)[1])


def split(named: Mapping[str, Any]) -> tuple[Functions, dict[str, Any]]:
    """The functions, for which a call is compiled, and what it is called with."""
    functions = tuple((name, x) for name, x in named.items() if callable(x))
    return functions, {name: x for name, x in named.items() if not callable(x)}


@partial(jax.jit, static_argnums=(0, 1))
def _compiled(
    step: Callable[..., Stepped],
    schedules: Functions,
    opt_params: Any,
    theta: PyTree,
    updates: PyTree,
    numbers: Mapping[str, Any],
) -> Stepped:
    time_step = opt_params[-1] if isinstance(opt_params, tuple | list) else opt_params
    read = {name: schedule(time_step) for name, schedule in schedules}
    return step(opt_params, theta, updates, **numbers, **read)
