"""Warm-ups and what follows them: their corners, and Optax at every step."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steepest

from ..unusual import ODD
from .optax_at_every_step import LAST, same_at_every_step, same_for_any_count

COSINE = [
    dict(init_value=0.0, peak_value=1.0, warmup_steps=10, decay_steps=100),
    dict(
        init_value=0.1,
        peak_value=0.5,
        warmup_steps=20,
        decay_steps=70,
        end_value=0.05,
        exponent=2.0,
    ),
    dict(init_value=0.5, peak_value=1.0, warmup_steps=0, decay_steps=90, end_value=0.2),
    dict(init_value=0.5, peak_value=0.0, warmup_steps=9, decay_steps=50),
    dict(init_value=0.0, peak_value=1.0, warmup_steps=5, decay_steps=110, exponent=0.5),
]
EXPONENTIAL = [
    dict(transition_steps=10, decay_rate=0.5),
    dict(transition_steps=10, decay_rate=0.5, transition_begin=15, staircase=True),
    dict(transition_steps=7, decay_rate=0.9, end_value=0.4, warmup_steps=0),
    dict(transition_steps=0, decay_rate=0.9),
    dict(transition_steps=5, decay_rate=0),
]
CONSTANT = dict(init_value=0.1, peak_value=0.5, warmup_steps=30)
cosines = pytest.mark.parametrize("options", COSINE)


@cosines
def test_cosine_same_as_optax_at_every_step(options):
    same_at_every_step("warmup_cosine_decay_schedule", options)


@pytest.mark.parametrize("options", EXPONENTIAL)
def test_exponential_same_as_optax_at_every_step(options):
    same_at_every_step("warmup_exponential_decay_schedule", {**CONSTANT, **options})


def test_constant_same_as_optax_at_every_step():
    same_at_every_step("warmup_constant_schedule", CONSTANT)


@pytest.mark.parametrize("n", [1, 3])
def test_restarts_same_as_optax_at_every_step(n):
    same_at_every_step("sgdr_schedule", dict(cosine_kwargs=COSINE[1:][:n]))


def test_same_as_optax_for_any_count():
    same_for_any_count("warmup_cosine_decay_schedule", COSINE[1])
    same_for_any_count("warmup_constant_schedule", CONSTANT)
    same_for_any_count("sgdr_schedule", dict(cosine_kwargs=COSINE[:2]))
    options = {**CONSTANT, **EXPONENTIAL[0], "warmup_steps": 3}
    same_for_any_count("warmup_exponential_decay_schedule", options)


@pytest.mark.parametrize("steps", [0, -4])
def test_no_warmup_leaves_the_constant_where_it_began(steps):
    """As in Optax."""
    assert steepest.warmup_constant_schedule(0.5, 1.0, steps)(LAST) == 0.5


def test_cosine_at_its_corners():
    schedule = steepest.warmup_cosine_decay_schedule(0.5, 2.0, 10, 30, end_value=0.2)
    corners = [float(schedule(t)) for t in (0, 5, 10, 20, 30, 31, LAST)]
    np.testing.assert_allclose(corners, [0.5, 1.25, 2, 1.1, 0.2, 0.2, 0.2], rtol=1e-6)


def test_restarts_may_come_from_a_generator():
    schedule = steepest.sgdr_schedule(options for options in COSINE[:2])
    assert float(schedule(100)) == pytest.approx(0.1)


@pytest.mark.parametrize(
    "argument, values",
    [
        ("init_value", [0.2, 0.4]),
        ("peak_value", [0.5, 2.0]),
        ("warmup_steps", [5, 10]),
        ("decay_steps", [40, 80]),
        ("end_value", [0.1, 0.2]),
        ("exponent", [1.0, 3.0]),
    ],
)
@pytest.mark.parametrize("count", [3, 25])
def test_hyperparameters_may_be_mapped_over(argument, values, count):
    def value(x):
        options = {**COSINE[1], argument: x}
        return steepest.warmup_cosine_decay_schedule(**options)(count)

    one_by_one = [float(value(x)) for x in values]
    at_once = jax.vmap(value)(jnp.array(values))
    np.testing.assert_allclose(at_once, one_by_one, rtol=1e-5)


def test_a_peak_of_zero_is_finite_when_traced_too():
    def value(peak):
        return steepest.warmup_cosine_decay_schedule(0.5, peak, 2, 10)(7)

    assert value(0.0) == 0
    assert jax.jit(value)(0.0) == 0


@pytest.mark.parametrize("warmup_steps, decay_steps", [(5, 5), (10, 3), (2.5, 2.0)])
def test_the_decay_must_outlast_the_warmup(warmup_steps, decay_steps):
    said = f"decay_steps is {decay_steps} and warmup_steps is {warmup_steps}"
    with pytest.raises(ValueError, match=said):
        steepest.warmup_cosine_decay_schedule(0.0, 1.0, warmup_steps, decay_steps)


@pytest.mark.parametrize(
    "make, said",
    [
        (
            lambda: steepest.warmup_constant_schedule(0.0, float("nan"), 5),
            "^warmup_constant_schedule: peak_value is nan",
        ),
        (
            lambda: steepest.warmup_constant_schedule(0.0, 1.0, float("inf")),
            "^warmup_constant_schedule: warmup_steps is inf",
        ),
        (
            lambda: steepest.warmup_cosine_decay_schedule(0.0, 1.0, -2, 30),
            "^warmup_cosine_decay_schedule: warmup_steps is -2, .* number of at",
        ),
        (
            lambda: steepest.warmup_cosine_decay_schedule(
                0.0, 1.0, 5, 9, end_value=float("nan")
            ),
            "^warmup_cosine_decay_schedule: end_value is nan",
        ),
        (
            lambda: steepest.warmup_exponential_decay_schedule(0.0, 1.0, -3, 9, 0.5),
            "^warmup_exponential_decay_schedule: warmup_steps is -3",
        ),
        (
            lambda: steepest.warmup_cosine_decay_schedule(
                0.0, 1.0, 5, 9, exponent=float("nan")
            ),
            "^warmup_cosine_decay_schedule: exponent is nan",
        ),
        (
            lambda: steepest.warmup_exponential_decay_schedule(0.0, 1.0, 5, 9, -0.5),
            "^warmup_exponential_decay_schedule: decay_rate is -0.5",
        ),
        (lambda: steepest.sgdr_schedule([]), "^sgdr_schedule: got no cycles"),
        (
            lambda: steepest.sgdr_schedule([COSINE[0], {**COSINE[0], "exponent": -1}]),
            r"^sgdr_schedule: cosine_kwargs\[1\]: exponent is -1, .* number of at",
        ),
    ],
    ids=lambda x: x[1:40] if isinstance(x, str) else "said",
)
def test_impossible_arguments_are_refused_by_name(make, said):
    with pytest.raises(ODD, match=said):
        make()


@pytest.mark.parametrize(
    "options", [dict(init_value=0.0), dict(**COSINE[0], alpha=1.0)], ids=["few", "many"]
)
def test_restarts_take_the_arguments_of_the_cosine(options):
    with pytest.raises(TypeError, match=r"^sgdr_schedule: cosine_kwargs\[0\]: .*argum"):
        steepest.sgdr_schedule([options])
