"""Optimizers as JSON: round trips, configs written by hand, and errors."""

import json
import math

import jax.numpy as jnp
import pytest

import steepest
from steepest import contrib, from_config, to_config


def _again(tx):
    return from_config(json.loads(json.dumps(to_config(tx), allow_nan=False)))


def test_written_by_hand():
    assert from_config({"adamw": {"learning_rate": 1e-3}}) == steepest.adamw(1e-3)
    config = {
        "chain": [
            {"clip_by_global_norm": {"max_norm": 1.0}},
            {"sgd": {"learning_rate": 0.1}},
        ]
    }
    assert from_config(config) == steepest.chain(
        steepest.clip_by_global_norm(1.0), steepest.sgd(0.1)
    )
    config = {"contrib.prodigy": {"betas": [0.9, 0.99]}}
    assert from_config(config) == contrib.prodigy(betas=(0.9, 0.99))
    config = {"inject_hyperparams": {"adam": {"learning_rate": 0.1}}}
    assert from_config(config) == steepest.inject_hyperparams(steepest.adam)(0.1)
    config = {"adam": {"learning_rate": 0.1, "mu_dtype": "bfloat16"}}
    assert from_config(config).init(jnp.ones(1))[0].mu.dtype == jnp.bfloat16


def test_two_functions_of_one_name_are_told_apart():
    assert list(to_config(steepest.muon(0.1))) == ["muon"]
    assert list(to_config(contrib.muon(0.1))) == ["contrib.muon"]


@pytest.mark.parametrize(
    "tx",
    [
        steepest.adamw(steepest.warmup_cosine_decay_schedule(0.0, 0.1, 5, 50)),
        steepest.adamw(0.1, mask={"scale": {"w": True}, "b": False}),
        steepest.adamw(0.1, mask={"scale": {"w": True}}),
        steepest.adamw(0.1, mask=[True, False]),
        steepest.adamw(jnp.array(0.1), b1=jnp.float32(0.5)),
        steepest.adam(0.1, mu_dtype=jnp.dtype("bfloat16")),
        steepest.partition({1: steepest.sgd(1.0), "a": steepest.sgd(2.0)}, [1, "a"]),
        steepest.route({"bias": None, ".*": steepest.muon(0.02)}),
        steepest.guard(steepest.adam(0.1), sigmas=math.inf),
        steepest.MultiSteps(
            steepest.sgd(1.0), 2, should_skip_update_fn=steepest.skip_not_finite
        ).gradient_transformation(),
        steepest.named_chain(("clip", steepest.clip(1.0)), ("go", steepest.sgd(0.1))),
        steepest.inject_hyperparams(steepest.sgd)(
            steepest.linear_schedule(1.0, 0.0, 9), momentum=0.9
        ),
        steepest.inject_hyperparams(steepest.adam, static_args="b1")(0.1),
        contrib.schedule_free(steepest.sgd(0.1), 0.1),
        contrib.sam(steepest.sgd(0.1), contrib.normalize()),
    ],
    ids=lambda tx: tx.call.name,
)
def test_there_and_back(tx):
    assert _again(tx) == tx


def test_every_number_is_written():
    config = to_config(steepest.adam(1e-3))
    assert config == {
        "adam": {
            "learning_rate": 1e-3,
            "b1": 0.9,
            "b2": 0.999,
            "eps": 1e-8,
            "eps_root": 0.0,
        }
    }


@pytest.mark.parametrize(
    "config, said",
    [
        ({"adamm": {}}, "config names 'adamm', .* Did you mean 'adam'"),
        ({"adam": {"learning_rate": {"cosine_decay": {}}}}, "learning_rate is a dict"),
        ({"adam": 3}, "config.adam is 3, expected the arguments of adam"),
        ({"adam": {}, "sgd": {}}, "config has 2 keys, expected a dict with one key"),
        (3, "config is 3, expected a dict"),
        ({"constant_schedule": {"value": 1.0}}, "makes a MadeSchedule, expected a"),
        ({"__import__": {"name": "os"}}, "names '__import__', which is not a function"),
        ({"adam": {"learning_rat": 1.0}}, "Did you mean `learning_rate`"),
    ],
    ids=["name", "schedule", "arguments", "two", "number", "kind", "python", "keyword"],
)
def test_what_is_wrong_is_named(config, said, as_users_do):
    with pytest.raises((TypeError, ValueError), match=said):
        from_config(config)


@pytest.mark.parametrize(
    "tx, said",
    [
        (steepest.masked(steepest.sgd(0.1), lambda p: p), r"tx\.mask is the function"),
        (
            steepest.chain(steepest.sgd(lambda t: 0.1)),
            r"tx\[0\]\.learning_rate is the function",
        ),
        (
            steepest.GradientTransformation(lambda p: (), lambda g, s, p=None: (g, s)),
            "tx was not made by a function of steepest",
        ),
    ],
    ids=["mask", "schedule", "pair"],
)
def test_what_json_cannot_hold_is_named(tx, said):
    with pytest.raises(TypeError, match=f"to_config: {said}"):
        to_config(tx)
