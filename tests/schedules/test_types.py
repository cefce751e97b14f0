"""What every schedule returns: a float that does not promote the params."""

import inspect

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import steepest

CYCLE = dict(init_value=0.0, peak_value=1.0, warmup_steps=3, decay_steps=10)
SCHEDULES = {
    "constant_schedule": (0.1,),
    "cosine_decay_schedule": (1.0, 10),
    "cosine_onecycle_schedule": (10, 1.0),
    "exponential_decay": (1.0, 10, 0.5),
    "join_schedules": ([lambda count: 0.3, lambda count: 0.1], [3]),
    "linear_onecycle_schedule": (10, 1.0),
    "linear_schedule": (1.0, 0.1, 10),
    "piecewise_constant_schedule": (2, {3: 2}),
    "piecewise_interpolate_schedule": ("linear", 1, {5: 0}),
    "polynomial_schedule": (1, 0, 2, 10),
    "sgdr_schedule": ([CYCLE],),
    "warmup_constant_schedule": (0.0, 1.0, 5),
    "warmup_cosine_decay_schedule": (0.0, 1.0, 5, 10),
    "warmup_exponential_decay_schedule": (0.0, 1.0, 5, 10, 0.5),
    "wsd": (1.0, 10, 2, 3),
}
COUNTS = {
    "int": lambda: 4,
    "np.int32": lambda: np.int32(4),
    "np.int64": lambda: np.int64(4),
    "int32": lambda: jnp.asarray(4, jnp.int32),
    "int64": lambda: jnp.asarray(4),
    "uint8": lambda: jnp.asarray(4, jnp.uint8),
    "many": lambda: jnp.arange(6, dtype=jnp.int32),
    "float32": lambda: jnp.asarray(4, jnp.float32),
    "float": lambda: 4.0,
}
schedules = pytest.mark.parametrize("name", SCHEDULES)
x64 = pytest.mark.parametrize("x64", [False, True], ids=["x32", "x64"])


def _made(name, library=steepest):
    return getattr(library, name)(*SCHEDULES[name])


def test_every_schedule_is_here():
    doors = vars(steepest.schedules).keys() | dir(steepest.schedules)
    makers = {x for x in doors if inspect.isfunction(getattr(steepest.schedules, x))}
    made = {x for x in makers if not x.startswith(("_", "inject"))}
    assert made == SCHEDULES.keys()


@schedules
@x64
@pytest.mark.parametrize("count", COUNTS)
def test_float32_params_stay_float32(name, count, x64):
    """In Optax most schedules promote them under x64, if the count is an int64."""
    with jax.enable_x64(x64):
        p, count = jnp.ones((), jnp.float32), COUNTS[count]()
        assert (p - _made(name)(count) * p).dtype == jnp.float32


@schedules
@pytest.mark.parametrize("count", ["int", "np.int32", "int32", "many"])
def test_float64_params_get_all_digits(name, count):
    """In Optax some schedules are float32 if the count is an int32."""
    with jax.enable_x64(True):
        p, k = jnp.ones((), jnp.float64), COUNTS[count]()
        exact = jnp.asarray(k, jnp.float64)
        found, want = p * _made(name)(k), p * _made(name)(exact)
        np.testing.assert_allclose(found, want, rtol=1e-14)


@schedules
def test_a_float32_carry_may_be_multiplied_by_it_under_x64(name):
    schedule = _made(name)

    def step(p, count):
        return p - schedule(count) * p, None

    with jax.enable_x64(True):
        counts = jnp.arange(6, dtype=jnp.int32)
        p, _ = jax.lax.scan(step, jnp.ones((), jnp.float32), counts)
    assert p.dtype == jnp.float32


@schedules
@pytest.mark.parametrize("count", COUNTS)
def test_it_is_a_float_and_weakly_typed_wherever_optax_s_is(name, count):
    ours = jnp.asarray(_made(name)(COUNTS[count]()))
    assert jnp.issubdtype(ours.dtype, jnp.floating)
    if hasattr(optax, name) and count != "many":
        with jax.numpy_dtype_promotion("standard"):
            theirs = jnp.asarray(_made(name, optax)(COUNTS[count]()))
        assert ours.weak_type or not theirs.weak_type
        assert ours.dtype == theirs.dtype
