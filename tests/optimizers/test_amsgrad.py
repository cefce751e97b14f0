"""AMSGrad alone."""

from itertools import pairwise

import jax.numpy as jnp
import numpy as np
import pytest

import steepest

from ._refused import NOT_DTYPES, NOT_FLAGS, refuses
from ._steps import steps

G = jnp.array([3.0, -0.5])


def test_the_divisor_never_falls():
    tx = steepest.scale_by_amsgrad(b2=0.5)
    gs = [G, 0.1 * G, 5 * G, 0 * G, G]
    tops = [steps(tx, gs[: k + 1])[1].nu_max for k in range(len(gs))]
    for before, after in pairwise(tops):
        assert (after >= before).all()


def test_it_is_adam_while_gradients_grow():
    gs = [G, 2 * G, 4 * G]
    ours, _ = steps(steepest.amsgrad(0.1), gs)
    want, _ = steps(steepest.adam(0.1), gs)
    np.testing.assert_allclose(ours[-1], want[-1], rtol=1e-6)


@pytest.mark.parametrize("of_mu", [True, False])
@pytest.mark.parametrize("of_nu", [True, False])
def test_each_bias_may_be_left(of_mu, of_nu):
    """After one step: mu = (1 - b1) g, nu = (1 - b2) g^2."""
    tx = steepest.scale_by_amsgrad(
        0.9, 0.96, 0.0, bias_correction_mu=of_mu, bias_correction_nu=of_nu
    )
    us, state = steps(tx, [G])
    want = (1.0 if of_mu else 0.1) / (1.0 if of_nu else 0.2)
    np.testing.assert_allclose(us[0], want * jnp.sign(G), rtol=1e-5)
    np.testing.assert_allclose(state.nu_max, (1 if of_nu else 0.04) * G**2, rtol=1e-5)


def test_the_mean_is_kept_in_the_dtype_that_is_asked_for():
    state = steepest.amsgrad(0.1, mu_dtype="bfloat16").init(G)
    assert state[0].mu.dtype == jnp.bfloat16
    assert state[0].nu.dtype == state[0].nu_max.dtype == jnp.float32


def test_impossible_numbers_are_refused():
    with pytest.raises(ValueError, match=r"^amsgrad: eps_root is -1.0"):
        steepest.amsgrad(0.1, eps_root=-1.0)


@pytest.mark.usefixtures("as_users_do")
def test_impossible_arguments_are_refused():
    refuses(
        steepest.scale_by_amsgrad,
        mu_dtype=NOT_DTYPES,
        bias_correction_mu=NOT_FLAGS,
        bias_correction_nu=NOT_FLAGS,
    )
