"""All numbers of an optimizer during training, for a logger."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import steepest
from steepest import contrib, metrics, read

P = {"decoder": {"w": jnp.array([3.0, 0.0])}, "encoder": {"s": jnp.array(4.0)}}
LABELS = {"decoder": "decoder", "encoder": "encoder"}
SCHEDULE = steepest.linear_schedule(1.0, 0.0, 4)


def _groups():
    return steepest.multi_transform(
        {"decoder": steepest.adamw(SCHEDULE), "encoder": steepest.sgd(0.25)}, LABELS
    )


def _state(tx, steps=1, **extra):
    state = tx.init(P)
    for _ in range(steps):
        _, state = tx.update(P, state, P, **extra)
    return state


def _near(found, want):
    assert list(found) == list(want)
    assert all(type(x) is float for x in found.values())
    np.testing.assert_allclose(list(found.values()), list(want.values()), 1e-6)


def test_an_injected_schedule_has_one_learning_rate():
    """The state of the schedule, which has the same name, is not included."""
    make = steepest.inject_hyperparams(steepest.adamw)
    tx = make(learning_rate=SCHEDULE, weight_decay=0.5)
    rate = read(tx.init(P), "learning_rate")
    assert type(rate) is float and rate == 1
    state = _state(tx, 2)
    assert float(read(state, "learning_rate")) == 0.75
    found = metrics(state)
    assert (found["learning_rate"], found["weight_decay"]) == (0.75, 0.5)
    groups = {"decoder": make(learning_rate=SCHEDULE), "encoder": make(0.25)}
    state = _state(steepest.multi_transform(groups, LABELS))
    rates = {k: float(x) for k, x in read(state, "learning_rate").items()}
    assert rates == {"decoder": 1, "encoder": 0.25}
    assert metrics(state)["encoder/learning_rate"] == 0.25


@pytest.mark.parametrize("pair", [False, True], ids=["the class", "its pair"])
def test_groups_inside_accumulation_are_seen(pair):
    multi = steepest.MultiSteps(_groups(), 4)
    tx = steepest.watched(multi.gradient_transformation() if pair else multi)
    state = _state(tx, 5)
    rates = {k: float(x) for k, x in read(state, "learning_rate").items()}
    assert rates == {"decoder": 1, "encoder": 0.25}
    want = {"gradient_norm": 5, "update_norm": 0, "decoder/learning_rate": 1}
    want |= {"weight_decay": 1e-4, "encoder/learning_rate": 0.25}
    want |= {"gradient_step": 1, "mini_step": 1}
    assert metrics(state) == pytest.approx(want)
    assert metrics(state, tx) == pytest.approx(want)
    inner = state.inner_state
    rates = read(inner, "learning_rate", multi)
    assert {*rates} == {"decoder", "encoder"}
    assert {type(x) for x in rates.values()} == {float}


def test_a_plain_optimizer_needs_the_transformation():
    tx = steepest.chain(steepest.clip(1.0), steepest.adamw(SCHEDULE, weight_decay=0.1))
    state = _state(tx, 2)
    assert metrics(state) == {}
    _near(metrics(state, tx), {"weight_decay": 0.1, "learning_rate": 0.75})
    state = _state(_groups())
    want = {"decoder/learning_rate": 1, "encoder/learning_rate": 0.25}
    assert metrics(state, _groups()) == pytest.approx({**want, "weight_decay": 1e-4})


def test_the_leaves_of_params_are_not_plotted():
    """Although some are scalars, in the state as well."""
    for tx in (steepest.adam(0.1), contrib.dog(), contrib.prodigy()):
        assert not any("s" in name.split("/") for name in metrics(_state(tx)))


STATES = {
    "guard": (
        lambda: steepest.guard(steepest.sgd(0.1)),
        ["skipped", "not_finite", "high_norm", "high_value"],
    ),
    "apply_if_finite": (
        lambda: steepest.apply_if_finite(steepest.sgd(0.1), 3),
        ["notfinite_count", "total_notfinite"],
    ),
    "skips": (
        lambda: steepest.MultiSteps(
            steepest.sgd(0.1), 2, should_skip_update_fn=steepest.skip_not_finite
        ).gradient_transformation(),
        ["gradient_step", "mini_step", "num_not_finite", "should_skip"],
    ),
    "monitor": (
        lambda: steepest.monitor(
            {"largest": steepest.tree.max, "tree": lambda g: g["decoder"]}
        ),
        ["largest"],
    ),
    "snapshot": (lambda: steepest.snapshot("norm", steepest.tree.norm), ["norm"]),
    "plateau": (contrib.reduce_on_plateau, ["scale", "best_value"]),
    "prodigy": (contrib.prodigy, ["estim_lr"]),
    "dadapt_adamw": (contrib.dadapt_adamw, ["estim_lr"]),
    "dog": (contrib.dog, ["max_dist"]),
    "dowg": (contrib.dowg, ["estim_sq_dist"]),
    "momo": (contrib.momo, ["barf", "lb"]),
    "momo_adam": (contrib.momo_adam, ["barf", "lb"]),
}


@pytest.mark.parametrize("name", STATES)
def test_the_metrics_of_each_transformation(name):
    make, names = STATES[name]
    found = metrics(_state(make(), value=jnp.array(1.0)))
    assert sorted(found) == sorted(names)
    assert all(type(x) is float for x in found.values())


@pytest.mark.parametrize("library", [steepest, optax], ids=lambda m: m.__name__)
def test_a_line_search_reports_its_step(library):
    tx, f = library.lbfgs(), lambda p: jnp.sum(p**2)
    p = jnp.array([1.0, 2.0])
    value, g = jax.value_and_grad(f)(p)
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        _, state = tx.update(g, tx.init(p), p, value=value, grad=g, value_fn=f)
    names = ["learning_rate", "value", "num_linesearch_steps"]
    assert list(metrics(state)) == [*names, "decrease_error", "curvature_error"]


def test_equal_names_are_told_apart_by_their_paths():
    tx = steepest.chain(
        steepest.snapshot("norm", steepest.tree.norm),
        steepest.scale(0.5),
        steepest.snapshot("norm", steepest.tree.norm),
    )
    _near(metrics(_state(tx)), {"0/norm": 5, "2/norm": 2.5})


def test_states_of_optax_are_read():
    tx = optax.inject_hyperparams(optax.sgd)(learning_rate=0.5)
    _near(metrics(tx.init(P)), {"learning_rate": 0.5})


def test_under_jit_there_are_no_floats(as_users_do):
    state = _state(steepest.watched(steepest.sgd(0.5)))
    with pytest.raises(
        TypeError, match=r"metrics: gradient_norm is traced, expected a concrete num"
    ):
        jax.jit(lambda state: metrics(state))(state)
