"""Any transformation as a decoupled rule."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import steepest
from steepest.decoupled import Decoupled, of

MAKERS = {
    "sgd": lambda: steepest.sgd(0.1, momentum=0.9),
    "adamw": lambda: steepest.adamw(0.1, weight_decay=0.1),
    "lion": lambda: steepest.lion(0.1, weight_decay=0.1),
    "scheduled": lambda: steepest.adam(steepest.linear_schedule(0.1, 0.0, 4)),
    "clipped": lambda: steepest.chain(
        steepest.clip_by_global_norm(0.5), steepest.scale_by_learning_rate(0.1)
    ),
}
makers = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)


def _theta(dtype=jnp.float32):
    return {"w": jnp.array([1.0, -2.0], dtype), "b": [jnp.array(0.5, dtype), None]}


def _updates(k, theta):
    return jax.tree.map(lambda x: jnp.cos(x + k), theta)


@makers
def test_it_does_what_the_transformation_does(make):
    tx = make()
    init, step = of(tx)
    theta, mine = _theta(), _theta()
    state, opt_params = tx.init(theta), init(mine)
    for k in range(5):
        u, state = tx.update(_updates(k, theta), state, theta)
        theta = steepest.apply_updates(theta, u)
        opt_params, mine = step(opt_params, mine, _updates(k, mine))
    jax.tree.map(
        lambda x, y: np.testing.assert_allclose(x, y, 1e-5, 1e-6),
        (opt_params, mine),
        (state, theta),
    )


def test_it_is_a_pair():
    rule = of(steepest.adam(0.1))
    assert isinstance(rule, Decoupled)
    init, step = rule
    assert (init, step) == (rule.init, rule.step)


def test_the_state_is_that_of_the_transformation():
    tx = steepest.adamw(0.1)
    assert jax.tree.structure(of(tx).init(_theta())) == jax.tree.structure(
        tx.init(_theta())
    )


@makers
@pytest.mark.parametrize("dtype", [jnp.float16, jnp.bfloat16, jnp.float32])
def test_the_dtype_of_the_weights_is_kept(make, dtype):
    init, step = of(make())
    theta = _theta(dtype)
    _, new = step(init(theta), theta, theta)
    assert (new["w"].dtype, new["b"][0].dtype) == (dtype, dtype)
    assert new["b"][1] is None


def test_many_steps_compile_once():
    traces = 0

    def update(updates, params):
        nonlocal traces
        traces += 1
        return -updates

    init, step = of(steepest.stateless(update))
    theta = jnp.ones(2)
    state = init(theta)
    for _ in range(3):
        state, theta = step(state, theta, theta)
    assert traces == 1


def test_extra_arguments_reach_it():
    def update(updates, state, params=None, *, value, **extra_args):
        return -value * updates, state

    tx = steepest.GradientTransformationExtraArgs(steepest.init_empty_state, update)
    init, step = of(tx)
    _, theta = step(init(None), jnp.array(3.0), jnp.array(1.0), value=2.0)
    assert theta == 1


def test_an_ordinary_one_ignores_extra_arguments():
    tx = steepest.GradientTransformation(
        steepest.init_empty_state, lambda updates, state, params=None: (updates, state)
    )
    init, step = of(tx)
    _, theta = step(init(None), [jnp.array(3.0)], [jnp.array(1.0)], value=2.0)
    assert theta == [4.0]


def test_one_of_optax_will_do():
    init, step = of(optax.scale(-0.5))
    theta = [jnp.array(3.0)]
    _, theta = step(init(theta), theta, [jnp.array(2.0)])
    assert theta == [2.0]


@makers
def test_it_works_inside_jit_and_scan(make):
    init, step = of(make())
    theta = _theta()

    @jax.jit
    def run(theta):
        def body(carry, k):
            state, theta = carry
            return step(state, theta, _updates(k, theta)), None

        return jax.lax.scan(body, (init(theta), theta), jnp.arange(3.0))[0][1]

    state, mine = init(theta), theta
    for k in range(3):
        state, mine = step(state, mine, _updates(k, mine))
    np.testing.assert_allclose(run(theta)["w"], mine["w"], rtol=1e-5)


def test_lookahead_has_fast_and_slow_weights():
    """The adjustments are for the fast weights."""
    init, step = of(steepest.lookahead(steepest.sgd(1.0), 2, 0.5))
    theta = steepest.LookaheadParams.init_synced([jnp.array(3.0)])
    state = init(theta)
    for _ in range(2):
        state, theta = step(state, theta, [jnp.array(1.0)])
    assert theta.fast == theta.slow == [2.0]
