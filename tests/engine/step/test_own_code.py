"""Whether a transformation runs steepest's code or the user's."""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
import pytest

import steepest
from steepest.engine.step._own_code import only_own_code
from tests.zoo import over, ZOO

BOX = {"lr": 0.1}


def _user(count):
    return BOX["lr"]


@functools.wraps(steepest.constant_schedule(0.1))
def _in_disguise(count):
    """Its `__module__` is steepest's."""
    return BOX["lr"]


class _Rate(eqx.Module):
    rate: float

    def __call__(self, count):
        return self.rate


# Rows that use functions of the tests: masks, labels, functions for a line search.
OURS = [row for row in ZOO if row.maker.__module__.startswith("steepest.")]


@over([row for row in OURS if not (row.wants or row.random or row.options)])
def test_every_optimizer_is_made_of_our_own_code(row):
    assert only_own_code(row.make().call)


SCHEDULE = steepest.warmup_cosine_decay_schedule(0.0, 0.1, 2, 9)
OWN = {
    "a chain": steepest.chain(steepest.clip(1.0), steepest.adamw(SCHEDULE)),
    "groups": steepest.route({"w": steepest.adam(0.1), ".*": steepest.sgd(SCHEDULE)}),
    "a tree of labels": steepest.partition({"a": steepest.sgd(0.1)}, {"w": "a"}),
    "a mask": steepest.masked(steepest.sgd(0.1), {"w": True}),
    "an array": steepest.sgd(jnp.array(0.1)),
    "a dtype": steepest.adam(0.1, mu_dtype=jnp.bfloat16),
    "a jitted schedule": steepest.sgd(jax.jit(SCHEDULE)),
}
USERS = {
    "a schedule": steepest.sgd(_user),
    "a schedule inside one of ours": steepest.sgd(
        steepest.join_schedules([_user, steepest.constant_schedule(0.1)], [3])
    ),
    "a jitted schedule": steepest.sgd(jax.jit(_user)),
    "a partial one": steepest.sgd(functools.partial(_user)),
    "a wrapped one": steepest.sgd(_in_disguise),
    "a module": steepest.sgd(_Rate(0.1)),
    "a builtin": steepest.sgd(float),
    "a mask": steepest.masked(steepest.sgd(0.1), lambda p: {"w": True}),
    "labels": steepest.partition({"a": steepest.sgd(0.1)}, lambda p: {"w": "a"}),
    "a transformation": steepest.stateless(lambda g, p: g),
    "one of Optax": optax.sgd(0.1),
    "one in a chain": steepest.chain(
        steepest.clip(1.0),
        steepest.GradientTransformation(lambda p: (), lambda g, s, p=None: (g, s)),
    ),
}


@pytest.mark.parametrize("name", OWN)
def test_ours(name):
    assert only_own_code(OWN[name].call)


@pytest.mark.parametrize("name", USERS)
def test_the_users(name):
    assert not only_own_code(steepest.guard(USERS[name]).call)


def test_an_argument_may_be_left_out():
    call = steepest.conditionally_mask(steepest.sgd(0.1), _user).call
    assert not only_own_code(call)
    assert only_own_code(call, ("should_transform_fn",))
