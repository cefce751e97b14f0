"""Outside `jit`, the user's functions run in every step, with concrete values."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steepest

P = {"w": jnp.ones(2)}
SGD = steepest.sgd(1.0)


class Seen:
    """A user's function that uses `if` on its argument, and an object that changes."""

    def __init__(self, answer):
        self.answer, self.calls = answer, 0

    def __call__(self, count, *_, **__):
        assert not isinstance(count, jax.core.Tracer)
        self.calls += 1
        return self.answer if count >= 0 else None

    def rate(self):
        """A transformation that calls it."""
        return steepest.chain(steepest.sgd(self))


def _steps(tx, n=1):
    state = tx.init(P)
    for _ in range(n):
        u, state = tx.update(P, state, P)
    return u, state


WRAPPERS = {
    "apply_if_finite": lambda tx: steepest.apply_if_finite(tx, 2),
    "guard": lambda tx: steepest.guard(tx, window=2),
    "conditionally_mask": lambda tx: steepest.conditionally_mask(tx, lambda t: True),
    "conditionally_transform": lambda tx: steepest.conditionally_transform(
        tx, lambda t: t < 9
    ),
    "MultiSteps": lambda tx: steepest.MultiSteps(tx, 1).gradient_transformation(),
    "flatten": steepest.flatten,
    "mechanize": steepest.contrib.mechanize,
    "sam": lambda tx: steepest.contrib.sam(tx, steepest.sgd(0.1), sync_period=1),
    "inject_hyperparams": lambda tx: steepest.inject_hyperparams(
        lambda c: steepest.chain(tx, steepest.scale(c))
    )(c=1.0),
    "galore": lambda tx: steepest.contrib.scale_by_galore(1, base_optimizer=tx),
    "several": lambda tx: steepest.guard(steepest.apply_if_finite(tx, 2)),
}


@pytest.mark.parametrize("name", WRAPPERS)
def test_a_schedule_inside_is_asked_in_every_step(name):
    schedule = Seen(0.5)
    tx = WRAPPERS[name](schedule.rate())
    state = tx.init(P)
    u, state = tx.update(P, state, P)
    assert np.any(u["w"]) and schedule.calls == 1
    schedule.answer = 0.0
    u, state = tx.update(P, state, P)
    assert schedule.calls == 2
    if name != "mechanize":  # its own factor still moves the params
        assert not np.any(u["w"])


@pytest.mark.parametrize("name", WRAPPERS)
def test_inside_jit_it_is_the_same(name):
    tx = WRAPPERS[name](steepest.sgd(lambda t: 0.5 / (1 + t.astype(float))))
    eager, state = _steps(tx, 3)
    step, carry = jax.jit(tx.update), tx.init(P)
    for _ in range(3):
        u, carry = step(P, carry, P)
    same = lambda a, b: np.testing.assert_allclose(a, b, 1e-6)
    jax.tree.map(same, (eager, state), (u, carry))


@pytest.mark.parametrize("name", ["conditionally_mask", "conditionally_transform"])
def test_a_condition_may_change_its_mind(name):
    condition = Seen(True)
    tx = getattr(steepest, name)(SGD, condition)
    state = tx.init(P)
    u, state = tx.update(P, state, P)
    assert u["w"].tolist() == [-1, -1]
    condition.answer = False
    u, state = tx.update(P, state, P)
    rest = 0 if name == "conditionally_mask" else 1
    assert u["w"].tolist() == [rest, rest] and condition.calls == 2


def test_injected_schedules_and_factories_may_change_their_mind():
    rate, used = Seen(0.5), []

    def factory(learning_rate):
        used.append("large" if learning_rate > 0.1 else "small")  # not if it is traced
        return steepest.sgd(learning_rate)

    tx = steepest.inject_hyperparams(factory)(learning_rate=rate)
    state = tx.init(P)
    u, state = tx.update(P, state, P)
    rate.answer = 0.25
    u, state = tx.update(P, state, P)
    assert u["w"].tolist() == [-0.25, -0.25]
    rate.answer = 0.0625
    tx.update(P, state, P)
    assert used[-2:] == ["large", "small"]


def test_how_often_may_change():
    every, skip = Seen(2), Seen((False, ()))
    tx = steepest.MultiSteps(
        SGD, every, should_skip_update_fn=lambda u, t, p: skip(t)
    ).gradient_transformation()
    state = tx.init(P)
    u, state = tx.update(P, state, P)
    assert not np.any(u["w"])
    every.answer = 1
    u, state = tx.update(P, state, P)
    assert np.any(u["w"])
    skip.answer = True, ()
    u, state = tx.update(P, state, P)
    assert not np.any(u["w"])


def test_an_extra_argument_may_be_used_in_an_if():
    double = lambda g, s, p=None, *, twice=False: (2 * g["w"] if twice else g["w"], s)
    tx = steepest.GradientTransformationExtraArgs(
        lambda p: (), lambda g, s, p=None, **extra: ({"w": double(g, s, **extra)[0]}, s)
    )
    for wrap in (
        WRAPPERS["apply_if_finite"],
        WRAPPERS["guard"],
        WRAPPERS["MultiSteps"],
    ):
        outer = wrap(tx)
        u, _ = outer.update(P, outer.init(P), P, twice=True)
        assert u["w"].tolist() == [2, 2]


@pytest.mark.parametrize("name", WRAPPERS)
def test_our_own_code_compiles_once(name, compiles):
    """A user's schedule does not make its wrapper compile in every step."""
    for rate in (steepest.linear_schedule(0.5, 0.0, 9), lambda t: 0.5):
        tx = WRAPPERS[name](steepest.sgd(rate))
        _, state = _steps(tx, 2)
        with compiles(0):
            for _ in range(2):
                _, state = tx.update(P, state, P)
