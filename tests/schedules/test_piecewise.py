"""Schedules given by their boundaries: closed forms, and Optax at every step."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steepest

from .optax_at_every_step import LAST, same_at_every_step, same_for_any_count

SCALES = {
    "none": None,
    "empty": {},
    "one": {10: 0.5},
    "unsorted": {50: 0.5, 20: 0.1, 80: 3.0},
    "zero": {10: 2.0, 30: 0.0},
    "at zero": {0: 0.5, 40: 3.0},
    "negative": {-10: 0.5, 40: 3.0},
    "between steps": {2.5: 0.5, 30.5: 4.0},
}
scales = pytest.mark.parametrize("name", SCALES)


@pytest.mark.parametrize("name", [n for n in SCALES if n not in ("none", "empty")])
def test_constant_same_as_optax_at_every_step(name):
    options = dict(init_value=0.7, boundaries_and_scales=SCALES[name])
    same_at_every_step("piecewise_constant_schedule", options)


@pytest.mark.parametrize("name", ["none", "empty"])
def test_constant_without_boundaries_is_its_value(name):
    assert steepest.piecewise_constant_schedule(0.7, SCALES[name])(LAST) == 0.7


@scales
@pytest.mark.parametrize("way", ["linear", "cosine"])
def test_interpolated_same_as_optax_at_every_step(way, name):
    options = dict(
        interpolate_type=way, init_value=0.7, boundaries_and_scales=SCALES[name]
    )
    same_at_every_step("piecewise_interpolate_schedule", options)


def test_same_as_optax_for_any_count():
    constant = dict(init_value=1.0, boundaries_and_scales=SCALES["one"])
    same_for_any_count("piecewise_constant_schedule", constant)
    same_for_any_count(
        "piecewise_interpolate_schedule", dict(interpolate_type="cosine", **constant)
    )


def test_whole_numbers_become_floats():
    schedule = steepest.piecewise_constant_schedule(2, {5: 3})
    assert jnp.result_type(schedule(7)) == jnp.float32 and schedule(7) == 6


def test_a_boundary_belongs_to_what_follows():
    schedule = steepest.piecewise_constant_schedule(1.0, {5: 0.5})
    assert [float(schedule(t)) for t in (4, 5, LAST)] == [1, 0.5, 0.5]


def test_interpolated_at_its_corners():
    for way in ("linear", "cosine"):
        schedule = steepest.piecewise_interpolate_schedule(way, 1.0, {10: 2.0, 30: 0.1})
        found = [float(schedule(t)) for t in (0, 5, 10, 20, 30, LAST)]
        np.testing.assert_allclose(found, [1, 1.5, 2, 1.1, 0.2, 0.2], rtol=1e-6)


@pytest.mark.parametrize("way", ["linear", "cosine"])
def test_many_counts_at_once(way):
    """Optax mixes the counts with the boundaries, or fails."""
    schedule = steepest.piecewise_interpolate_schedule(way, 1.0, {10: 2.0, 30: 0.1})
    counts = jnp.arange(2 * 20).reshape(2, 20)
    one_by_one = jax.vmap(jax.vmap(schedule))(counts)
    np.testing.assert_allclose(schedule(counts), one_by_one, rtol=1e-6)


def test_before_the_beginning_it_is_the_beginning():
    """Optax returns 0."""
    schedule = steepest.piecewise_interpolate_schedule("linear", 1.0, {10: 2.0})
    assert schedule(-1) == 1


def test_unsigned_counts_do_not_wrap():
    """In Optax an unsigned 7 is before the boundary 5."""
    schedule = steepest.piecewise_constant_schedule(1.0, {5: 0.5})
    assert schedule(jnp.array(7, jnp.uint32)) == 0.5


def test_values_and_scales_may_be_traced():
    @jax.jit
    def value(init, scale):
        parts = {5: scale}
        return (
            steepest.piecewise_constant_schedule(init, parts)(7),
            steepest.piecewise_interpolate_schedule("linear", init, parts)(7),
        )

    np.testing.assert_allclose(value(2.0, 0.25), [0.5, 0.5])


@pytest.mark.parametrize(
    "make, said",
    [
        (
            lambda: steepest.piecewise_constant_schedule(1.0, {5: -0.5}),
            r"piecewise_constant_schedule: boundaries_and_scales\[5\] is -0.5",
        ),
        (
            lambda: steepest.piecewise_constant_schedule(1.0, {5: float("nan")}),
            r"piecewise_constant_schedule: boundaries_and_scales\[5\] is nan",
        ),
        (
            lambda: steepest.piecewise_interpolate_schedule("linear", 1.0, {5: -1.0}),
            r"piecewise_interpolate_schedule: boundaries_and_scales\[5\] is -1",
        ),
        (
            lambda: steepest.piecewise_interpolate_schedule("spline", 1.0),
            "interpolate_type is 'spline', expected one of:? linear, cosine",
        ),
        (
            lambda: steepest.piecewise_constant_schedule(1.0, {float("nan"): 1.0}),
            "boundary 0 in boundaries_and_scales is nan, expected a number that is "
            "finite",
        ),
        (
            lambda: steepest.piecewise_constant_schedule(float("inf")),
            "piecewise_constant_schedule: init_value is inf",
        ),
    ],
    ids=["constant", "nan", "interpolated", "way", "boundary", "value"],
)
def test_impossible_arguments_are_refused_by_name(make, said):
    with pytest.raises(ValueError, match=said):
        make()


@pytest.mark.parametrize("given", [[(5, 0.5)], 5, "ab"], ids=["list", "int", "str"])
def test_boundaries_are_a_dict(given, as_users_do):
    kind = type(given).__name__
    said = rf"boundaries_and_scales is a {kind}, expected a dict {{step"
    with pytest.raises(TypeError, match=said):
        steepest.piecewise_constant_schedule(1.0, given)
