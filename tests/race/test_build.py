"""What all functions that make problems of models share."""

import warnings

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

from steepest.race import Problem, race

X = np.ones((20, 3), np.float32)


def _loss(model, batch):
    return jnp.mean(model.weight @ batch.T)


@pytest.mark.parametrize(
    ("option", "says"),
    [
        ("step", r"there is no argument `step`\. Did you mean `steps`\?"),
        ("validate", r"Did you mean `validation`\?"),
        ("zzz", "there is no argument `zzz`. Others: name, .*, batch_size"),
    ],
)
def test_an_unknown_argument(option, says, as_users_do):
    makers = Problem.from_functions, Problem.from_equinox
    for make in makers:
        with pytest.raises(TypeError, match=rf"^Problem\.{make.__name__}: .*{says}"):
            make(lambda key: eqx.nn.Linear(3, 2, key=key), _loss, X, **{option: 3})


def test_a_warning_of_a_model_is_shown_once():
    """Although the race makes the model again and again."""

    def noisy(key):
        warnings.warn("slow", UserWarning, stacklevel=1)
        return eqx.nn.Linear(3, 2, key=key)

    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("always")
        problem = Problem.from_equinox(noisy, _loss, X, steps=2)
        race(problem, ["sgd"], learning_rates=[0.1], seeds=1)
    assert [str(w.message) for w in shown].count("slow") == 1
