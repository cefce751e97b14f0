"""Noise distributions: the same draws as Optax, and correct densities."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from scipy import stats

from steepest import perturbations

KEY = jax.random.key(1)
kinds = pytest.mark.parametrize("kind", ["Gumbel", "Normal"])


@kinds
@pytest.mark.parametrize(
    "arguments",
    [(), ((3,),), ((2, 2), jnp.bfloat16), (3, jnp.float32)],
    ids=["one", "some", "half", "a number"],
)
def test_draws_are_optax_s(kind, arguments):
    ours = getattr(perturbations, kind)().sample(KEY, *arguments)
    theirs = getattr(optax.perturbations, kind)().sample(KEY, *arguments)
    np.testing.assert_array_equal(ours, theirs)
    assert ours.dtype == theirs.dtype


@kinds
def test_densities_are_optax_s(kind):
    x = jnp.array([0.0, 1.0, -2.0, 30.0])
    ours, theirs = (
        getattr(library, kind)().log_prob(x)
        for library in (perturbations, optax.perturbations)
    )
    np.testing.assert_allclose(ours, theirs, rtol=1e-6)
    exact = {"Gumbel": stats.gumbel_r, "Normal": stats.norm}[kind].logpdf(x)
    np.testing.assert_allclose(ours - ours[0], exact - exact[0], rtol=1e-5)


@kinds
def test_numbers_have_densities(kind):
    assert float(getattr(perturbations, kind)().log_prob(1.0)) < 0


@kinds
@pytest.mark.parametrize(
    "arguments, said",
    [
        ((3, (2,)), "key is a int, expected one random key."),
        (
            (KEY, (-2,)),
            "sample_shape is (-2,), expected a sequence of whole numbers of at",
        ),
        (
            (KEY, (2,), int),
            "dtype is <class 'int'>, expected a dtype of real numbers, such",
        ),
    ],
    ids=["key", "shape", "dtype"],
)
def test_what_cannot_be_drawn_is_refused(kind, arguments, said, as_users_do):
    with pytest.raises((TypeError, ValueError)) as caught:
        getattr(perturbations, kind)().sample(*arguments)
    assert str(caught.value).startswith(f"{kind}.sample: {said}")
