"""Schedules from one value to another: closed forms, and Optax at every step."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steepest

from ..unusual import ODD
from .optax_at_every_step import every, LAST, same_at_every_step, same_for_any_count

POLYNOMIAL = [
    dict(init_value=1.0, end_value=0.1, power=1, transition_steps=50),
    dict(init_value=0.0, end_value=3.0, power=2.5, transition_steps=100),
    dict(init_value=1.0, end_value=-1.0, power=0.5, transition_steps=7),
    dict(
        init_value=1e-3, end_value=1.0, power=3, transition_steps=60, transition_begin=9
    ),
    dict(init_value=2.0, end_value=0.5, power=1, transition_steps=0),
    dict(init_value=2.0, end_value=0.5, power=1, transition_steps=-4),
    dict(
        init_value=1.0, end_value=0.5, power=2, transition_steps=9, transition_begin=-3
    ),
    dict(init_value=3, end_value=1, power=1, transition_steps=50),
    dict(init_value=1.0, end_value=0.0, power=1, transition_steps=12.5),
]
LINEAR = [
    dict(init_value=0.0, end_value=1.0, transition_steps=100),
    dict(init_value=1.0, end_value=0.0, transition_steps=30, transition_begin=45),
]
COSINE = [
    dict(init_value=1.0, decay_steps=100),
    dict(init_value=0.3, decay_steps=90, alpha=0.1),
    dict(init_value=0.3, decay_steps=90, alpha=0.2, exponent=2.0),
    dict(init_value=1.0, decay_steps=130, exponent=0.5),
    dict(init_value=1.0, decay_steps=1),
    dict(init_value=1.0, decay_steps=130, alpha=2.0),
    dict(init_value=2, decay_steps=50.5),
]
OPTIONS = [
    *(("polynomial_schedule", options) for options in POLYNOMIAL),
    *(("linear_schedule", options) for options in LINEAR),
    *(("cosine_decay_schedule", options) for options in COSINE),
    ("constant_schedule", dict(value=0.3)),
]
options = pytest.mark.parametrize("name, options", OPTIONS)

# One of each, and other values for each of its arguments.
HYPER = [
    *(
        ("polynomial_schedule", POLYNOMIAL[3], *other)
        for other in [
            ("init_value", [0.5, 2.0]),
            ("end_value", [0.5, 2.0]),
            ("power", [1.0, 2.0]),
            ("transition_steps", [10, 20]),
            ("transition_begin", [0, 3]),
        ]
    ),
    *(
        ("cosine_decay_schedule", COSINE[2], *other)
        for other in [
            ("init_value", [0.5, 2.0]),
            ("decay_steps", [10, 20]),
            ("alpha", [0.0, 0.5]),
            ("exponent", [1.0, 3.0]),
        ]
    ),
    ("constant_schedule", dict(value=0.3), "value", [0.5, 2.0]),
]


@options
def test_same_as_optax_at_every_step(name, options):
    same_at_every_step(name, options)


@options
def test_a_traced_count_is_a_count(name, options):
    schedule = getattr(steepest, name)(**options)
    for count in (0, 7, 119):
        traced = jax.jit(schedule)(jnp.array(count))
        np.testing.assert_allclose(traced, schedule(count), rtol=1e-5, atol=1e-6)


@options
def test_the_last_count_is_finite_and_at_the_end(name, options):
    schedule = getattr(steepest, name)(**options)
    np.testing.assert_allclose(schedule(LAST), schedule(1000), rtol=1e-6)


@pytest.mark.parametrize("count", [7, 7.0, np.int64(7), jnp.array(7, jnp.int8)])
@pytest.mark.parametrize("name, options", [OPTIONS[3], OPTIONS[8]])
def test_any_number_is_a_count(name, options, count):
    schedule = getattr(steepest, name)(**options)
    np.testing.assert_array_equal(schedule(count), schedule(jnp.array(7)))


@pytest.mark.parametrize("name, options", [OPTIONS[3], OPTIONS[8]])
def test_many_counts_at_once(name, options):
    """As used for plotting, and as in Optax."""
    schedule = getattr(steepest, name)(**options)
    np.testing.assert_allclose(schedule(jnp.arange(120)), every(schedule), rtol=1e-6)


@pytest.mark.parametrize("name, options, argument, values", HYPER)
def test_hyperparameters_may_be_mapped_over(name, options, argument, values):
    def value(x):
        return getattr(steepest, name)(**{**options, argument: x})(12)

    one_by_one = [float(value(x)) for x in values]
    at_once = jax.vmap(value)(jnp.array(values))
    np.testing.assert_allclose(at_once, one_by_one, rtol=1e-5)


def test_a_constant_does_not_move():
    schedule = steepest.constant_schedule(0.1)
    assert schedule(0) == schedule(LAST) == 0.1


@pytest.mark.parametrize("power", [1, 2, 3])
def test_polynomial_at_its_ends_and_in_the_middle(power):
    schedule = steepest.polynomial_schedule(5.0, 1.0, power, 10)
    assert schedule(0) == 5
    assert schedule(10) == schedule(11) == 1
    np.testing.assert_allclose(schedule(5), 1 + 4 * 0.5**power, rtol=1e-6)


@pytest.mark.parametrize("power", [0.5, 1, 2])
@pytest.mark.parametrize("n", [3, 7, 41])
def test_polynomial_ends_at_its_end_when_compiled(power, n):
    """XLA computes `t / n` as `t * (1 / n)`, which may be above 1 at the end."""
    schedule = jax.jit(steepest.polynomial_schedule(1.0, 0.0, power, n))
    assert [float(schedule(t)) for t in (n, n + 1)] == [0, 0]


def test_polynomial_waits_for_its_beginning():
    schedule = steepest.polynomial_schedule(5.0, 1.0, 1, 4, transition_begin=10)
    found = [float(schedule(t)) for t in (0, 9, 10, 11, 14, 15)]
    assert found == [5, 5, 5, 4, 1, 1]


def test_polynomial_with_a_late_beginning_sees_every_step():
    """A float32 cannot represent odd numbers above 2**24: subtract first."""
    late = 20_000_000
    schedule = steepest.polynomial_schedule(1.0, 0.0, 1, 10, late)
    found = [float(schedule(jnp.array(late + t))) for t in (4, 5, 6)]
    np.testing.assert_allclose(found, [0.6, 0.5, 0.4], rtol=1e-6)


@pytest.mark.parametrize("steps", [0, -1, -2.5])
def test_polynomial_of_no_steps_stays(steps, caplog):
    with caplog.at_level("INFO", logger="steepest"):
        schedule = steepest.polynomial_schedule(5.0, 1.0, 2, transition_steps=steps)
    assert schedule(0) == schedule(LAST) == 5
    assert f"polynomial_schedule: transition_steps is {steps}" in caplog.text


def test_a_negative_beginning_is_taken_as_zero(caplog):
    with caplog.at_level("INFO", logger="steepest"):
        early = steepest.linear_schedule(1.0, 0.0, 10, -3)
    assert early(5) == steepest.linear_schedule(1.0, 0.0, 10)(5)
    message = "linear_schedule: transition_begin is -3; the transition begins at step 0"
    assert message in caplog.text


def test_unsigned_and_narrow_counts_do_not_wrap():
    """In Optax an unsigned 3 is long after a start at 5."""
    schedule = steepest.linear_schedule(1.0, 0.0, 1000, 5)
    for dtype in (jnp.uint8, jnp.int8, jnp.uint32):
        assert schedule(jnp.array(3, dtype)) == 1
    top = jnp.array(2**32 - 1, jnp.uint32)
    assert schedule(top) == 0


@pytest.mark.parametrize(
    "name, options",
    [("polynomial_schedule", POLYNOMIAL[3]), ("cosine_decay_schedule", COSINE[2])],
)
def test_same_as_optax_for_any_count(name, options):
    same_for_any_count(name, options)


def test_a_constant_is_handed_back_as_it_is():
    for value in (3, jnp.ones(2), np.float16(2)):
        assert steepest.constant_schedule(value)(7) is value


def test_polynomial_of_power_zero_never_leaves():
    """`0 ** 0` is 1: the end value is not reached, as in Optax."""
    schedule = steepest.polynomial_schedule(5.0, 1.0, 0, 4)
    assert schedule(2) == schedule(9) == 5


def test_linear_is_a_straight_line():
    schedule = steepest.linear_schedule(-1.0, 3.0, transition_steps=8)
    found = every(schedule)[:10]
    np.testing.assert_allclose(
        found, [-1, -0.5, 0, 0.5, 1, 1.5, 2, 2.5, 3, 3], atol=1e-6
    )


def test_cosine_at_its_ends_and_in_the_middle():
    schedule = steepest.cosine_decay_schedule(2.0, 10, alpha=0.25)
    assert schedule(0) == 2
    np.testing.assert_allclose(schedule(5), (2 + 0.5) / 2, rtol=1e-6)
    np.testing.assert_allclose([schedule(10), schedule(11)], [0.5, 0.5], rtol=1e-6)


def test_cosine_with_an_exponent_is_a_power_of_the_plain_one():
    plain, cubed = (
        every(steepest.cosine_decay_schedule(1.0, 100, exponent=e)) for e in (1, 3)
    )
    np.testing.assert_allclose(cubed, plain**3, rtol=1e-4, atol=1e-12)


def test_cosine_never_rises():
    assert (jnp.diff(every(steepest.cosine_decay_schedule(1.0, 100))) <= 0).all()


@pytest.mark.parametrize(
    "make, said",
    [
        (
            lambda: steepest.constant_schedule(float("nan")),
            "constant_schedule: value is nan",
        ),
        (
            lambda: steepest.linear_schedule(0.0, 1.0, float("nan")),
            "^linear_schedule: transition_steps is nan",
        ),
        (
            lambda: steepest.polynomial_schedule(0.0, float("nan"), 1, 5),
            "polynomial_schedule: end_value is nan",
        ),
        (
            lambda: steepest.cosine_decay_schedule(1.0, 0),
            "cosine_decay_schedule: decay_steps is 0, expected a number above 0",
        ),
        (
            lambda: steepest.cosine_decay_schedule(1.0, -5.0),
            "cosine_decay_schedule: decay_steps is -5.0, expected a number above 0",
        ),
        (
            lambda: steepest.polynomial_schedule(1.0, 0.1, -1, 5),
            "polynomial_schedule: power is -1, .* number of at least 0",
        ),
        (
            lambda: steepest.linear_schedule(1.0, 0.1, 5, float("inf")),
            "linear_schedule: transition_begin is inf, expected a number that is "
            "finite",
        ),
        (
            lambda: steepest.cosine_decay_schedule(1.0, 5, exponent=-1.0),
            "cosine_decay_schedule: exponent is -1.0, .* number of at least 0",
        ),
    ],
    ids=lambda x: x[:40] if isinstance(x, str) else "said",
)
def test_impossible_arguments_are_refused_by_name(make, said):
    with pytest.raises(ODD, match=said):
        make()


def test_cosine_takes_more_steps_than_an_int32_has():
    schedule = steepest.cosine_decay_schedule(1.0, 10**10)
    np.testing.assert_allclose(jax.jit(schedule)(0), 1.0)
    np.testing.assert_allclose(
        schedule(2**31 - 1), np.cos(np.pi * 0.2147483647 / 2) ** 2
    )


def test_without_end_it_stays_at_its_beginning():
    """As in Optax; `inf / inf` would be NaN."""
    assert float(steepest.linear_schedule(1.0, 0.1, float("inf"))(7)) == 1.0


@pytest.mark.parametrize("steps", [3, 7, 10, 11, 25, 49])
def test_a_compiled_warm_up_begins_at_zero(steps):
    """XLA multiplies by the reciprocal: 3 / 3 was above 1, and the rate below zero."""
    schedule = steepest.linear_schedule(0.0, 0.3, steps)
    assert float(jax.jit(schedule)(jnp.array(0))) == 0.0
