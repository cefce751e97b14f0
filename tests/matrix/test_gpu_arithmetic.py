"""The arithmetic of a GPU, on a CPU: products of float16 and of three bfloat16.

Only the kernels are missing. Rounding to 11 bits makes other gradients difficult than
rounding to 24: rows of a factor that differ little become equal, and sums of squares
and slopes leave the range of float16.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import steepest

from ._reference import matrix
from ._runs import no_gradient_makes_it_infinite

RUNS = {
    "soap": steepest.scale_by_soap(frequency=2),
    "soap, as in the paper": steepest.scale_by_soap(frequency=2, rolled=False),
    "soap, fresh": steepest.scale_by_soap(frequency=2, fresh=True),
    "soap, kl": steepest.scale_by_soap(frequency=2, factors="kl"),
    "soap_muon": steepest.scale_by_soap_muon(frequency=2),
    "splus": steepest.scale_by_splus(frequency=2),
    "shampoo": steepest.scale_by_shampoo(frequency=2),
    "shampoo, no eps": steepest.scale_by_shampoo(frequency=2, eps=0.0),
    "shampoo, trace": steepest.scale_by_shampoo(
        frequency=2, trace=True, exponent=0.5, graft="none"
    ),
    "shampoo, kl": steepest.scale_by_shampoo(frequency=2, factors="kl"),
    "psgd": steepest.scale_by_psgd(frequency=2),
    "muon": steepest.scale_by_polar(),
}


@pytest.fixture(autouse=True, scope="module")
def on_a_gpu():
    """Programs of other tests are not those of a GPU, and the reverse."""
    jax.clear_caches()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jax, "default_backend", lambda: "gpu")
        yield
    jax.clear_caches()


@pytest.mark.parametrize("name", RUNS)
def test_no_gradient_makes_it_infinite(name):
    no_gradient_makes_it_infinite(RUNS[name])


@pytest.mark.parametrize("name", RUNS)
def test_the_slope_at_a_zero_gradient_is_finite(name):
    """`x / (sqrt(nu) + eps)` has a slope of 1e8 there."""
    tx, p = RUNS[name], jnp.ones((4, 6))

    def moved(c):
        u, _ = tx.update(c * 0 * p, tx.init(p), p)
        return jnp.sum(u)

    assert np.isfinite(jax.jit(jax.grad(moved))(1.0))


@pytest.mark.parametrize("name", ["soap", "splus", "shampoo"])
def test_the_size_of_the_gradient_does_not_matter(name):
    """Numbers are divided by their size before they are rounded to float16."""
    tx, shape = RUNS[name], (4, 6)

    def last(scale):
        state = tx.init(jnp.zeros(shape))
        for t in range(6):
            u, state = tx.update(scale * matrix(t, *shape), state)
        return u

    one, large = last(1.0), last(1e12)
    np.testing.assert_allclose(large, one, rtol=0.02, atol=0.02 * abs(one).max())


@pytest.mark.parametrize(
    "tx",
    [
        steepest.scale_by_soap(frequency=1),
        steepest.scale_by_soap(frequency=1, factors="kl"),
        steepest.scale_by_soap(frequency=2, rolled=False),
        steepest.scale_by_soap_muon(frequency=1),
        steepest.scale_by_shampoo(frequency=1),
    ],
    ids=repr,
)
def test_a_leaf_of_a_stack_has_its_own_mean_of_squares(tx):
    """Some memory of a stack is computed for each leaf."""
    gs = {k: [matrix(4 * k + t, 4, 6) for t in range(4)] for k in range(3)}

    def squares(keys):
        take = lambda t: {k: jnp.asarray(gs[k][t]) for k in keys}
        state = tx.init(take(0))
        for t in range(4):
            _, state = tx.update(take(t), state)
        return state.nu

    together = squares([0, 1, 2])
    for k, nu in together.items():
        alone = squares([k])[k]
        assert (np.abs(nu) > 0).any()
        np.testing.assert_allclose(nu, alone, rtol=0.02, atol=0.02 * alone.max())
