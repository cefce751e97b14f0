"""Line searches and L-BFGS: one compilation for all starts, steps and values."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steepest

SEARCHES = {
    "lbfgs": lambda: steepest.lbfgs(memory_size=2),
    "zoom": lambda: steepest.chain(
        steepest.sgd(1.0), steepest.scale_by_zoom_linesearch(15)
    ),
    "backtracking": lambda: steepest.chain(
        steepest.sgd(1.0),
        steepest.scale_by_backtracking_linesearch(30, store_grad=True),
    ),
}
searches = pytest.mark.parametrize("name", SEARCHES)
STARTS = [
    {"x": jnp.array([x, 2.0]), "y": jnp.array(x, jnp.float32)} for x in (-1.2, 0.5, 3.0)
]


def loss(p, shift):
    return jnp.sum((p["x"] - shift) ** 2) + (p["y"] - p["x"][0] ** 2) ** 2


@searches
def test_a_training_step(name):
    calls, values = [], []

    def counted(p, shift):
        calls.append(len(values))  # only called while a step is traced
        return loss(p, shift)

    tx = SEARCHES[name]()
    step = steepest.make_train_step(counted, tx)
    for k, start in enumerate(STARTS):
        p, state = jax.tree.map(jnp.array, start), tx.init(start)
        for t in range(3):
            p, state, value = step(p, state, jnp.float32(k + t))
            values.append(float(value))
    assert np.isfinite(values).all()
    assert set(calls) == {0}


@searches
def test_a_jit_of_the_user(name):
    """The value as a Python number or as an array: one compilation for each."""
    tx, traces = SEARCHES[name](), 0

    @jax.jit
    def step(p, state, value, grad, shift):
        nonlocal traces
        traces += 1
        known = {"value": value, "grad": grad, "value_fn": loss, "shift": shift}
        u, state = tx.update(grad, state, p, **known)
        return steepest.apply_updates(p, u), state

    for compilations, kind in enumerate((float, jnp.asarray), 1):
        for k, start in enumerate(STARTS):
            p, state = start, tx.init(start)
            for t in range(3):
                shift = jnp.float32(k + t)
                value, grad = jax.value_and_grad(loss)(p, shift)
                p, state = step(p, state, kind(value), grad, shift)
        assert traces == compilations


@searches
def test_a_loop_of_the_user(name):
    """The output of `update` can be its input again, so a loop can carry it."""
    tx, traces = SEARCHES[name](), []
    f = lambda p: loss(p, 1.0)
    value_and_grad = steepest.value_and_grad_from_state(f)

    def step(_, carry):
        p, state = carry
        value, grad = value_and_grad(p, state=state)
        u, state = tx.update(grad, state, p, value=value, grad=grad, value_fn=f)
        return steepest.apply_updates(p, u), state

    @jax.jit
    def run(p, steps):
        traces.append(1)
        return jax.lax.fori_loop(0, steps, step, (p, tx.init(p)))[0]

    for steps, start in enumerate(STARTS, 3):
        assert f(run(start, steps)) < f(start)
    assert len(traces) == 1


def test_outside_jit_nothing_is_compiled_again(compiles):
    """Although the function is a new one in every step."""
    tx = SEARCHES["lbfgs"]()

    def run(start):
        p, state = start, tx.init(start)
        for t in range(2):
            f = lambda p, t=t: loss(p, float(t))
            value, grad = jax.value_and_grad(f)(p)
            known = {"value": value, "grad": grad, "value_fn": f}
            u, state = tx.update(grad, state, p, **known)
            p = steepest.apply_updates(p, u)

    run(STARTS[0])
    with compiles(0):
        run(STARTS[1])
        run(STARTS[2])


@searches
def test_the_first_state_is_of_the_types_of_the_others(name):
    """Also if a param is weakly typed, as `jnp.array(1.0)` is."""
    state = SEARCHES[name]().init({"x": jnp.array([1.0, 2.0]), "y": jnp.array(1.0)})
    assert not any(x.weak_type for x in jax.tree.leaves(state))


@searches
def test_all_that_is_missing_is_told_at_once(name, as_users_do):
    tx, p = SEARCHES[name](), STARTS[0]
    says = r"needs `value`, `grad` and `value_fn` and was called without them\. Call "
    with pytest.raises(TypeError, match=says):
        tx.update(p, tx.init(p), p)
    with pytest.raises(TypeError, match="needs `grad` and `value_fn` and"):
        tx.update(p, tx.init(p), p, value=1.0)
