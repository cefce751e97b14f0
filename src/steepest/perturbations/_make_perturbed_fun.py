"""Smooth a discontinuous function by adding noise to its input.

Berthet et al., Learning with differentiable perturbed optimizers, 2020,
arXiv:2002.08676
Foerster et al., DiCE: the infinitely differentiable Monte Carlo estimator, 2018,
arXiv:1802.05098
"""

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
from jax.lax import stop_gradient
from jax.typing import ArrayLike
from jaxtyping import Array, PyTree

from .. import check
from ..core import Real
from ..numerics import at_least_float32
from ..tree import leaf_paths
from ._noise import Gumbel, Noise


def make_perturbed_fun(
    fun: Callable[[PyTree], PyTree],
    num_samples: int = 1000,
    sigma: Real = 0.1,
    noise: Noise = Gumbel(),  # noqa: B008 (it has no state)
    use_baseline: bool = True,
) -> Callable[[ArrayLike, PyTree], PyTree]:
    """The mean of `fun` around a point: smooth even where `fun` jumps or is flat.

        F(x)  = mean_k fun(x + sigma z_k)
        F'(x) = mean_k (fun(x + sigma z_k) - fun(x)) (-grad log p(z_k)) / sigma

    The derivatives in `x` and `sigma`, of any order, use only the density `p` of the
    noise: `fun` is never differentiated in its argument. Other variables that it closes
    over are differentiated as usual.

    Args:
        fun: a function of a tree of arrays, for instance an argmax.
        num_samples: number of samples in the mean.
        sigma: scale of the noise.
        noise: the distribution of the noise, with `sample` and `log_prob`.
        use_baseline: whether to subtract `fun(x)` in the derivatives, which reduces
            their variance and keeps their mean.

    Returns:
        A function of a random key and the point.

    >>> import jax, jax.numpy as jnp
    >>> choice = make_perturbed_fun(lambda x: jax.nn.one_hot(jnp.argmax(x), 2), 10)
    >>> choice(jax.random.key(0), jnp.array([0.0, 5.0])).tolist()
    [0.0, 1.0]
    """
    name = "make_perturbed_fun"
    check.function(name, fun=fun)
    if isinstance(noise, type) or not isinstance(noise, Noise):
        raise TypeError(
            f"{name}: noise is {noise!r}, expected an object with `sample` and "
            "`log_prob`, such as `Gumbel()` or `Normal()`."
        )
    (num_samples,) = check.period(name, num_samples=num_samples)
    (sigma,) = check.nonnegative(name, sigma=sigma)
    sample = partial(_sample, noise, sigma)

    def perturbed(key: ArrayLike, x: PyTree) -> PyTree:
        check.key(name, key=key)
        x = _real(name, x)
        keys = jax.random.split(key, num_samples)
        near, log_p = jax.vmap(sample, (0, None))(keys, x)
        weight = jnp.exp(log_p)
        # Map over the keys too: the tree may have no array to map over.
        values = jax.vmap(lambda _, x: fun(x))(keys, near)
        if not use_baseline:
            return jax.tree.map(lambda f: _mean(weight, _float(f)), values)
        base = jax.tree.map(_float, fun(jax.tree.map(stop_gradient, x)))
        return jax.tree.map(
            lambda f, b: (b + _mean(weight, _float(f) - b[None])).astype(b.dtype),
            values,
            base,
        )

    return perturbed


def _sample(noise: Noise, sigma: Real, key: Array, x: PyTree) -> tuple[PyTree, Array]:
    """A point near `x`, and its log-likelihood: value 0, but true derivatives."""
    # With sigma 0 there is no division by zero: the gradient is that of a constant.
    spread = jnp.where(sigma == 0, 1.0, sigma)
    leaves, tree = jax.tree.flatten(x)
    keys = jax.random.split(key, max(len(leaves), 1))
    near, log_p = [], jnp.zeros(())
    for k, leaf in zip(keys, leaves, strict=False):
        z = noise.sample(k, leaf.shape, leaf.dtype)
        near.append(stop_gradient(leaf + (sigma * z).astype(leaf.dtype)))
        # The same draw, seen from `x` and `sigma`: (near - x) / sigma.
        wide, x_, z_ = map(at_least_float32, (leaf, stop_gradient(leaf), z))
        seen = (x_ - wide) / spread + z_ * (stop_gradient(spread) / spread)
        # The density of `sigma z` is that of `z` divided by `sigma`.
        one = noise.log_prob(seen) - jnp.log(jnp.abs(spread))
        log_p = log_p + jnp.sum(one.astype(float))
    return tree.unflatten(near), log_p - stop_gradient(log_p)


def _real(name: str, x: PyTree) -> PyTree:
    for path, leaf in zip(
        leaf_paths(x), jax.tree.leaves(x, is_leaf=_none), strict=True
    ):
        if leaf is None:
            continue
        numbers = check.is_number(leaf)
        if not numbers or not jnp.issubdtype(jnp.result_type(leaf), jnp.floating):
            raise check.WrongArgument(
                f"{name}: leaf {path} {check.kind(leaf)}, expected real numbers, "
                "to add noise to. Convert it with `.astype(float)`."
            )
    return jax.tree.map(jnp.asarray, x)


def _none(x: object) -> bool:
    return x is None


def _float(f: ArrayLike) -> Array:
    """Integers and booleans as floats, so that they have a mean."""
    f = jnp.asarray(f)
    return f if jnp.issubdtype(f.dtype, jnp.inexact) else f.astype(float)


def _mean(weight: Array, f: Array) -> Array:
    """The mean of `weight f` over the samples; weights are 1 with true derivatives."""
    weight = weight.astype(f.dtype).reshape(-1, *[1] * (f.ndim - 1))
    return jnp.mean(jnp.broadcast_to(weight, f.shape) * f, axis=0)
