"""The value and the gradient of the last line search."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steepest

P = jnp.array([3.0, 4.0])


def f(p, shift=1.0):
    return jnp.sum((p - shift) ** 2)


def _counted():
    """`f`, and a list that grows with every evaluation."""
    calls = []

    def g(p, shift=1.0):
        calls.append(shift)
        return f(p, shift)

    return g, calls


@pytest.fixture(scope="module")
def after_a_step():
    tx = steepest.lbfgs()
    value, grad = jax.value_and_grad(f)(P)
    known = {"value": value, "grad": grad, "value_fn": f}
    u, state = tx.update(grad, tx.init(P), P, **known)
    return state, P + u


def test_it_is_computed_once(after_a_step):
    state, p = after_a_step
    g, calls = _counted()
    found = steepest.value_and_grad_from_state(g)(p, state=state)
    jax.tree.map(
        lambda x, y: np.testing.assert_allclose(x, y, 1e-6),
        found,
        jax.value_and_grad(f)(p),
    )
    assert not calls


def test_before_the_first_step_it_is_computed():
    state = steepest.lbfgs().init(P)
    g, calls = _counted()
    vg = steepest.value_and_grad_from_state(g)
    for args, kwargs in (((2.0,), {}), ((), {"shift": 2.0})):
        value, grad = vg(P, *args, state=state, **kwargs)
        assert value == f(P, 2.0)
        np.testing.assert_allclose(grad, jax.grad(f)(P, 2.0))
    assert calls == [2.0, 2.0]


@pytest.mark.parametrize("bad", [jnp.inf, -jnp.inf, jnp.nan], ids=str)
@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
def test_a_value_that_is_not_finite_is_computed(after_a_step, bad, compiled):
    state = steepest.tree.set(after_a_step[0], value=jnp.float32(bad))
    run = lambda p, state: steepest.value_and_grad_from_state(f)(p, state=state)
    value, grad = (jax.jit(run) if compiled else run)(P, state)
    assert value == f(P)
    np.testing.assert_allclose(grad, jax.grad(f)(P))


def test_many_at_once(after_a_step):
    """Some values are known, some are not."""
    state, p = after_a_step
    values = jnp.array([5.0, jnp.inf])
    run = lambda value: steepest.value_and_grad_from_state(f)(
        p, state=steepest.tree.set(state, value=value)
    )
    np.testing.assert_allclose(jax.vmap(run)(values)[0], [5.0, f(p)], 1e-6)


def test_params_may_have_the_names():
    """A weight called `value` is not the value."""
    p = {"value": P, "grad": P}
    of_all = lambda p: f(p["value"]) + f(p["grad"])
    state = steepest.lbfgs().init(p)
    value, _ = steepest.value_and_grad_from_state(of_all)(p, state=state)
    assert value == 2 * f(P)


def test_half_precision():
    """The stored value is in float32, whatever the function returns."""
    p = P.astype(jnp.bfloat16)
    state = steepest.lbfgs().init(p)
    run = jax.jit(lambda p: steepest.value_and_grad_from_state(f)(p, state=state))
    value, grad = run(p)
    assert value.dtype == jnp.float32 and grad.dtype == jnp.bfloat16


def test_errors(as_users_do):
    vg = steepest.value_and_grad_from_state(f)
    search = steepest.scale_by_backtracking_linesearch
    for state in (steepest.adam(0.1).init(P), search(3).init(P), None):
        with pytest.raises(ValueError, match="Value or gradient not found"):
            vg(P, state=state)
    both = steepest.chain(search(3, store_grad=True), search(3, store_grad=True))
    with pytest.raises(KeyError, match="multiple values for 'value'"):
        vg(P, state=both.init(P))
    with pytest.raises(TypeError, match="state"):
        vg(P)
    with pytest.raises(TypeError, match="value_fn is a float, expected a function"):
        steepest.value_and_grad_from_state(3.0)
    other = steepest.lbfgs().init({"q": jnp.ones(5)})
    with pytest.raises(ValueError, match=r"leaf .* in the state's `grad`"):
        vg(P, state=other)
    many = steepest.value_and_grad_from_state(lambda p: jax.tree.leaves(p)[0])
    with pytest.raises(TypeError, match="value_fn returned an array of"):
        many(P, state=steepest.lbfgs().init(P))
