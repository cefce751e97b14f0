"""SM3."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steepest

from ..unusual import ODD
from ._refused import NAN, refuses

G = jnp.array([[1.0, -2.0, 0.0], [3.0, 0.5, 4.0]])


def _run(tx, grads):
    state, found = tx.init(grads[0]), []
    for g in grads:
        u, state = tx.update(g, state)
        found.append(u)
    return found, state


@pytest.mark.parametrize("shape", [(), (3,)], ids=str)
def test_of_vectors_and_scalars_it_is_adagrad(shape):
    """Optax does not support scalars."""
    g = jnp.full(shape, 2.0)
    found, state = _run(steepest.scale_by_sm3(b1=0.0, eps=0.0), [g, -2 * g, 3 * g])
    for k, (factor, total) in enumerate([(1, 1), (-2, 5), (3, 14)]):
        want = jnp.full(shape, factor / total**0.5)
        np.testing.assert_allclose(found[k], want, rtol=1e-6)
    np.testing.assert_allclose(state.mu[0], jnp.full(shape, 56.0), rtol=1e-6)


def test_a_vector_for_each_axis():
    state = steepest.scale_by_sm3().init({"t": jnp.zeros((2, 3, 4)), "n": None})
    assert [x.shape for x in state.mu["t"]] == [(2,), (3,), (4,)]
    assert state.nu["t"].shape == (2, 3, 4)
    assert state.mu["n"] is None


def test_the_bounds_hold():
    """The divisor is never below the true sum of squares."""
    tx, total = steepest.scale_by_sm3(b1=0.0, eps=0.0), jnp.zeros((2, 3))
    state = tx.init(G)
    for k in range(4):
        g = jnp.roll(G, k, axis=1)
        u, state = tx.update(g, state)
        total = total + g * g
        rows, columns = state.mu
        bound = jnp.minimum(rows.reshape(2, 1) + 0 * G, columns.reshape(1, 3) + 0 * G)
        assert np.all(bound >= total)
        assert np.all(jnp.abs(u) <= 1)


def test_a_zero_gradient_at_first_is_no_step():
    found, _ = _run(steepest.scale_by_sm3(b1=0.0, eps=0.0), [G])
    np.testing.assert_allclose(found[0], jnp.sign(G), rtol=1e-6)


def test_with_b2_it_forgets():
    tx = steepest.scale_by_sm3(b1=0.0, b2=0.5, eps=0.0)
    _, state = _run(tx, [jnp.array([2.0])] + [jnp.array([0.0])] * 3)
    np.testing.assert_allclose(state.mu[0], [4 * 0.5**4], rtol=1e-6)


def test_never_forgetting_may_be_traced():
    step = lambda b2: _run(steepest.scale_by_sm3(b2=b2), [G, G])[0][1]
    found = jax.vmap(step)(jnp.array([0.9, 1.0]))
    np.testing.assert_allclose(found[1], step(1.0), rtol=1e-6)
    np.testing.assert_allclose(found[0], step(0.9), rtol=1e-4)


def test_half_precision_keeps_squares_in_float32():
    g = G.astype(jnp.bfloat16)
    found, state = _run(steepest.scale_by_sm3(), [g])
    assert found[0].dtype == state.nu.dtype == jnp.bfloat16
    assert {x.dtype for x in state.mu} == {jnp.dtype(jnp.float32)}


def test_no_elements():
    found, _ = _run(steepest.sm3(0.1), [jnp.zeros((0, 3))])
    assert found[0].shape == (0, 3)


@pytest.mark.parametrize("b2", [-0.1, 1.1])
def test_what_is_refused(b2):
    with pytest.raises(ODD, match=f"scale_by_sm3: b2 is {b2}, but is usually a number"):
        steepest.scale_by_sm3(b2=b2)


@pytest.mark.usefixtures("as_users_do")
def test_impossible_arguments_are_refused():
    refuses(steepest.scale_by_sm3, b2=[1.5, -0.1, NAN, "1"])


@pytest.mark.parametrize("name", ["adafactor", "novograd", "sm3"])
@pytest.mark.parametrize("b", [jnp.ones(3), jnp.ones(())], ids=["another", "scalar"])
def test_a_state_of_other_shapes_is_refused(name, b, as_users_do):
    """Also a state that NumPy would broadcast, which would change its shape."""
    tx, p = getattr(steepest, name)(0.1), {"w": jnp.ones((3, 2)), "b": jnp.ones(2)}
    message = r"leaf \['b'\] has shape \(2,\) in the updates and shape \(3?,?\) in"
    with pytest.raises(ValueError, match=f"^{name}: {message} the state's `"):
        tx.update(p, tx.init({**p, "b": b}), p)
