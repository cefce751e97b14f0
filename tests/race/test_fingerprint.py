"""Results belong to the same race if and only if everything they depend on is equal."""

import os
import subprocess
import sys
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from steepest.race._fingerprint import (
    differences,
    optimizer_fingerprint,
    race_fingerprint,
    traced,
)
from steepest.race._model import Model
from steepest.race._settings import settings_of
from steepest.race.entrants import entrant

from .small import LINE, ROWS

SETTINGS = settings_of("line", LINE, {}, {})
ENCLOSED = np.ones(4, np.float32)


def _changed(**changes):
    """Which parts differ after a change to the problem."""
    then = race_fingerprint(LINE, SETTINGS)
    return differences(then, race_fingerprint(replace(LINE, **changes), SETTINGS))


@jax.custom_vjp
def _own_slope(x):
    return x


def _other_slope():
    f = jax.custom_vjp(lambda x: x)
    f.defvjp(lambda x: (x, None), lambda _, g: (3 * g,))
    return f


_own_slope.defvjp(lambda x: (x, None), lambda _, g: (2 * g,))


def _loss(slope):
    return lambda p, batch: slope(LINE.loss(p, batch))


DATA = {
    "a number": ROWS + np.where(np.arange(200).reshape(50, 4) == 77, 1e-6, 0),
    "a sign of zero": np.where(np.arange(200).reshape(50, 4) == 77, -0.0, ROWS * 0),
    "the order": ROWS[::-1],
    "the shape": ROWS[:40],
}


@pytest.mark.parametrize("what", DATA)
def test_every_byte_of_the_data_counts(what):
    data = DATA[what].astype(np.float32)
    if what == "a sign of zero":
        then = race_fingerprint(replace(LINE, data=ROWS * 0), SETTINGS)
        now = race_fingerprint(replace(LINE, data=data), SETTINGS)
        assert differences(then, now) == ["`data`"]
    else:
        assert "`data`" in _changed(data=data)


def test_the_same_data_elsewhere_is_the_same():
    assert _changed(data=jnp.asarray(ROWS)) == []
    assert _changed(data=np.asfortranarray(ROWS)) == []


CHANGES = {
    "loss": ({"loss": lambda p, b: 1.5 * LINE.loss(p, b)}, ["`loss`"]),
    "init": ({"init": lambda key: {**LINE.init(key), "b": jnp.array(2.0)}}, ["`init`"]),
    "batches": (
        {"batches": lambda key, data: LINE.batches(key, data)[::-1]},
        ["`batches`"],
    ),
    "metric": ({"metric": lambda p, d: 2 * LINE.metric(p, d)}, ["`metric`"]),
    "no metric": ({"metric": None}, ["`metric`"]),
    "adjust": ({"adjust": lambda p, b: p}, ["`adjust` (none then"]),
}


@pytest.mark.parametrize("what", CHANGES)
def test_another_function_is_named(what):
    change, names = CHANGES[what]
    result = _changed(**change)
    assert len(result) == len(names)
    assert all(map(str.startswith, result, [name.split(" (")[0] for name in names]))


def test_a_function_is_what_it_computes():
    """Not its name, file or address, which differ between processes."""
    assert _changed(loss=lambda p, b: jnp.mean((b @ p["w"] - p["b"]) ** 2)) == []

    @jax.jit
    def one(x):
        return x + 1

    @jax.jit
    def two(y):
        return y + 1

    assert traced(one, 1.0) == traced(two, 1.0) != traced(lambda x: x + 2, 1.0)
    printed = lambda x: jax.debug.callback(lambda _: None, x) or x
    again = lambda x: jax.debug.callback(lambda _: None, x) or x
    assert traced(printed, 1.0) == traced(again, 1.0)


def test_what_a_function_encloses_is_a_part_of_it():
    """Also in a nested `jit`, which the printed program does not show."""
    for compiled in (lambda f: f, jax.jit):
        of = lambda x, how=compiled: traced(how(lambda p: jnp.sum(p * x)), ENCLOSED)
        assert of(ENCLOSED) == of(ENCLOSED.copy())
        assert of(ENCLOSED) != of(ENCLOSED + 1)
        assert of(jnp.asarray(ENCLOSED)) != of(jnp.asarray(ENCLOSED) + 1)
    assert traced(lambda x: x * 0.1, 1.0) != traced(lambda x: x * 0.100001, 1.0)
    keyed = lambda seed: traced(lambda: jax.random.normal(jax.random.key(seed)))
    assert keyed(0) != keyed(1)


def test_a_gradient_of_ones_own_is_seen():
    then = race_fingerprint(replace(LINE, loss=_loss(_own_slope)), SETTINGS)
    now = race_fingerprint(replace(LINE, loss=_loss(_other_slope())), SETTINGS)
    assert differences(then, now) == ["`loss`"]


def test_a_loss_without_a_gradient_is_no_obstacle():
    whole = lambda p, b: jax.lax.while_loop(
        lambda x: x > 1, lambda x: x / 2, LINE.loss(p, b)
    )
    assert _changed(loss=whole) == ["`loss`"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"steps": 13}, "steps (12 then, 13 now)"),
        ({"seeds": (0, 2)}, "seeds (0, 1, 2 then, 0, 2 now)"),
        (
            {"learning_rates": (0.5,)},
            "learning rates (0.001, 0.1, 1e+30 then, 0.5 now)",
        ),
        ({"schedule": "0 * rate"}, "schedule (None then, 0 * rate now)"),
    ],
    ids=lambda x: next(iter(x)) if isinstance(x, dict) else "",
)
def test_settings_are_shown(change, message):
    then = race_fingerprint(LINE, SETTINGS)
    assert differences(then, race_fingerprint(LINE, replace(SETTINGS, **change))) == [
        message
    ]


def test_versions_and_configuration_are_shown(monkeypatch):
    then = race_fingerprint(LINE, SETTINGS)
    monkeypatch.setattr("steepest.__version__", "9.9")
    with jax.threefry_partitionable(False):
        result = differences(then, race_fingerprint(LINE, SETTINGS))
    assert result == [
        "version of steepest (0.1.0 then, 9.9 now)",
        "jax_threefry_partitionable (True then, False now)",
    ]


def _of(name, problem=LINE, **more):
    how = {"steps": 12, "schedule": None, **more}
    return optimizer_fingerprint(Model(problem, entrant(name, **how)))


def test_an_optimizer_is_what_it_computes():
    assert _of("adam") == _of("adam(b1=0.9)")
    names = ["adam", "adam(b1=0.8)", "sgd", "lookahead(adam)"]
    assert len({*map(_of, names)}) == 4
    assert _of("adam", schedule="cosine_decay_schedule(rate, steps)") != _of("adam")


def test_one_that_cannot_take_part_is_left_to_the_race():
    local = replace(LINE, adjust=lambda params, batch: params)
    assert _of("lbfgs", local).startswith("none, ")


PRINTS = """
from tests.race.test_fingerprint import *
from tests.race.test_fingerprint import _of
print(race_fingerprint(LINE, SETTINGS), [_of(n) for n in {names}])
"""


def test_another_process_finds_the_same():
    """There, sets have another order, addresses differ, and nothing is cached."""
    names = ["muon", "schedule_free_adamw", "adam"]
    for name in names[::-1]:
        _of(name)
    mine = f"{race_fingerprint(LINE, SETTINGS)} {[_of(name) for name in names]}"
    done = subprocess.run(
        [sys.executable, "-c", PRINTS.format(names=names)],
        env=os.environ | {"PYTHONHASHSEED": "7"},
        capture_output=True,
        text=True,
    )
    assert done.stdout.strip() == mine, done.stderr
