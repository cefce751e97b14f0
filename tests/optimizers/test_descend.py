"""An optimizer has a learning rate."""

import inspect

import pytest

import steepest
from steepest import optimizers, UnusualValueWarning

from ._refused import NOT_FINITE, refuses

# `adadelta` and `adafactor` work without one, and `lbfgs` has a line search. Without a
# schedule there is nothing to descend by.
_OTHERS = {"adadelta", "adafactor", "fromage", "lbfgs", "nag", "optimistic_adam"}
_RECIPES = [
    name
    for name, f in inspect.getmembers(optimizers, inspect.isfunction)
    if "learning_rate" in inspect.signature(f).parameters
    and name not in {*_OTHERS, "rprop", "scale_by_rprop"}
]


@pytest.mark.usefixtures("as_users_do")
@pytest.mark.parametrize("name", _RECIPES)
def test_it_should_be_there(name):
    """Without it the steps go uphill, as in Optax, which is rarely intended."""
    with pytest.warns(UnusualValueWarning, match=r"^\w+: learning_rate is None, so"):
        getattr(steepest, name)(None, **({"key": 0} if name == "noisy_sgd" else {}))


@pytest.mark.usefixtures("as_users_do")
def test_nag_refuses_impossible_arguments():
    refuses(steepest.nag, learning_rate=NOT_FINITE)
    refuses(steepest.nag, 0.1, momentum=[1.5, -0.1, "0.9", None])
