"""Schedules in sequence."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from hypothesis import given, settings, strategies as st

import steepest


def _every(schedule):
    return jax.vmap(schedule)(jnp.arange(120))


def _parts(library):
    return [
        library.linear_schedule(0.0, 1.0, 15),
        library.cosine_decay_schedule(2.0, 30, 0.1, 2.0),
        library.polynomial_schedule(3.0, 0.5, 2.0, 20, 5),
        library.constant_schedule(0.25),
    ]


def test_joined_same_as_optax_at_every_step():
    with jax.numpy_dtype_promotion("standard"):
        theirs = _every(optax.join_schedules(_parts(optax), [20, 50, 90]))
    ours = _every(steepest.join_schedules(_parts(steepest), [20, 50, 90]))
    np.testing.assert_allclose(ours, theirs, rtol=2e-5, atol=1e-6)


@settings(max_examples=20)
@given(
    boundaries=st.lists(st.integers(0, 50), min_size=1, max_size=3).map(sorted),
    count=st.integers(0, 60),
)
def test_each_schedule_counts_from_its_own_beginning(boundaries, count):
    """Schedule `k` returns `1000 k` plus its own count."""
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
    """As used for plotting, and as in Optax."""
    joined = steepest.join_schedules(_parts(steepest), [20, 50, 90])
    np.testing.assert_allclose(joined(jnp.arange(120)), _every(joined), rtol=1e-6)


def test_schedules_and_boundaries_must_fit():
    with pytest.raises(ValueError, match="got 2 schedules and 2 boundaries"):
        steepest.join_schedules([lambda t: t, lambda t: t], [1, 2])


@pytest.mark.parametrize(
    "schedules, boundaries, said",
    [
        ([0.1, 0.2], [5], r"schedules\[0\] is a float, expected a function"),
        (len, [], "schedules is a builtin_function_or_method, expected a list"),
        ([len, len], 5, "boundaries is a int, expected a list"),
        ([len, len], ["5"], r"boundaries\[0\] is a str, expected a number"),
        ([len] * 3, [10, 5], r"boundaries are \[10, 5\], expected ascending order"),
    ],
    ids=["numbers", "one function", "one number", "text", "backwards"],
)
def test_what_cannot_be_joined_is_refused(schedules, boundaries, said, as_users_do):
    with pytest.raises((TypeError, ValueError), match=f"^join_schedules: {said}"):
        steepest.join_schedules(schedules, boundaries)


def test_values_keep_their_dtype():
    """Integers stay integers, as in Optax, and a single schedule is not changed."""
    whole = steepest.join_schedules([lambda t: 1, lambda t: 2], [5])
    assert jnp.result_type(whole(7)) == jnp.int32
    assert steepest.join_schedules([lambda t: t], [])(3) == 3


def test_any_two_dtypes_may_be_joined():
    parts = [lambda t: jnp.float16(1), lambda t: jnp.float32(2), lambda t: 3]
    joined = steepest.join_schedules(parts, [5, 9])
    assert [float(joined(t)) for t in (0, 5, 9)] == [1, 2, 3]
    assert joined(0).dtype == jnp.float32


def test_unsigned_and_narrow_counts_do_not_wrap():
    joined = steepest.join_schedules(_parts(steepest), [200, 500, 900])
    for dtype in (jnp.uint8, jnp.int8, jnp.uint32):
        np.testing.assert_allclose(joined(jnp.array(3, dtype)), 3 / 15, rtol=1e-6)
