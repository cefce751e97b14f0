"""Hyperparameters in the state."""

import inspect

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steepest

from ..unusual import ODD

P = {"w": jnp.array([1.0, 2.0])}


def _many(p):
    return jax.tree.map(lambda x: x.ndim > 1, p)


def test_numbers_can_be_read_and_changed():
    tx = steepest.inject_hyperparams(steepest.adam)(0.1)
    state = tx.init(P)
    assert sorted(state.hyperparams) == ["b1", "b2", "eps", "eps_root", "learning_rate"]
    for new in (jnp.array(5.0), 5.0, np.float64(5.0)):
        state.hyperparams["learning_rate"] = new
        u, after = tx.update(P, state, P)
        np.testing.assert_allclose(u["w"], -5, 1e-5)
        assert float(after.hyperparams["learning_rate"]) == 5


@pytest.mark.parametrize("own", [True, False], ids=["steepest's", "the user's"])
def test_nothing_compiles_again_when_one_changes(own, compiles):
    factory = steepest.sgd if own else lambda learning_rate: steepest.sgd(learning_rate)
    tx = steepest.inject_hyperparams(factory)(learning_rate=0.1)
    state = tx.init(P)
    _, state = tx.update(P, state, P)
    rates = [jnp.array(rate) for rate in (0.2, 0.3)]
    with compiles(0):
        for rate in rates:
            state.hyperparams["learning_rate"] = rate
            u, state = tx.update(P, state, P)
    np.testing.assert_allclose(u["w"], -0.3 * P["w"], 1e-6)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_numbers_are_float32_whatever_the_params(dtype):
    """In bfloat16 `b2 = 0.999` is 1, and Adam would divide zero by zero."""
    p = {"w": P["w"].astype(dtype)}
    tx = steepest.inject_hyperparams(steepest.adam)(0.1)
    state = tx.init(p)
    assert {x.dtype for x in state.hyperparams.values()} == {jnp.dtype("float32")}
    u, _ = tx.update(p, state, p)
    want, _ = steepest.adam(0.1).update(p, steepest.adam(0.1).init(p), p)
    np.testing.assert_array_equal(np.float32(u["w"]), np.float32(want["w"]))


def test_a_dtype_can_be_asked_for():
    maker = steepest.inject_hyperparams(steepest.sgd, hyperparam_dtype=jnp.float16)
    assert maker(0.1).init(P).hyperparams["learning_rate"].dtype == jnp.float16


def test_schedules_are_followed_and_shown():
    schedule = steepest.linear_schedule(1.0, 0.0, 4)
    tx = steepest.inject_hyperparams(steepest.sgd)(schedule, momentum=0.9)
    plain = steepest.sgd(schedule, momentum=0.9)
    state, want_state = tx.init(P), plain.init(P)
    for t in range(6):
        u, state = tx.update(P, state, P)
        want, want_state = plain.update(P, want_state, P)
        np.testing.assert_allclose(u["w"], want["w"], 1e-6)
        shown = state.hyperparams["learning_rate"]
        np.testing.assert_allclose(shown, schedule(t))
    assert int(state.count) == 6


class _Plateau:
    """Halves whenever the loss it receives is not below 1."""

    def init(self):
        return jnp.array(1.0)

    def update(self, state, *, value, **extra):
        return jnp.where(value < 1, state, state / 2)

    def __call__(self, state, **extra):
        return state


def test_a_schedule_may_receive_the_extra_arguments():
    tx = steepest.inject_hyperparams(steepest.sgd)(learning_rate=_Plateau())
    state, rates = tx.init(P), []
    for value in (0.5, 2.0, 2.0, 0.5):
        u, state = tx.update(P, state, P, value=value)
        rates.append(-float(u["w"][0]))
    assert rates == [1, 1, 0.5, 0.25]


def test_masks_dtypes_and_switches_are_left_alone():
    """By default, only numbers and schedules are injected."""
    tx = steepest.inject_hyperparams(steepest.adamw)(
        0.1, mask=_many, mu_dtype=jnp.bfloat16, nesterov=True
    )
    state = tx.init(P)
    named = {"learning_rate", "b1", "b2", "eps", "eps_root", "weight_decay"}
    assert set(state.hyperparams) == named
    u, state = jax.jit(tx.update)(P, state, P)
    want = steepest.adamw(0.1, mask=_many, mu_dtype=jnp.bfloat16, nesterov=True)
    v, _ = want.update(P, want.init(P), P)
    np.testing.assert_allclose(u["w"], v["w"], 1e-5)


def test_static_arguments_stay_out():
    for static in ("b1", ("b1", "eps")):
        tx = steepest.inject_hyperparams(steepest.adam, static_args=static)(0.1)
        assert not set(static if isinstance(static, tuple) else [static]) & set(
            tx.init(P).hyperparams
        )


def test_it_keeps_the_signature_and_refuses_what_is_not_in_it(as_users_do):
    maker = steepest.inject_hyperparams(steepest.adam)
    assert inspect.signature(maker) == inspect.signature(steepest.adam)
    with pytest.raises(TypeError, match="b3"):
        maker(0.1, b3=0.5)
    with pytest.raises(ODD, match=r"^adam: b2 is 2.0, .*number in"):
        steepest.inject_hyperparams(steepest.adam)(lambda t: 0.1, b2=2.0)
    with pytest.raises(
        TypeError, match="static_args is a int, expected a string or a list of strings"
    ):
        steepest.inject_hyperparams(steepest.adam, static_args=3)
    with pytest.raises(
        TypeError, match="hyperparam_dtype is 'float33', expected a dtype of"
    ):
        steepest.inject_hyperparams(steepest.adam, hyperparam_dtype="float33")
    with pytest.raises(ODD, match=r"static_args has \['foo'\]"):
        steepest.inject_hyperparams(steepest.adam, static_args="foo")


def test_shapes_are_enough_to_begin():
    tx = steepest.inject_hyperparams(steepest.adam)(0.1)
    shapes = jax.eval_shape(lambda: P)
    assert jax.tree.structure(tx.init(shapes)) == jax.tree.structure(tx.init(P))


def test_random_keys_are_no_numbers():
    def noisy(learning_rate, key):
        return steepest.chain(
            steepest.add_noise(0.1, 0.5, key), steepest.sgd(learning_rate)
        )

    tx = steepest.inject_hyperparams(noisy)(0.1, jax.random.key(1))
    state = tx.init(P)
    assert list(state.hyperparams) == ["learning_rate"]
    jax.jit(tx.update)(P, state, P)


FAMILIES = {
    "adamw": lambda f: f(steepest.adamw)(0.1, weight_decay=0.01),
    "nadam": lambda f: f(steepest.nadam)(0.1),
    "lion": lambda f: f(steepest.lion)(0.1),
    "rmsprop": lambda f: f(steepest.rmsprop)(0.1, centered=True, momentum=0.9),
    "adan": lambda f: f(steepest.adan)(0.1),
    "radam": lambda f: f(steepest.radam)(0.1),
    "yogi": lambda f: f(steepest.yogi)(0.1),
    "ademamix": lambda f: f(steepest.contrib.ademamix)(0.1),
    "adopt": lambda f: f(steepest.contrib.adopt)(0.1),
    "muon": lambda f: f(steepest.contrib.muon)(0.1),
}


@pytest.mark.parametrize("name", FAMILIES)
def test_it_follows_the_optimizer(name):
    """Up to the last digits: `1 - 0.999` in float32 is not quite `0.001`."""
    p = {"w": jnp.array([[1.0, 2.0], [-0.3, 0.7]])}
    plain, ours = (
        FAMILIES[name](lambda f: f),
        FAMILIES[name](steepest.inject_hyperparams),
    )
    state, injected = plain.init(p), ours.init(p)
    update = jax.jit(plain.update)
    for t in range(3):
        g = jax.tree.map(lambda x, t=t: jnp.cos(x + t), p)
        u, state = update(g, state, p)
        v, injected = ours.update(g, injected, p)
        close = lambda a, b: np.testing.assert_allclose(a, b, 1e-4, 1e-7)
        jax.tree.map(close, (u, state), (v, injected.inner_state))


def test_a_number_that_was_changed_is_no_longer_what_it_was():
    tx = steepest.inject_hyperparams(steepest.scale_by_adam)(b2=0.5)
    state = tx.init(P)
    state.hyperparams["b2"] = jnp.array(0.999)
    _, state = tx.update(P, state, P)
    np.testing.assert_allclose(state.inner_state.nu["w"], 0.001 * P["w"] ** 2, 2e-5)


def test_static_arguments_of_our_functions_are_left_alone():
    """Our own functions declare which arguments may be arrays."""
    tx = steepest.inject_hyperparams(steepest.contrib.galore)(0.1, rank=1)
    assert "rank" not in tx.init({"w": jnp.ones((2, 3))}).hyperparams


RAW_KEY = np.zeros(2, np.uint32)


@pytest.mark.parametrize(
    ("factory", "numbers", "others"),
    [
        (steepest.noisy_sgd, {"learning_rate": 0.1}, {"key": RAW_KEY}),
        (steepest.add_noise, {"eta": 0.1, "gamma": 0.5}, {"key": RAW_KEY}),
        (steepest.contrib.muon, {"learning_rate": 0.1}, {"ns_steps": 5}),
        (steepest.muon, {"learning_rate": 0.1}, {"coefficients": np.ones((5, 3))}),
    ],
)
def test_arrays_that_are_not_numbers_are_left_alone(factory, numbers, others):
    """An annotation that allows arrays does not make a key or a table a number."""
    tx = steepest.inject_hyperparams(factory)(**numbers, **others)
    hyperparams = tx.init({"w": jnp.ones((2, 3))}).hyperparams
    assert numbers.keys() <= hyperparams.keys()
    assert not others.keys() & hyperparams.keys()


def test_a_schedule_may_return_a_python_number():
    """As `constant_schedule` does."""
    tx = steepest.inject_hyperparams(steepest.sgd)(steepest.constant_schedule(0.5))
    g = jnp.ones(2)
    u, state = tx.update(g, tx.init(g), g)
    assert u.tolist() == [-0.5, -0.5]
    assert float(state.hyperparams["learning_rate"]) == 0.5
