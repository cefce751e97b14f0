"""How a decoupled step is compiled: numbers are traced, schedules are read first."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import jax
import numpy as np
from jaxtyping import PyTree

from .. import check
from ..engine import same_shapes

Stepped = tuple[Any, PyTree]  # (opt_params, theta)
Fixed = tuple[tuple[str, Any], ...]  # by name, and hashable

# What each hyperparameter must be, in all rules that have it.
_WANTED = {
    "eta": check.amount.must,
    "mu": check.fraction.must,
    "beta1": check.fraction.must,
    "beta2": check.fraction.must,
    "eps": check.nonnegative.must,
}


def compiled(
    name: str,
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
        name: name used in error messages.
        step: a function of a module, which alone decides what is compiled.
        opt_params: the state; its last item, or it itself, is the time step.
        theta: the weights.
        updates: what is to be subtracted from them, after the rule has had its say.
        hyper: a number each, or a function of the time step.
    """
    checked(name, **hyper)
    same_shapes(name, theta=theta, updates=updates)
    schedules, numbers = split(hyper)
    return _compiled(name, step, schedules, opt_params, theta, updates, numbers)


def checked(who: str, **hyper: Any) -> None:
    """Refuse impossible numbers; what a schedule will say is not known yet."""
    for name, x in hyper.items():
        if not callable(x):
            _WANTED[name](who, **{name: x})


def state_like(name: str, init: str, names: tuple[str, ...], opt_params: Any) -> None:
    """An error unless the state has these parts, the last of which is the time step.

    Args:
        name: name used in error messages.
        init: the function that makes the state.
        names: of the parts; of one alone, the state is that part.
        opt_params: the state.
    """
    several = isinstance(opt_params, tuple | list)
    parts = opt_params if several else (opt_params,)
    fits = len(parts) == len(names) and several == (len(names) > 1)
    if not fits or not check.is_number(parts[-1]) or np.shape(parts[-1]) != ():
        found = type(opt_params).__name__ + (f" of {len(parts)}" if several else "")
        raise TypeError(
            f"{name}: opt_params is a {found}, expected ({', '.join(names)}). Make it "
            f"with `{init}(theta)`, and then pass on what the last step returned."
        )


def split(named: Mapping[str, Any]) -> tuple[Fixed, dict[str, Any]]:
    """What a call is compiled for, functions and words, and what it is called with."""
    fixed = {k: x for k, x in named.items() if callable(x) or isinstance(x, str)}
    return tuple(fixed.items()), {k: x for k, x in named.items() if k not in fixed}


@partial(jax.jit, static_argnums=(0, 1, 2))
def _compiled(
    who: str,
    step: Callable[..., Stepped],
    schedules: Fixed,
    opt_params: Any,
    theta: PyTree,
    updates: PyTree,
    numbers: Mapping[str, Any],
) -> Stepped:
    time_step = opt_params[-1] if isinstance(opt_params, tuple | list) else opt_params
    read = {name: schedule(time_step) for name, schedule in schedules}
    checked(who, **read)
    return step(opt_params, theta, updates, **numbers, **read)
