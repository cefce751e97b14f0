"""Adam alone: closed forms and limits."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import steepest

from ..unusual import ODD
from ._refused import NOT_DTYPES, NOT_FLAGS, refuses

G = jnp.array([3.0, -0.01, 1e4])


def _steps(tx, gs, p=None):
    state, us = tx.init(gs[0]), []
    for g in gs:
        u, state = tx.update(g, state, p)
        us.append(u)
    return us, state


def test_the_first_step_is_the_sign():
    (u,), _ = _steps(steepest.scale_by_adam(), [G])
    np.testing.assert_allclose(u, jnp.sign(G), rtol=1e-5)


def test_without_memory_it_is_the_sign_at_every_step():
    us, _ = _steps(steepest.scale_by_adam(b1=0.0, b2=0.0), [G, -2 * G, 0.1 * G])
    np.testing.assert_allclose(us[1], -jnp.sign(G), rtol=1e-5)


def test_the_formula_by_hand():
    """Two steps, written out."""
    b1, b2, eps = 0.8, 0.9, 1e-3
    g1, g2 = np.array([1.0, 2.0]), np.array([-3.0, 0.5])
    mu = b1 * (1 - b1) * g1 + (1 - b1) * g2
    nu = b2 * (1 - b2) * g1**2 + (1 - b2) * g2**2
    want = mu / (1 - b1**2) / (np.sqrt(nu / (1 - b2**2)) + eps)
    tx = steepest.scale_by_adam(b1, b2, eps)
    us, state = _steps(tx, [jnp.asarray(g1, float), jnp.asarray(g2, float)])
    np.testing.assert_allclose(us[1], want, rtol=1e-5)
    np.testing.assert_allclose(state.nu, nu, rtol=1e-5)
    assert state.count == 2


def test_adamw_without_decay_is_adam():
    gs = [G, -G, 2 * G]
    ours, _ = _steps(steepest.adamw(0.1, weight_decay=0.0), gs, G)
    want, _ = _steps(steepest.adam(0.1), gs, G)
    np.testing.assert_array_equal(ours[-1], want[-1])


def test_adamw_decays_by_the_learning_rate():
    (u,), _ = _steps(steepest.adamw(0.1, weight_decay=0.5), [0 * G], G)
    np.testing.assert_allclose(u, -0.1 * 0.5 * G, rtol=1e-6)


def test_nadam_is_adam_that_looks_ahead():
    for plain, ahead in [
        (steepest.adam, steepest.nadam),
        (steepest.adamw, steepest.nadamw),
    ]:
        ours, _ = _steps(ahead(0.1), [G, 2 * G], G)
        want, _ = _steps(plain(0.1, nesterov=True), [G, 2 * G], G)
        np.testing.assert_array_equal(ours[-1], want[-1])


def test_nadam_without_momentum_is_adam():
    ours, _ = _steps(steepest.nadam(0.1, b1=0.0), [G, -G])
    want, _ = _steps(steepest.adam(0.1, b1=0.0), [G, -G])
    np.testing.assert_allclose(ours[-1], want[-1], rtol=1e-6)


def test_the_count_stops_at_the_top():
    """After 2^31 - 1 steps, one more does not give -2^31."""
    tx = steepest.adam(steepest.cosine_decay_schedule(0.1, 1000))
    state = tx.init(G)
    top = jnp.asarray(2**31 - 1, jnp.int32)
    state = state[0]._replace(count=top), state[1]._replace(count=top)
    u, new = tx.update(G, state)
    assert new[0].count == new[1].count == 2**31 - 1
    assert np.isfinite(u).all()


@pytest.mark.parametrize(
    "bad, message",
    [
        ({"b1": 1.5}, r"b1 is 1.5, .* number in \[0, 1\]"),
        ({"b2": -0.1}, r"b2 is -0.1, .* number in \[0, 1\]"),
        ({"eps": -1e-8}, "eps is -1e-08, .* number of at least 0"),
        ({"eps_root": -1.0}, "eps_root is -1.0"),
    ],
)
def test_impossible_numbers_are_refused(bad, message):
    for maker in (steepest.adam, steepest.adamw, steepest.nadam, steepest.nadamw):
        with pytest.raises(ODD, match=f"^{maker.__name__}: {message}"):
            maker(0.1, **bad)


@pytest.mark.parametrize("maker", [steepest.adam, steepest.lion, steepest.sgd])
def test_a_negative_learning_rate_goes_up(maker):
    up, down = (_steps(maker(rate), [G], G)[0][0] for rate in (-0.1, 0.1))
    np.testing.assert_allclose(up, -down, rtol=1e-6)
    assert (up * G > 0).all() and (down * G < 0).all()


@pytest.mark.usefixtures("as_users_do")
def test_impossible_arguments_are_refused():
    refuses(
        steepest.scale_by_adam,
        mu_dtype=NOT_DTYPES,
        nu_dtype=NOT_DTYPES,
        nesterov=NOT_FLAGS,
    )


def test_a_bfloat16_mean_is_nearer_to_float32_than_optax_s():
    """The update uses the mean before rounding; Optax's uses the rounded mean."""

    def run(library, mu_dtype):
        tx, p = library.adam(1e-2, mu_dtype=mu_dtype), jnp.linspace(-2.0, 2.0, 64)

        def step(carry, t):
            p, state = carry
            g = p * jnp.linspace(0.1, 3.0, 64) + jnp.sin(1.7 * t + jnp.arange(64.0))
            u, state = tx.update(g, state, p)
            return (p + u, state), None

        steps = jnp.arange(200.0)
        with jax.numpy_dtype_promotion("standard"):
            return jax.jit(lambda c: jax.lax.scan(step, c, steps)[0][0])(
                (p, tx.init(p))
            )

    exact = run(steepest, None)
    ours, theirs = (
        float(jnp.linalg.norm(run(m, jnp.bfloat16) - exact)) for m in (steepest, optax)
    )
    assert 0 < ours < theirs / 5
