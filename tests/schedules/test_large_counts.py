"""Counts stop at the largest integer, and every schedule has a value there."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steepest

LAST = 2**31 - 1  # the largest count in int32
TOO_MANY = 2**31

CYCLE = dict(init_value=0.0, peak_value=1.0, warmup_steps=2, decay_steps=10)
# Each schedule once with its end before this count, and once still in progress.
SCHEDULES = {
    "constant_schedule": (lambda s: s.constant_schedule(0.5), 0.5),
    "linear_schedule": (lambda s: s.linear_schedule(1.0, 0.25, 10), 0.25),
    "polynomial_schedule": (lambda s: s.polynomial_schedule(1.0, 0.25, 2, 10), 0.25),
    "cosine_decay_schedule": (lambda s: s.cosine_decay_schedule(1.0, 10, 0.25), 0.25),
    "exponential_decay": (lambda s: s.exponential_decay(1.0, 10, 0.5), 0.0),
    "exponential_decay, stairs": (
        lambda s: s.exponential_decay(1.0, 10, 0.5, 5, True, 0.25),
        0.25,
    ),
    "piecewise_constant_schedule": (
        lambda s: s.piecewise_constant_schedule(1.0, {5: 0.5, 2**32: 0.5}),
        0.5,
    ),
    "piecewise_interpolate_schedule": (
        lambda s: s.piecewise_interpolate_schedule("cosine", 1.0, {5: 0.5, 2**32: 1.0}),
        0.5,
    ),
    "linear_onecycle_schedule": (
        lambda s: s.linear_onecycle_schedule(10, 1.0, 0.3, 0.85, 2.0, 4.0),
        0.125,
    ),
    "cosine_onecycle_schedule": (
        lambda s: s.cosine_onecycle_schedule(10, 1.0, 0.3, 2.0, 4.0),
        0.125,
    ),
    "warmup_constant_schedule": (lambda s: s.warmup_constant_schedule(0.0, 1.0, 9), 1),
    "warmup_cosine_decay_schedule": (
        lambda s: s.warmup_cosine_decay_schedule(**CYCLE, end_value=0.25),
        0.25,
    ),
    "warmup_exponential_decay_schedule": (
        lambda s: s.warmup_exponential_decay_schedule(0.0, 1.0, 5, 9, 0.5),
        0.0,
    ),
    "sgdr_schedule": (
        lambda s: s.sgdr_schedule([CYCLE, {**CYCLE, "end_value": 0.25}]),
        0.25,
    ),
    "join_schedules": (
        lambda s: s.join_schedules(
            [s.constant_schedule(1.0), s.linear_schedule(1.0, 0.25, 9), lambda t: 9.0],
            [10, 2**32],
        ),
        0.25,
    ),
    "wsd": (lambda s: s.wsd(1.0, 20, 5, 5, end_value=0.25), 0.25),
    "wsd, long": (lambda s: s.wsd(1.0, 2**32, 9, 2**32 - 9, shape="linear"), 0.5),
    "linear, long": (lambda s: s.linear_schedule(1.0, 0.0, 2**32), 0.5),
    "cosine, long": (lambda s: s.cosine_decay_schedule(1.0, 2**32), 0.5),
    "exponential, long": (lambda s: s.exponential_decay(1.0, TOO_MANY, 0.25), 0.25),
    "interpolated, long": (
        lambda s: s.piecewise_interpolate_schedule("linear", 1.0, {2**32: 0.0}),
        0.5,
    ),
    "begins late": (lambda s: s.linear_schedule(0.5, 0.0, 10, 2**32), 0.5),
}
COUNTS = {
    "int": TOO_MANY,
    "huge int": 2**70,
    "np.int64": np.int64(TOO_MANY),
    "np.uint64": np.uint64(TOO_MANY),
    "float": float(TOO_MANY),
    "uint32": jnp.array(TOO_MANY, jnp.uint32),
    "float32": jnp.array(TOO_MANY, jnp.float32),
    "int32": jnp.array(LAST, jnp.int32),
}


def test_every_schedule_is_tried():
    named = {x for x in dir(steepest) if x.endswith(("_schedule", "_schedules"))}
    tried = {name.split(",")[0] for name in SCHEDULES} | {"exponential_decay"}
    assert named - {"scale_by_schedule"} <= tried


@pytest.mark.parametrize("name", SCHEDULES)
def test_at_the_largest_count(name):
    make, wanted = SCHEDULES[name]
    schedule = make(steepest)
    for kind, count in COUNTS.items():
        if kind != "huge int" or not name.endswith("long"):
            found = schedule(count)
            np.testing.assert_allclose(found, wanted, rtol=1e-5, err_msg=kind)
    compiled = jax.jit(schedule)
    for kind in ("uint32", "float32", "int32"):
        found = compiled(COUNTS[kind])
        np.testing.assert_allclose(found, wanted, rtol=1e-5, err_msg=kind)


def test_many_large_counts_at_once():
    schedule = steepest.linear_schedule(1.0, 0.25, 10)
    found = schedule(np.array([5, TOO_MANY, 2**40]))
    np.testing.assert_allclose(found, [0.625, 0.25, 0.25], rtol=1e-6)


def _schedule(count):
    return 1.0 / (1.0 + count.astype(float))


TRANSFORMATIONS = {
    "scale_by_schedule": lambda: steepest.scale_by_schedule(_schedule),
    "scale_by_adam": steepest.scale_by_adam,
    "inject_hyperparams": lambda: steepest.inject_hyperparams(steepest.sgd)(_schedule),
}


@pytest.mark.parametrize("name", TRANSFORMATIONS)
def test_a_count_stays_at_the_largest(name):
    """A count that wraps would be negative and restart the schedule."""
    tx = TRANSFORMATIONS[name]()
    p = jnp.ones(3)
    last = lambda x: jnp.full_like(x, LAST) if x.dtype == jnp.int32 else x
    state = jax.tree.map(last, tx.init(p))
    counts = [x for x in jax.tree.leaves(state) if x.dtype == jnp.int32]
    assert counts
    assert all(int(x) == LAST for x in counts)
    u, state = tx.update(p, state, p)
    assert jnp.isfinite(u).all()
    later = [x for x in jax.tree.leaves(state) if x.dtype == jnp.int32]
    assert [int(x) for x in later] == [LAST] * len(counts)
