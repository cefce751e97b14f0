"""Exponential decay: closed forms, and Optax at every step."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steepest

from .optax_at_every_step import every, LAST, same_at_every_step, same_for_any_count

PLAIN = dict(init_value=0.8, transition_steps=10, decay_rate=0.5)
OPTIONS = {
    "plain": {},
    "staircase": dict(staircase=True),
    "begin": dict(transition_begin=7),
    "begin, staircase": dict(transition_begin=7, staircase=True),
    "negative begin": dict(transition_begin=-7),
    "end": dict(end_value=0.1),
    "end above the beginning": dict(end_value=2.0),
    "grows": dict(decay_rate=1.3, end_value=3.0),
    "grows for ever": dict(decay_rate=1.05),
    "level": dict(decay_rate=1.0, end_value=0.5),
    "half steps": dict(transition_steps=2.5),
    "alternates": dict(decay_rate=-0.5, staircase=True),
    "whole numbers": dict(init_value=3, decay_rate=2),
}
options = pytest.mark.parametrize("name", OPTIONS)


@options
def test_same_as_optax_at_every_step(name):
    same_at_every_step("exponential_decay", {**PLAIN, **OPTIONS[name]})


@pytest.mark.parametrize("name", ["plain", "begin, staircase", "end"])
def test_same_as_optax_for_any_count(name):
    same_for_any_count("exponential_decay", {**PLAIN, **OPTIONS[name]})


@pytest.mark.parametrize(
    "change",
    [dict(transition_steps=0), dict(transition_steps=-3), dict(decay_rate=0)],
    ids=["no steps", "less than none", "rate 0"],
)
def test_it_stays_where_optax_stays(change):
    schedule = steepest.exponential_decay(**{**PLAIN, **change})
    assert schedule(0) == schedule(LAST) == 0.8


def test_a_step_of_the_stairs_is_a_whole_number():
    """Also compiled, where XLA computes `t / 3` as `t * (1 / 3)`."""
    schedule = steepest.exponential_decay(1.0, 3, 0.5, staircase=True)
    found = jax.jit(jax.vmap(schedule))(jnp.arange(60))
    np.testing.assert_array_equal(found, 0.5 ** (np.arange(60) // 3))


def test_unsigned_and_narrow_counts_do_not_wrap():
    schedule = steepest.exponential_decay(1.0, 1000, 0.5, transition_begin=500)
    for dtype in (jnp.uint8, jnp.int8, jnp.uint32):
        assert schedule(jnp.array(3, dtype)) == 1


@pytest.mark.parametrize(
    "argument, values",
    [
        ("init_value", [0.5, 2.0]),
        ("transition_steps", [4, 8]),
        ("decay_rate", [0.0, 0.5, 1.5]),
        ("transition_begin", [-2, 3]),
        ("end_value", [0.1, 0.5]),
    ],
)
def test_hyperparameters_may_be_mapped_over(argument, values):
    def value(x):
        options = {**PLAIN, "end_value": 0.3, argument: x}
        return steepest.exponential_decay(**options)(12)

    one_by_one = [float(value(x)) for x in values]
    at_once = jax.vmap(value)(jnp.array(values))
    np.testing.assert_allclose(at_once, one_by_one, rtol=1e-5)


def test_the_slope_by_the_rate():
    slope = jax.grad(lambda rate: steepest.exponential_decay(1.0, 10, rate)(20))(0.5)
    np.testing.assert_allclose(slope, 2 * 0.5, rtol=1e-5)


def test_a_negative_rate_between_the_stairs_is_refused():
    """Optax returns NaN."""
    with pytest.raises(ValueError, match=r"exponential_decay: decay_rate is -0\.5"):
        steepest.exponential_decay(1.0, 10, -0.5)


def test_it_falls_by_its_rate():
    values = every(steepest.exponential_decay(1.0, 10, 0.5))
    np.testing.assert_allclose(values[10:] / values[:-10], 0.5, rtol=1e-5)
