"""Unusual numbers give the same results as in Optax.

If a number is almost certainly a mistake, there is a warning.
"""

import math
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import steepest

from ._calls import loose

P = {"w": jnp.linspace(-0.6, 0.8, 6).reshape(3, 2)}
GS = [jax.tree.map(lambda x, k=k: x * k + 0.3, P) for k in (1.0, -0.5, 0.8)]
LOSS = lambda p: sum(jnp.sum(x * x) for x in jax.tree.leaves(p))

# Plausible: no warning.
QUIET = {
    "ascent": lambda m: m.sgd(-1.0),
    "ascent by a link": lambda m: m.scale_by_learning_rate(-0.1),
    "ascent of Fromage": lambda m: m.fromage(-0.1),
    "ascent of DAdapt": lambda m: m.contrib.dadapt_adamw(-0.1),
    "ascent of MADGRAD": lambda m: m.contrib.madgrad(-0.1),
    "ascent of Momo": lambda m: m.contrib.momo(-0.1),
    "ascent of Rprop": lambda m: m.rprop(-0.1),
    "ascent, free of schedules": lambda m: m.contrib.schedule_free_sgd(-0.1),
    "a decay that pushes": lambda m: m.adamw(0.1, weight_decay=-0.1),
    "the same in a link": lambda m: m.add_decayed_weights(-0.1),
    "no second moment": lambda m: m.adam(0.1, b1=0.0, b2=1.0),
    "a trace of all": lambda m: m.ema(1.0, debias=False),
    "a mean of all": lambda m: m.lion(0.1, b1=1.0),
    "any loss will do": lambda m: m.polyak_sgd(f_min=-math.inf),
}
# Rarely intended: a warning.
WARNED = {
    "negative momentum": lambda m: m.sgd(0.1, momentum=-0.1),
    "growing momentum": lambda m: m.trace(1.5),
    "negative mean": lambda m: m.adam(0.1, b1=-0.1),
    "growing squares": lambda m: m.adam(0.1, b2=1.5),
    "negative floor": lambda m: m.adam(0.1, eps=-0.1),
    "negative floor in RMSProp": lambda m: m.rmsprop(
        0.1, eps=-0.001, eps_in_sqrt=False
    ),
    "below zero": lambda m: m.adagrad(0.1, initial_accumulator_value=-0.1),
    "full from the start": lambda m: m.adagrad(0.1, initial_accumulator_value=math.inf),
    "nothing is clipped": lambda m: m.clip_by_block_rms(-0.5),
    "Adafactor clips nothing": lambda m: m.adafactor(0.1, clipping_threshold=-1.0),
    "all is turned": lambda m: m.clip_by_global_norm(-0.5),
    "one value": lambda m: m.clip(-0.5),
    "no floor of the norm": lambda m: m.fromage(0.1, min_norm=-0.1),
    "no floor of the ratio": lambda m: m.lars(0.1, eps=-0.001),
    "Rprop turned round": lambda m: m.rprop(0.1, eta_minus=1.5, eta_plus=0.5),
    "Rprop that stops": lambda m: m.rprop(0.1, max_step_size=0.0),
    "no learning rate": lambda m: m.adam(None),
    "no scaling": lambda m: m.polyak_sgd(scaling=None),
    "SM3 that forgets": lambda m: m.sm3(0.1, momentum=-0.1),
    "Novograd that grows": lambda m: m.novograd(0.1, b1=1.5),
    "RAdam below zero": lambda m: m.radam(0.1, b1=-0.1),
}


def _steps(make, m):
    tx, p, found = make(m), P, []
    state = tx.init(p)
    update = jax.jit(tx.update)
    extra = {"value": LOSS(p)} if make in LOSSES else {}
    for g in GS:
        updates, state = update(g, state, p, **extra)
        found.append(updates)
        p = m.apply_updates(p, updates)
    return found


LOSSES = [QUIET["any loss will do"], QUIET["ascent of Momo"], WARNED["no scaling"]]


def _same(make):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ours = _steps(make, steepest)
        with loose():
            theirs = _steps(make, optax)
    for x, y in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
        np.testing.assert_allclose(x, y, rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("name", QUIET)
def test_plausible_values(name, as_users_do):
    QUIET[name](steepest)  # a warning would raise here
    _same(QUIET[name])


@pytest.mark.parametrize("name", WARNED)
def test_unusual_values(name, as_users_do):
    with pytest.warns(steepest.UnusualValueWarning):
        WARNED[name](steepest)
    _same(WARNED[name])


def test_a_schedule_may_be_filled_in_later(as_users_do):
    tx = steepest.scale_by_schedule(None)
    state = tx.init(P)
    with pytest.raises(TypeError, match="scale_by_schedule: step_size_fn is None, exp"):
        tx.update(P, state, P)


def test_one_line_silences_all():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", steepest.UnusualValueWarning)
        steepest.adam(0.1, b1=1.5)


@pytest.mark.parametrize("rate", [math.nan, math.inf, -math.inf])
def test_impossible_values_are_refused(rate):
    with pytest.raises(ValueError, match="learning_rate is"):
        steepest.adam(rate)
    with pytest.raises(ValueError, match="b1 is"):
        steepest.adam(0.1, b1=rate)


def test_no_root_of_a_negative_number():
    """Optax returns NaN."""
    for make in (steepest.scale_by_adam, steepest.scale_by_belief):
        with pytest.raises(
            ValueError, match=r"eps_root is -0\.1, expected a number of"
        ):
            make(eps_root=-0.1)
    for make in (steepest.scale_by_rms, steepest.scale_by_rss, steepest.adadelta):
        with pytest.raises(
            ValueError, match=r"eps is -0\.1, expected a number of at least"
        ):
            make(eps=-0.1)
