"""NovoGrad alone."""

import jax.numpy as jnp
import numpy as np
import pytest

import steepest

from ..unusual import ODD
from ._refused import NOT_DTYPES, NOT_FINITE, refuses
from ._steps import steps

G = jnp.array([3.0, -4.0])


def test_the_first_step_has_length_one():
    """For each leaf, whatever its gradient."""
    tx = steepest.scale_by_novograd()
    p = {"w": G, "b": 1e-3 * G}
    u, state = tx.update(p, tx.init(p), p)
    for x in u.values():
        np.testing.assert_allclose(x, G / 5, rtol=1e-4)
    np.testing.assert_allclose(state.nu["w"], 25.0, rtol=1e-6)
    assert state.nu["w"].shape == state.nu["b"].shape == ()


def test_the_formula_by_hand():
    b1, b2, eps, eps_root, decay = 0.8, 0.7, 1e-2, 1e-3, 0.1
    p, g, h = np.array([1.0, -2.0]), np.array([3.0, -4.0]), np.array([0.5, 1.0])
    nu = 25.0
    mu = g / (np.sqrt(nu + eps_root) + eps) + decay * p
    nu = b2 * nu + (1 - b2) * 1.25
    mu = b1 * mu + h / (np.sqrt(nu + eps_root) + eps) + decay * p
    tx = steepest.scale_by_novograd(b1, b2, eps, eps_root, decay)
    us, state = steps(tx, [g, h], jnp.asarray(p, float))
    np.testing.assert_allclose(us[1], mu, rtol=1e-5)
    np.testing.assert_allclose(state.nu, nu, rtol=1e-5)
    assert state.count == 2


def test_the_length_begins_at_the_first_gradient_even_if_that_is_zero():
    _, state = steps(steepest.scale_by_novograd(b2=0.25), [0 * G, G], G)
    np.testing.assert_allclose(state.nu, 0.75 * 25, rtol=1e-6)


def test_no_gradient_no_step_even_without_eps():
    us, _ = steps(steepest.scale_by_novograd(eps=0.0), [0 * G, 0 * G], G)
    assert not np.any(us[1])


def test_lengths_of_half_precision_are_kept_wide():
    """300^2 + 300^2 is too large for float16."""
    g = jnp.full(2, 300, jnp.float16)
    tx = steepest.scale_by_novograd(mu_dtype="bfloat16")
    u, state = tx.update(g, tx.init(g), g)
    assert (u.dtype, state.mu.dtype, state.nu.dtype) == (
        "float16",
        "bfloat16",
        "float32",
    )
    np.testing.assert_allclose(state.nu, 180000.0)
    np.testing.assert_allclose(u.astype(float), np.sqrt(0.5), rtol=1e-3)


def test_it_needs_the_params():
    tx = steepest.novograd(0.1)
    with pytest.raises(ValueError, match=r"^novograd: `update` needs `params`"):
        tx.update(G, tx.init(G))


def test_impossible_numbers_are_refused():
    with pytest.raises(ODD, match=r"^novograd: weight_decay is inf"):
        steepest.novograd(0.1, weight_decay=float("inf"))


@pytest.mark.usefixtures("as_users_do")
def test_impossible_arguments_are_refused():
    refuses(steepest.scale_by_novograd, weight_decay=NOT_FINITE, mu_dtype=NOT_DTYPES)
