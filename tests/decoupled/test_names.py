"""The rules by name."""

import jax.numpy as jnp
import numpy as np
import pytest

from steepest import decoupled
from steepest.decoupled import get_opt_init_fn, get_opt_step_fn

RULES = [
    ("adam", decoupled.adam_init, decoupled.adam_step, dict(eta=0.5, beta1=0.5)),
    ("nag", decoupled.nag_init, decoupled.nag_step, dict(eta=0.5, mu=0.5)),
    ("sgd", decoupled.sgd_init, decoupled.sgd_step, dict(eta=0.5)),
]
rules = pytest.mark.parametrize("name, init, step, hyper", RULES)


def _two_steps(init, step, **hyper):
    theta = [jnp.array([3.0, -1.0])]
    state = init(theta)
    for _ in range(2):
        state, theta = step(state, theta, theta, **hyper)
    return theta[0]


@rules
def test_a_name_finds_its_rule(name, init, step, hyper):
    result = _two_steps(get_opt_init_fn(name), get_opt_step_fn(name))
    np.testing.assert_array_equal(result, _two_steps(init, step))


@rules
def test_hyperparameters_are_set_once(name, init, step, hyper):
    result = _two_steps(get_opt_init_fn(name), get_opt_step_fn(name, **hyper))
    np.testing.assert_array_equal(result, _two_steps(init, step, **hyper))


@rules
def test_hyperparameters_may_be_schedules(name, init, step, hyper):
    def eta(time_step):
        return 0.5 / (1 + time_step)

    result = _two_steps(get_opt_init_fn(name), get_opt_step_fn(name, eta=eta))
    np.testing.assert_array_equal(result, _two_steps(init, step, eta=eta))


@rules
def test_what_was_set_can_be_set_again(name, init, step, hyper):
    set_before = get_opt_step_fn(name, eta=0.1)
    result = _two_steps(get_opt_init_fn(name), set_before, **hyper)
    np.testing.assert_array_equal(result, _two_steps(init, step, **hyper))


def test_the_default_is_adam():
    assert get_opt_init_fn() is get_opt_init_fn("adam") is decoupled.adam_init
    result = _two_steps(get_opt_init_fn(), get_opt_step_fn(eta=0.5))
    wanted = _two_steps(decoupled.adam_init, decoupled.adam_step, eta=0.5)
    np.testing.assert_array_equal(result, wanted)


@pytest.mark.parametrize("find", [get_opt_init_fn, get_opt_step_fn])
@pytest.mark.parametrize("name", ["rmsprop", "Adam", ""])
def test_an_unknown_name_is_told_the_names(find, name):
    with pytest.raises(ValueError) as caught:
        find(name)
    message = f"{find.__name__}: opt is {name!r}, expected one of: adam, nag, sgd."
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    "name, known",
    [("adam", "eta, beta1, beta2, eps"), ("nag", "eta, mu"), ("sgd", "eta")],
)
@pytest.mark.parametrize("wrong", ["learning_rate", "theta"])
def test_an_unknown_hyperparameter_is_told_the_hyperparameters(name, known, wrong):
    """When the rule is looked up, not at its first step."""
    with pytest.raises(TypeError) as caught:
        get_opt_step_fn(name, **{wrong: 0.1})
    assert str(caught.value) == (
        f"get_opt_step_fn: {name} has no hyperparameter {wrong!r}, expected one of: "
        f"{known}."
    )
