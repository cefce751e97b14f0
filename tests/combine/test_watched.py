"""Numbers of an optimizer during training, read by name."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steepest
from steepest import read, watched

P = {"w": jnp.array([3.0, 0.0]), "b": jnp.array([4.0]), "none": None}
SCHEDULE = steepest.linear_schedule(1.0, 0.0, 4)
LABELS = {"w": "fast", "b": "slow", "none": "slow"}


def _groups():
    groups = {"fast": steepest.sgd(SCHEDULE), "slow": steepest.adamw(0.25)}
    return steepest.partition(groups, LABELS)


def test_it_changes_nothing_and_reports_everything():
    plain = steepest.chain(steepest.clip_by_global_norm(1.0), steepest.sgd(SCHEDULE))
    tx = watched(plain)
    state, inner = tx.init(P), plain.init(P)
    update = jax.jit(tx.update)
    for step in range(3):
        u, state = update(P, state, P)
        v, inner = plain.update(P, inner, P)
        jax.tree.map(np.testing.assert_array_equal, u, v)
        np.testing.assert_allclose(read(state, "gradient_norm"), 5, 1e-6)
        np.testing.assert_allclose(read(state, "learning_rate"), SCHEDULE(step), 1e-6)
        np.testing.assert_allclose(read(state, "update_norm"), SCHEDULE(step), 1e-6)
    assert jax.tree.structure(state.inner_state) == jax.tree.structure(inner)


@pytest.mark.parametrize("name", ["MultiSteps", "apply_if_finite", "guard", "masked"])
def test_however_deep_it_is(name):
    wrap = {
        "MultiSteps": lambda tx: steepest.MultiSteps(tx, 1),
        "apply_if_finite": lambda tx: steepest.apply_if_finite(tx, 3),
        "guard": steepest.guard,
        "masked": lambda tx: steepest.masked(tx, True),
    }[name]
    tx = steepest.chain(steepest.identity(), wrap(watched(steepest.sgd(0.5))))
    _, state = tx.update(P, tx.init(P), P)
    np.testing.assert_allclose(read(state, "learning_rate"), 0.5)
    np.testing.assert_allclose(read(state, "update_norm"), 2.5)


@pytest.mark.parametrize("name", ["MultiSteps", "apply_if_finite", "guard", "flatten"])
def test_the_learning_rate_is_seen_through_wrappers(name):
    """From outside, with the transformation or with `watched` around it."""
    sgd = steepest.sgd(SCHEDULE)
    tx = {
        "MultiSteps": lambda: steepest.MultiSteps(sgd, 1).gradient_transformation(),
        "apply_if_finite": lambda: steepest.apply_if_finite(sgd, 3),
        "guard": lambda: steepest.guard(sgd),
        "flatten": lambda: steepest.flatten(sgd),
    }[name]()
    outside = watched(tx)
    state = outside.init(P)
    for _ in range(2):
        _, state = outside.update(P, state, P)
    assert float(read(state, "learning_rate")) == 0.75
    assert float(read(state.inner_state, "learning_rate", tx)) == 0.75


def test_several_groups_are_told_apart():
    tx = watched(_groups())
    _, state = tx.update(P, tx.init(P), P)
    assert {k: float(x) for k, x in read(state, "learning_rate").items()} == {
        "fast": 1,
        "slow": 0.25,
    }
    inside = steepest.partition(
        {"fast": watched(steepest.sgd(1.0)), "slow": watched(steepest.sgd(0.5))}, LABELS
    )
    _, state = inside.update(P, inside.init(P), P)
    norms = {k: float(x) for k, x in read(state, "update_norm").items()}
    assert norms == {"fast": 3, "slow": 2}


def test_without_watched_a_state_has_its_own_numbers():
    tx = _groups()
    state = tx.init(P)
    assert sorted(read(state, "learning_rate", tx)) == ["fast", "slow"]
    injected = steepest.inject_hyperparams(steepest.adam)(0.1)
    assert read(injected.init(P), "learning_rate") == jnp.float32(0.1)
    assert read(steepest.adam(0.1).init(P), "count") == 0
    two = read(steepest.adamw(SCHEDULE).init(P), "count")
    assert len(two) == 2  # by their paths
    with pytest.raises(KeyError, match=r"the state has no 'learning_rate'.*watched"):
        read(steepest.sgd(0.1).init(P), "learning_rate")


def test_in_a_loop_of_jax():
    tx = watched(steepest.adamw(SCHEDULE))

    def body(carry, _):
        p, state = carry
        u, state = tx.update(p, state, p)
        return (steepest.apply_updates(p, u), state), read(state, "learning_rate")

    _, rates = jax.lax.scan(body, (P, tx.init(P)), length=3)
    np.testing.assert_allclose(rates, [1, 0.75, 0.5], 1e-6)
