"""An optimizer has a learning rate."""

import inspect

import pytest

import steepest
from steepest import optimizers

from ._refused import NOT_AMOUNTS, refuses

# `adadelta` and `adafactor` may do without, and `lbfgs` has a line search. Without a
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
def test_it_must_be_there(name):
    """Without it the steps would go up: so does Optax."""
    with pytest.raises(TypeError, match=r"^\w+: learning_rate is None, and a number"):
        getattr(steepest, name)(None, **({"key": 0} if name == "noisy_sgd" else {}))


@pytest.mark.usefixtures("as_users_do")
def test_nag_refuses_impossible_arguments():
    refuses(steepest.nag, learning_rate=NOT_AMOUNTS)
    refuses(steepest.nag, 0.1, momentum=[1.0, -0.1, "0.9", None])
