"""Schedules one after the other, and the warm-up before the cosine."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from hypothesis import given, settings, strategies as st

import steepest

LAST = 2**31 - 1  # the largest count there is

WARMUP = [
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
warmups = pytest.mark.parametrize("options", WARMUP)


def _every(schedule):
    return jax.vmap(schedule)(jnp.arange(120))


def _parts(library):
    return [
        library.linear_schedule(0.0, 1.0, 15),
        library.cosine_decay_schedule(2.0, 30, 0.1, 2.0),
        library.polynomial_schedule(3.0, 0.5, 2.0, 20, 5),
        library.constant_schedule(0.25),
    ]


@warmups
def test_warmup_same_as_optax_at_every_step(options):
    with jax.numpy_dtype_promotion("standard"):
        theirs = _every(optax.warmup_cosine_decay_schedule(**options))
    ours = _every(steepest.warmup_cosine_decay_schedule(**options))
    assert ours.dtype == jnp.float32
    np.testing.assert_allclose(ours, theirs, rtol=2e-5, atol=1e-6)


@warmups
def test_warmup_same_as_optax_in_64_bits(options):
    with jax.enable_x64(True):
        with jax.numpy_dtype_promotion("standard"):
            theirs = _every(optax.warmup_cosine_decay_schedule(**options))
        ours = _every(steepest.warmup_cosine_decay_schedule(**options))
        assert ours.dtype == jnp.float64
        np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-15)


def test_joined_same_as_optax_at_every_step():
    with jax.numpy_dtype_promotion("standard"):
        theirs = _every(optax.join_schedules(_parts(optax), [20, 50, 90]))
    ours = _every(steepest.join_schedules(_parts(steepest), [20, 50, 90]))
    np.testing.assert_allclose(ours, theirs, rtol=2e-5, atol=1e-6)


@settings(max_examples=20, deadline=None)
@given(
    boundaries=st.lists(st.integers(0, 50), min_size=1, max_size=3).map(sorted),
    count=st.integers(0, 60),
)
def test_each_schedule_counts_from_its_own_beginning(boundaries, count):
    """The schedule `k` answers with `1000 k` and its own count."""
    parts = [lambda t, k=k: 1000 * k + t for k in range(len(boundaries) + 1)]
    k = sum(count >= b for b in boundaries)
    own = count - ([0, *boundaries])[k]
    joined = steepest.join_schedules(parts, boundaries)
    assert float(joined(count)) == 1000 * k + own


def test_one_schedule_alone_is_itself():
    alone = steepest.linear_schedule(0.0, 1.0, 10)
    joined = steepest.join_schedules([alone], [])
    np.testing.assert_array_equal(_every(joined), _every(alone))


def test_a_boundary_belongs_to_the_later_schedule():
    joined = steepest.join_schedules([lambda t: 1.0, lambda t: 2.0], [5])
    assert [float(joined(t)) for t in (4, 5, 6)] == [1, 2, 2]


def test_boundaries_and_counts_may_be_traced():
    @jax.jit
    def value(boundary, count):
        return steepest.join_schedules(
            [lambda t: 1.0, steepest.linear_schedule(2.0, 3.0, 4)], [boundary]
        )(count)

    assert [float(value(5, t)) for t in (4, 5, 7)] == [1, 2, 2.5]
    assert [float(value(7, t)) for t in (4, 5, 7)] == [1, 1, 2]


def test_many_counts_at_once():
    """As one asks for a plot, and as Optax allows."""
    joined = steepest.join_schedules(_parts(steepest), [20, 50, 90])
    np.testing.assert_allclose(joined(jnp.arange(120)), _every(joined), rtol=1e-6)


def test_warmup_at_its_corners():
    schedule = steepest.warmup_cosine_decay_schedule(0.5, 2.0, 10, 30, end_value=0.2)
    corners = [float(schedule(t)) for t in (0, 5, 10, 20, 30, 31, LAST)]
    np.testing.assert_allclose(corners, [0.5, 1.25, 2, 1.1, 0.2, 0.2, 0.2], rtol=1e-6)


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
        options = {**WARMUP[1], argument: x}
        return steepest.warmup_cosine_decay_schedule(**options)(count)

    one_by_one = [float(value(x)) for x in values]
    at_once = jax.vmap(value)(jnp.array(values))
    np.testing.assert_allclose(at_once, one_by_one, rtol=1e-5)


def test_a_peak_of_zero_is_finite_when_traced_too():
    def value(peak):
        return steepest.warmup_cosine_decay_schedule(0.5, peak, 2, 10)(7)

    assert value(0.0) == 0
    assert jax.jit(value)(0.0) == 0


def test_schedules_and_boundaries_must_fit():
    with pytest.raises(ValueError, match="got 2 schedules and 2 boundaries"):
        steepest.join_schedules([lambda t: t, lambda t: t], [1, 2])


@pytest.mark.parametrize("warmup_steps, decay_steps", [(5, 5), (10, 3)])
def test_the_decay_must_outlast_the_warmup(warmup_steps, decay_steps):
    said = f"decay_steps is {decay_steps} and warmup_steps {warmup_steps}"
    with pytest.raises(ValueError, match=said):
        steepest.warmup_cosine_decay_schedule(0.0, 1.0, warmup_steps, decay_steps)
