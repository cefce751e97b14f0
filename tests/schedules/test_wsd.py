"""Warm-up, stable, decay: its corners, its shapes, and its arguments."""

from typing import Any, get_args

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import steepest
from steepest.schedules._wsd import Shape

from ..unusual import ODD

NAN, INF = float("nan"), float("inf")
OPTIONS = dict(
    peak_value=0.8,
    total_steps=100,
    warmup_steps=10,
    decay_steps=30,
    init_value=0.1,
    end_value=0.05,
)
SHAPES = {
    "linear": lambda d: 1 - d,
    "1-sqrt": lambda d: 1 - np.sqrt(d),
    "power": lambda d: (1 - d) ** 1.2,
    "cosine": lambda d: (1 + np.cos(np.pi * d)) / 2,
}
shapes = pytest.mark.parametrize("shape", SHAPES)


def _reference(counts, shape):
    """Part by part, in float64."""
    up = 0.1 + 0.7 * counts / 10
    gone = np.clip((counts - 70) / 30, 0, 1)
    down = 0.05 + 0.75 * SHAPES[shape](gone)
    return np.where(counts < 10, up, down)


def test_all_shapes_are_tried():
    assert tuple(SHAPES) == get_args(Shape)


@shapes
def test_every_step_against_a_slow_reference(shape):
    counts = np.arange(120)
    schedule = steepest.wsd(**OPTIONS, shape=shape)
    want = _reference(counts, shape)
    np.testing.assert_allclose(jax.jit(jax.vmap(schedule))(counts), want, rtol=1e-5)
    np.testing.assert_allclose([schedule(int(t)) for t in counts], want, rtol=1e-5)
    with jax.enable_x64(True):
        found = jax.jit(jax.vmap(schedule))(jnp.arange(120))
        assert found.dtype == jnp.float64
    np.testing.assert_allclose(found, want, rtol=1e-12)


def test_linear_is_three_schedules_of_optax():
    parts = [
        optax.linear_schedule(0.1, 0.8, 10),
        optax.constant_schedule(0.8),
        optax.linear_schedule(0.8, 0.05, 30),
    ]
    theirs = optax.join_schedules(parts, [10, 70])
    ours = steepest.wsd(**OPTIONS, shape="linear")
    for t in range(0, 110, 3):
        np.testing.assert_allclose(ours(t), theirs(t), rtol=1e-5)


@shapes
@pytest.mark.parametrize("total", [3, 7, 49, 100])
def test_corners_are_exact(shape, total):
    schedule = jax.jit(steepest.wsd(1.0, total, 1, total - 1, shape=shape))
    corners = [float(schedule(t)) for t in (0, 1, total, total + 1)]
    assert corners == [0, 1, 0, 0]
    values = [float(schedule(t)) for t in range(1, total + 1)]
    assert values == sorted(values, reverse=True)


@shapes
def test_no_warmup_and_no_decay(shape):
    schedule = steepest.wsd(0.5, 100, 0, 0, init_value=0.1, shape=shape)
    assert [float(schedule(t)) for t in (0, 50, 100, 10**6)] == [0.5] * 4
    schedule = steepest.wsd(0.5, 100, 0, 100, init_value=0.1, shape=shape)
    assert (float(schedule(0)), float(schedule(100))) == (0.5, 0.0)
    schedule = steepest.wsd(0.5, 100, 100, 0, init_value=0.1, shape=shape)
    np.testing.assert_allclose([schedule(0), schedule(50)], [0.1, 0.3], rtol=1e-6)
    assert float(schedule(100)) == 0.5


def test_the_plateau_does_not_depend_on_the_length_of_the_run():
    short, long = (steepest.wsd(0.3, n, 10, n // 5) for n in (100, 1000))
    counts = jnp.arange(80)
    np.testing.assert_array_equal(short(counts), long(counts))


@pytest.mark.parametrize("argument", [*OPTIONS, "exponent"])
@pytest.mark.parametrize("shape", ["power", "cosine"])
def test_hyperparameters_may_be_mapped_over(argument, shape):
    whole = argument.endswith("_steps")
    values = {"total_steps": [60, 90], "exponent": [1.0, 2.0]}
    xs = values.get(argument, [0, 7] if whole else [0.2, 0.6])

    def value(x, count):
        return steepest.wsd(**{**OPTIONS, argument: x}, shape=shape)(count)

    for count in (4, 30, 85):
        one_by_one = [float(value(x, count)) for x in xs]
        found = jax.vmap(lambda x, t=count: value(x, t))(jnp.array(xs))
        np.testing.assert_allclose(found, one_by_one, rtol=1e-5, atol=1e-7)


@shapes
def test_derivatives_are_finite(shape):
    def value(peak, count):
        return steepest.wsd(peak, 100, 10, 30, shape=shape)(count)

    for count in (0, 10, 70, 100, 101):
        assert np.isfinite(jax.grad(value)(0.3, count))


@pytest.mark.parametrize(
    "options, said",
    [
        ({"peak_value": NAN}, "peak_value is nan"),
        ({"init_value": INF}, "init_value is inf"),
        ({"end_value": "0"}, "end_value is a str"),
        ({"total_steps": -1}, "total_steps is -1"),
        ({"warmup_steps": -1}, "warmup_steps is -1"),
        ({"decay_steps": NAN}, "decay_steps is nan"),
        ({"decay_steps": 91}, "warmup_steps is 10 and decay_steps is 91"),
        ({"exponent": -1.0}, "exponent is -1.0"),
        ({"shape": "sqrt"}, "shape is 'sqrt', expected one of: linear, 1-sqrt"),
    ],
)
def test_impossible_arguments_are_refused(options: Any, said, as_users_do):
    with pytest.raises((TypeError, *ODD), match=f"^wsd: {said}"):
        steepest.wsd(**{**OPTIONS, **options})


def test_in_an_optimizer():
    tx = steepest.sgd(steepest.wsd(1.0, 4, 1, 2, shape="linear"))
    p = jnp.ones(())
    state, rates = tx.init(p), []
    for _ in range(5):
        u, state = jax.jit(tx.update)(p, state, p)
        rates.append(-float(u))
    assert rates == [0.0, 1.0, 1.0, 0.5, 0.0]
