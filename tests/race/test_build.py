"""What all functions that make problems of models share."""

import warnings
from functools import partial

import equinox as eqx
import jax
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


def test_accuracy_of_a_single_logit_is_an_error(as_users_do):
    """Its largest logit is always the first: every row would count as class 0."""
    init = lambda key: {"w": jax.random.normal(key, (3, 1))}

    def loss(params, batch):
        x, y = batch
        logits = x @ params["w"]
        return jnp.mean(
            jnp.logaddexp(0, logits[:, 0]) - y.astype(x.dtype) * logits[:, 0]
        ), logits

    says = (
        r"got one logit for each row, of shape \(18, 1\), expected one for each class"
    )
    with pytest.raises(TypeError, match=rf"^Problem\.from_functions: .*{says}"):
        Problem.from_functions(init, loss, (X, X[:, 0].astype(int)), metric="accuracy")


def test_a_metric_without_a_name_is_the_metric():
    init = lambda key: jax.random.normal(key, (3,))
    loss = lambda params, batch: jnp.mean(batch @ params)
    make = partial(Problem.from_functions, init, loss, X, better="lower")
    for metric in (lambda params, batch: loss(params, batch), partial(loss)):
        assert make(metric=metric).measure == "metric"

    def regret(params, batch):
        return loss(params, batch)

    assert make(metric=regret).measure == "regret"


def test_a_mode_that_keeps_its_default_is_noted():
    """With `training=True`, dropout and batch statistics would stay on."""
    init = lambda key: jax.random.normal(key, (3,))
    loss = lambda params, batch: jnp.mean(batch @ params)
    make = partial(Problem.from_functions, init, better="lower", steps=1)
    rows = np.random.default_rng(0).normal(size=(20, 3)).astype(np.float32)

    def trains(params, batch, training=True, rng=None):
        return loss(params, batch)

    key, mode = make(trains, rows).remarks
    assert key.startswith("`loss` has an argument `rng`, which keeps its default")
    assert mode.startswith("`loss` has an argument `training`")
    assert mode.endswith("Rename it `train`, or pass it on from there.")
    assert [x[:8] for x in make(loss, rows, metric=trains).remarks] == 2 * ["`metric`"]

    def fine(params, batch, key, train, deterministic=True):
        return loss(params, batch)

    assert not make(fine, rows, metric=loss).remarks


@pytest.mark.parametrize("size", [0, -4, 2.5])
def test_a_wrong_size_of_evaluation_batches(size, as_users_do):
    init = lambda key: jax.random.normal(key, (3,))
    says = rf"^Problem.from_functions: eval_batch_size is {size}, expected a whole"
    with pytest.raises(ValueError, match=says):
        Problem.from_functions(init, lambda p, x: x @ p, X, eval_batch_size=size)
