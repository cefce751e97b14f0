"""Compilation of decoupled steps: numbers are traced, schedules are called first."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import jax
import numpy as np
from jaxtyping import PyTree

from .. import check
from ..core import OptState, ScalarOrSchedule
from ..engine import same_shapes

Stepped = tuple[OptState, PyTree]  # (opt_params, theta)
Fixed = tuple[tuple[str, Any], ...]  # pairs of a name and a hashable value

# The check of each hyperparameter, the same in all rules.
_CHECKS = {
    "eta": check.amount.must,
    "mu": check.fraction.must,
    "beta1": check.fraction.must,
    "beta2": check.fraction.must,
    "eps": check.nonnegative.must,
}


def compiled(
    name: str,
    step: Callable[..., Stepped],
    opt_params: OptState,
    theta: PyTree,
    updates: PyTree,
    **hyper: ScalarOrSchedule,
) -> Stepped:
    """`step(opt_params, theta, updates, **hyper)`, compiled once for all numbers.

    Each new function among the hyperparameters compiles it again: reuse the same
    function, and do not write a new `lambda` at each call.

    Args:
        name: name used in error messages.
        step: a module-level function, since it is part of the compilation key.
        opt_params: the state; the time step is its last item, or the state itself.
        theta: the weights.
        updates: the adjustments that the rule scales and subtracts from the weights.
        hyper: the hyperparameters: numbers, or functions of the time step.
    """
    checked(name, **hyper)
    same_shapes(name, theta=theta, updates=updates)
    schedules, numbers = split(hyper)
    return _compiled(name, step, schedules, opt_params, theta, updates, numbers)


def checked(name: str, **hyper: object) -> None:
    """Check the numbers; the values of schedules are not known yet."""
    for key, x in hyper.items():
        if not callable(x):
            _CHECKS[key](name, **{key: x})


def state_like(
    name: str, init: str, names: tuple[str, ...], opt_params: OptState
) -> None:
    """Check that the state has these parts, the last of which is the time step.

    Args:
        name: name used in error messages.
        init: name of the function that makes the state.
        names: names of the parts; if there is only one, the state is that part.
        opt_params: the state.
    """
    several = isinstance(opt_params, tuple | list)
    parts = opt_params if several else (opt_params,)
    fits = len(parts) == len(names) and several == (len(names) > 1)
    if not fits or not check.is_number(parts[-1]) or np.shape(parts[-1]) != ():
        got = type(opt_params).__name__ + (f" of {len(parts)}" if several else "")
        raise TypeError(
            f"{name}: opt_params is a {got}, expected ({', '.join(names)}). Make it "
            f"with `{init}(theta)`, then pass the state that the last step returned."
        )


def split(named: Mapping[str, object]) -> tuple[Fixed, dict[str, object]]:
    """Split arguments into static ones, functions and strings, and traced ones."""
    fixed = {k: x for k, x in named.items() if callable(x) or isinstance(x, str)}
    return tuple(fixed.items()), {k: x for k, x in named.items() if k not in fixed}


@partial(jax.jit, static_argnums=(0, 1, 2))
def _compiled(
    name: str,
    step: Callable[..., Stepped],
    schedules: Fixed,
    opt_params: OptState,
    theta: PyTree,
    updates: PyTree,
    numbers: Mapping[str, object],
) -> Stepped:
    time_step = opt_params[-1] if isinstance(opt_params, tuple | list) else opt_params
    values = {key: schedule(time_step) for key, schedule in schedules}
    checked(name, **values)
    return step(opt_params, theta, updates, **numbers, **values)
