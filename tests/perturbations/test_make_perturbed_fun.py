"""Functions smoothed by noise: Optax's values and gradients, and closed forms."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from steepest import perturbations

from ..unusual import ODD

KEY = jax.random.key(0)
X = jnp.array([1.0, 1.2, 0.5])
TREE = {"a": X, "b": jnp.array([0.3, -0.4])}
OPTIONS = {
    "plain": dict(),
    "no baseline": dict(use_baseline=False),
    "one draw": dict(num_samples=1, sigma=2.0),
    "normal": dict(noise="Normal"),
}
FUNCTIONS = {
    "smooth": lambda x: jnp.sum(jnp.sin(x["a"])) * x["b"],
    "tree": lambda x: {"max": jnp.max(x["a"]), "b": (x["b"],)},
    "choice": lambda x: jax.nn.one_hot(jnp.argmax(x["a"]), 3),
    "index": lambda x: jnp.argmax(x["a"]),
    "truth": lambda x: x["a"] > 1,
}


def _perturbed(library, fun, name):
    chosen = {"num_samples": 4, "sigma": 0.5, **OPTIONS[name]}
    if "noise" in chosen:
        chosen["noise"] = getattr(library, chosen["noise"])()
    return library.make_perturbed_fun(fun, **chosen)


def _same(compute, x, rtol=1e-5, atol=1e-6):
    """The result of `compute(library, x)`, compiled once per library."""
    ours = jax.jit(lambda x: compute(perturbations, x))(x)
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        theirs = jax.jit(lambda x: compute(optax.perturbations, x))(x)
    assert jax.tree.structure(ours) == jax.tree.structure(theirs)
    for a, b in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(
            a.astype(float), b.astype(float), rtol=rtol, atol=atol
        )


def test_values_and_slopes_are_optax_s():
    def compute(library, x):
        perturbed = {
            name: _perturbed(library, FUNCTIONS["smooth"], name) for name in OPTIONS
        }
        return {
            name: (f(KEY, x), jax.jacrev(f, 1)(KEY, x)) for name, f in perturbed.items()
        }

    _same(compute, TREE, rtol=2e-5, atol=2e-6)


def test_functions_that_jump_and_trees():
    def compute(library, x):
        perturbed = {
            name: _perturbed(library, FUNCTIONS[name], "plain")
            for name in ("tree", "choice", "index", "truth")
        }
        return {
            name: (f(KEY, x), jax.jacrev(f, 1)(KEY, x)) for name, f in perturbed.items()
        }

    _same(compute, TREE, atol=1e-5)


def test_in_64_bits_and_to_the_second_order():
    def compute(library, x):
        g = lambda x: jnp.sum(jnp.sin(x))
        perturbed = [_perturbed(library, g, name) for name in ("plain", "normal")]
        return [(f(KEY, x), jax.hessian(f, 1)(KEY, x)) for f in perturbed]

    with jax.enable_x64(True):
        _same(compute, jnp.asarray(np.array([1.0, 1.2, 0.5])), rtol=1e-11, atol=1e-12)


def test_in_half_precision():
    def compute(library, x):
        return _perturbed(library, lambda x: x.sum(), "plain")(KEY, x)

    _same(compute, X.astype(jnp.bfloat16), rtol=2e-2)


def test_forwards_for_many_points_and_by_what_a_function_contains():
    def compute(library, x):
        def value(w, x):
            fun = lambda x: w * jnp.sum(jnp.sin(x))
            return _perturbed(library, fun, "plain")(KEY, x)

        _, forward = jax.jvp(lambda x: value(2.0, x), (x,), (jnp.ones(3),))
        many = jax.vmap(value, (None, 0))(2.0, jnp.stack([x, 2 * x]))
        mixed = jax.grad(lambda w, x: jax.grad(value, 1)(w, x)[0])
        return forward, many, jax.grad(value)(2.0, x), mixed(2.0, x)

    _same(compute, X)


def test_gumbel_noise_makes_an_argmax_a_softmax():
    choice = FUNCTIONS["choice"]
    perturbed = perturbations.make_perturbed_fun(choice, 20_000, sigma=0.5)
    x = {"a": X, "b": TREE["b"]}
    softmax = lambda x: jax.nn.softmax(x["a"] / 0.5)
    value, ours = jax.jit(
        lambda x: (perturbed(KEY, x), jax.jacrev(perturbed, 1)(KEY, x))
    )(x)
    np.testing.assert_allclose(value, softmax(x), atol=0.01)
    ours = ours["a"]
    np.testing.assert_allclose(ours, jax.jacobian(softmax)(x)["a"], atol=0.05)


def test_the_slope_by_sigma_is_that_of_the_mean():
    """E (x + sigma z)^2 = x^2 + sigma^2.

    Optax omits the factor 1 / sigma of the density.
    """

    def value(sigma):
        noise = perturbations.Normal()
        fun = lambda x: jnp.sum(x * x)
        return perturbations.make_perturbed_fun(fun, 50_000, sigma, noise)(KEY, X)

    np.testing.assert_allclose(jax.jit(jax.grad(value))(0.8), 3 * 2 * 0.8, rtol=0.1)


def test_without_noise_it_is_the_function():
    """Optax divides by zero."""
    fun = lambda x: jnp.sum(x * x)
    still = perturbations.make_perturbed_fun(fun, 3, sigma=0.0)
    value, slope = jax.jit(jax.value_and_grad(still, 1))(KEY, X)
    np.testing.assert_allclose(value, fun(X), rtol=1e-6)
    assert jnp.isfinite(slope).all()


def test_numbers_none_and_nothing():
    twice = perturbations.make_perturbed_fun(lambda x: 2 * x["a"], 3, sigma=0.0)
    assert twice(KEY, {"a": 1.5, "b": None}) == 3
    assert perturbations.make_perturbed_fun(lambda x: 1.0, 3)(KEY, {}) == 1


class Logistic:
    """A custom noise distribution."""

    def sample(self, key, sample_shape=(), dtype=float):
        return jax.random.logistic(key, sample_shape, dtype)

    def log_prob(self, inputs):
        return -inputs - 2 * jax.nn.softplus(-inputs)


def test_noise_of_one_s_own():
    def compute(library, x):
        fun = lambda x: jnp.sum(x * x)
        perturbed = library.make_perturbed_fun(fun, 4, 0.5, Logistic())
        return jax.value_and_grad(perturbed, 1)(KEY, x)

    _same(compute, X)


@pytest.mark.parametrize(
    "make, said",
    [
        (dict(num_samples=0), "num_samples is 0"),
        (dict(sigma=-1.0), r"sigma is -1\.0, .* number of at least 0"),
    ],
    ids=["no draws", "negative sigma"],
)
def test_impossible_arguments_are_refused_by_name(make, said):
    with pytest.raises(ODD, match=f"^make_perturbed_fun: {said}"):
        perturbations.make_perturbed_fun(lambda x: x, **make)


def test_noise_is_added_to_real_numbers():
    perturbed = perturbations.make_perturbed_fun(lambda x: x, 2)
    with pytest.raises(
        ValueError, match=r"leaf \['i'\] has dtype int32, expected real"
    ):
        perturbed(KEY, {"i": jnp.arange(3)})
