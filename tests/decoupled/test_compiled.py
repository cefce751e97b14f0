"""Properties of every decoupled rule."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steepest
from steepest import decoupled

RULES = {
    "adam": (decoupled.adam_init, decoupled.adam_step),
    "nag": (decoupled.nag_init, decoupled.nag_step),
    "sgd": (decoupled.sgd_init, decoupled.sgd_step),
}
rules = pytest.mark.parametrize("init, step", RULES.values(), ids=RULES)
dtypes = pytest.mark.parametrize("dtype", [jnp.float16, jnp.bfloat16, jnp.float32])

# Each hyperparameter as a function of the time step.
SCHEDULES = [
    ("adam", "eta", lambda t: 0.1 / (1 + t)),
    ("adam", "beta1", lambda t: 0.5 + 0.1 * t),
    ("adam", "beta2", lambda t: 0.9 - 0.1 * t),
    ("adam", "eps", lambda t: 0.1 * (1 + t)),
    ("nag", "eta", lambda t: 0.1 / (1 + t)),
    ("nag", "mu", lambda t: 0.5 + 0.1 * t),
    ("sgd", "eta", lambda t: 0.1 / (1 + t)),
]
schedules = pytest.mark.parametrize("rule, name, schedule", SCHEDULES)


def _theta(dtype=jnp.float32):
    return [jnp.array([[1.0, -2.0]], dtype), jnp.array(0.5, dtype)]


def _updates(k, theta):
    return jax.tree.map(lambda x: jnp.cos(x + k), theta)


def _run(init, step, theta, steps=4, **hyper):
    state = init(theta)
    for k in range(steps):
        state, theta = step(state, theta, _updates(k, theta), **hyper)
    return state, theta


def _time(state):
    return state[-1] if isinstance(state, tuple) else state


def _typeof(tree):
    return jax.tree.map(lambda x: (x.shape, x.dtype, x.weak_type), tree)


def _assert_close(a, b, rtol=1e-5):
    jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, rtol, 1e-7), a, b)


@rules
def test_the_time_step_is_a_float_and_counts_the_calls(init, step):
    theta = _theta()
    for calls in range(4):
        time = _time(_run(init, step, theta, calls)[0])
        assert (time.shape, time.dtype) == ((), jnp.float32)
        assert time == calls


@rules
@pytest.mark.parametrize(
    "theta",
    [
        [],
        _theta(),
        jnp.array([1.0, 2.0]),
        {"w": jnp.ones((2, 1)), "layers": (jnp.ones(1), [jnp.array(3.0), None])},
        [jnp.zeros((0, 3)), jnp.ones(2)],
    ],
)
def test_any_tree_comes_back_as_it_is(init, step, theta):
    """Lists in, lists out, as in ngc-learn; and any other tree."""
    _, new = _run(init, step, theta, 2)
    assert jax.tree.structure(new) == jax.tree.structure(theta)
    assert jax.tree.map(jnp.shape, new) == jax.tree.map(jnp.shape, theta)


@rules
def test_a_tree_of_weights_moves_as_each_weight_alone(init, step):
    theta = _theta()
    _, together = _run(init, step, theta)
    alone = [_run(init, step, x)[1] for x in theta]
    _assert_close(together, alone)


@rules
@dtypes
def test_the_dtype_of_the_weights_is_kept(init, step, dtype):
    _, theta = _run(init, step, _theta(dtype), eta=0.125)
    assert [x.dtype for x in theta] == [dtype] * 2


@rules
def test_wider_updates_do_not_widen_the_weights(init, step):
    theta = _theta(jnp.bfloat16)
    _, new = step(init(theta), theta, _theta(jnp.float32))
    assert [x.dtype for x in new] == [jnp.bfloat16] * 2


@rules
def test_weights_of_64_bits_keep_them(init, step):
    with jax.enable_x64(True):
        theta = _theta(jnp.float64)
        _, new = _run(init, step, theta, 1, eta=1e-12)
        assert [x.dtype for x in new] == [jnp.float64] * 2
        assert 0 < abs(new[1] - theta[1]) < 1e-11


@rules
@dtypes
def test_the_state_is_a_fixed_point_of_types(init, step, dtype):
    """So it can be the carry of a `scan`."""
    theta = _theta(dtype)
    state = init(theta)
    new, _ = step(state, theta, _updates(0, theta))
    assert _typeof(new) == _typeof(state)


@rules
def test_a_step_works_inside_jit(init, step):
    theta = _theta()
    inside = jax.jit(lambda *args: step(*args, eta=0.1))
    _assert_close(_run(init, inside, theta), _run(init, step, theta, eta=0.1))


@rules
def test_a_step_works_inside_scan(init, step):
    theta = _theta()

    def body(carry, k):
        state, theta = carry
        return step(state, theta, _updates(k, theta), eta=0.1), None

    result, _ = jax.lax.scan(body, (init(theta), theta), jnp.arange(4.0))
    _assert_close(result, _run(init, step, theta, eta=0.1))


@rules
def test_a_step_may_be_mapped_over_its_size(init, step):
    def last(eta):
        return _run(init, step, _theta(), eta=eta)[1]

    mapped = jax.vmap(last)(jnp.array([0.1, 0.2]))
    for k, eta in enumerate([0.1, 0.2]):
        _assert_close(jax.tree.map(lambda x, k=k: x[k], mapped), last(eta))


@schedules
def test_a_hyperparameter_may_be_a_function_of_the_time_step(rule, name, schedule):
    init, step = RULES[rule]
    scheduled = _run(init, step, _theta(), **{name: schedule})
    theta = _theta()
    state = init(theta)
    for k in range(4):
        value = {name: schedule(float(k))}
        state, theta = step(state, theta, _updates(k, theta), **value)
    _assert_close(scheduled, (state, theta))
    _, plain = _run(init, step, _theta())
    assert not jnp.allclose(plain[0], theta[0], rtol=1e-5)


@pytest.mark.parametrize("kind", ["number", "array"])
@pytest.mark.parametrize("rule, name", [row[:2] for row in SCHEDULES])
def test_another_value_compiles_nothing(rule, name, kind, compiles):
    init, step = RULES[rule]
    theta = _theta()
    state = init(theta)
    values = [0.25, 0.5, 0.75]
    first, *others = map(jnp.array, values) if kind == "array" else values
    step(state, theta, theta, **{name: first})
    with compiles(0):
        for value in others:
            step(state, theta, theta, **{name: value})


def test_the_same_schedule_compiles_once(compiles):
    schedule = steepest.linear_schedule(0.1, 0.0, 10)
    theta = _theta()
    state, theta = decoupled.sgd_step(jnp.zeros(()), theta, theta, eta=schedule)
    with compiles(0):
        for _ in range(2):
            state, theta = decoupled.sgd_step(state, theta, theta, eta=schedule)


@rules
def test_the_old_weights_are_not_given_up(init, step):
    """Local learning reads them again, so nothing is donated."""
    theta = _theta()
    state = init(theta)
    first, again = (step(state, theta, theta) for _ in range(2))
    _assert_close(first, again)


@rules
def test_trees_that_do_not_match_are_named(init, step):
    theta = {"w": jnp.ones(2), "b": jnp.ones(2)}
    for odd, reason in [
        ({"w": jnp.ones(2)}, r"leaf \['b'\] is in the theta and not in the updates"),
        ({"w": jnp.ones(3), "b": jnp.ones(2)}, r"leaf \['w'\] has shape \(2,\) in the"),
        ({"w": "ones", "b": jnp.ones(2)}, r"leaf \['w'\] of the updates is a str"),
    ]:
        message = f"^{step.__name__}: {reason}"
        with pytest.raises((TypeError, ValueError), match=message):
            step(init(theta), theta, odd)


@rules
def test_a_state_of_another_kind_is_refused(init, step, as_users_do):
    theta = [jnp.ones(2), jnp.ones(2)]
    others = [make(theta) for make, _ in RULES.values() if make is not init]
    for state in (None, theta, "state", *others):
        with pytest.raises(
            TypeError, match=rf"^{step.__name__}: opt_params is .*`{init.__name__}\("
        ):
            step(state, theta, theta)


@schedules
@pytest.mark.parametrize("bad", [-0.1, float("nan"), "0.1", None, [0.1]], ids=str)
def test_impossible_numbers_are_refused(rule, name, schedule, bad, as_users_do):
    """Passed directly or by a schedule; and as soon as a rule is looked up by name."""
    init, step = RULES[rule]
    message = rf"{name} (is|has) .*, expected (a|one) number .*"
    theta = _theta()
    for x in (bad, lambda t: bad):
        with pytest.raises((TypeError, ValueError), match=f"^{rule}_step: {message}"):
            step(init(theta), theta, theta, **{name: x})
    with pytest.raises((TypeError, ValueError), match=f"^get_opt_step_fn: {message}"):
        decoupled.get_opt_step_fn(rule, **{name: bad})
