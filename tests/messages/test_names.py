"""Errors name the function that the user called, and the argument as passed to it."""

import inspect
import re
import warnings
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import pytest

import steepest
from steepest import contrib, lift, Rule

BAD = (float("inf"), -1.5, "no", 2.5)  # each impossible or unusual for many arguments
# Messages that are not about one argument, or only about a part of it.
OTHER = r"(a pattern|got|`|\w+\[0\])"


def _optimizers() -> dict[str, Callable[..., Any]]:
    """All functions that make a transformation with a learning rate."""
    found: dict[str, Callable[..., Any]] = {}
    for door in (steepest, contrib):
        for name, f in inspect.getmembers(door, inspect.isfunction):
            is_maker = hasattr(f, "__wrapped__")
            if is_maker and "learning_rate" in inspect.signature(f).parameters:
                found.setdefault(name, f)
    return found


OPTIMIZERS = _optimizers()
ARGUMENTS = {
    "base_optimizer": steepest.sgd(0.1),
    "inner": steepest.scale_by_adam(),
    **dict.fromkeys(("key", "seed"), 0),
}


def _said(f: Callable[..., Any], arguments: dict[str, Any]) -> str:
    """The first error or warning of a call, or nothing."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            f(**arguments)
        except (TypeError, ValueError, UserWarning) as error:
            return str(error)
    return ""


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_an_optimizer_says_what_the_user_wrote(name, as_users_do):
    """Also if a transformation inside it has another name for the argument."""
    f = OPTIMIZERS[name]
    parameters = inspect.signature(f).parameters
    needed = {k: 0.001 + i for i, k in enumerate(parameters)}
    needed = {
        k: ARGUMENTS.get(k, needed[k])
        for k, x in parameters.items()
        if x.default is x.empty or k == "key"
    }
    about = set()
    for parameter in parameters:
        for bad in BAD:
            said = _said(f, {**needed, parameter: bad})
            if said:
                assert re.match(rf"{name}: ({parameter}|{OTHER})(?=\W)", said), said
                about.add(parameter)
    assert "learning_rate" in about


def test_the_function_that_the_user_called_first():
    with pytest.raises(ValueError, match=r"^sgd: momentum is inf, expected"):
        steepest.sgd(0.1, momentum=float("inf"))
    with pytest.raises(ValueError, match=r"^mine: rate is inf, expected"):
        mine(float("inf"))
    with pytest.raises(ValueError, match=r"^sgd: learning_rate is inf, expected"):
        steepest.chain(steepest.clip(1.0), steepest.sgd(float("inf")))


@steepest.transformation
def mine(rate):
    return steepest.chain(steepest.clip(1.0), steepest.adamw(rate))


def test_a_value_that_several_arguments_have_keeps_its_first_name():
    """Which of them was meant is not known."""
    half = 1.5
    with pytest.warns(steepest.UnusualValueWarning, match=r"^scale_by_sm3: b1 is 1.5"):
        steepest.sm3(half, momentum=half)


def test_steps_name_the_optimizers_of_a_chain(as_users_do):
    params = {"w": jnp.ones(3)}
    tx = steepest.chain(steepest.clip(1.0), mine(0.1), steepest.adamw(0.1))
    state = tx.init(params)
    with pytest.raises(ValueError, match=r"^mine, adamw: leaf \['w'\] has shape"):
        tx.update({"w": jnp.ones(2)}, state, params)
    with pytest.raises(ValueError, match=r"^clip, mine, adamw: the updates are None"):
        tx.update(None, state, params)
    with pytest.raises(ValueError, match=r"^mine: `update` needs `params`"):
        tx.update(params, state)


@pytest.mark.parametrize(
    "wrapped",
    [
        steepest.guard(steepest.adamw(0.1)),
        steepest.MultiSteps(steepest.adamw(0.1), 2),
        steepest.multi_transform({"all": steepest.adamw(0.1)}, "all"),
        steepest.inject_hyperparams(steepest.adamw)(0.1),
    ],
    ids=["guard", "MultiSteps", "multi_transform", "inject_hyperparams"],
)
def test_what_is_around_an_optimizer_does_not_change_its_name(wrapped, as_users_do):
    """Also if it is made again, while the function around it runs."""
    params = {"w": jnp.ones(3)}
    with pytest.raises(ValueError, match=r"^adamw: `update` needs `params`"):
        wrapped.update(params, wrapped.init(params))


def test_a_rule_without_an_optimizer_has_its_own_name():
    tx = lift(Rule("decayed", lambda g, p: g + p))
    with pytest.raises(ValueError, match=r"^decayed: `update` needs `params`"):
        tx.update(jnp.ones(3), tx.init(jnp.ones(3)))
