"""Differential privacy: the update reveals little about any single example.

Abadi et al., Deep learning with differential privacy, 2016, arXiv:1607.00133
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike, DTypeLike
from jaxtyping import Array

from .. import check
from ..combine import chain
from ..core import (
    GradientTransformationExtraArgs,
    like_optax,
    OptState,
    Params,
    Real,
    ScalarOrSchedule,
    transformation,
    Updates,
)
from ..engine import Leaves, optimizer, restore, update_dtype, widen, wrapping
from ..numerics import abs_sq, key_from, root, wide_dtype
from ..transforms import identity, scale_by_learning_rate, trace


@like_optax
class DifferentiallyPrivateAggregateState(NamedTuple):
    """State: the random key for the next step."""

    rng_key: Array


@transformation
def differentially_private_aggregate(
    l2_norm_clip: Real,
    noise_multiplier: Real,
    key: ArrayLike | None = None,
    *,
    seed: int | None = None,
) -> GradientTransformationExtraArgs:
    """Clip the gradient of each example, average them, and add noise.

        u = (sum over i of g_i min(1, l2_norm_clip / |g_i|) + sigma normal) / size
        sigma = l2_norm_clip noise_multiplier

    Every leaf of the gradients has an extra leading axis for the examples, as
    `jax.vmap(jax.grad(loss), (None, 0))` returns them. `|g_i|` is the norm over all
    leaves. This must be the first transformation in a chain.

    Inside `jax.shard_map`, every device draws the same noise for its shard and measures
    only its own shard. Let `jit` handle the mesh axes that shard the params.

    Args:
        l2_norm_clip: the largest norm of the gradient of one example.
        noise_multiplier: standard deviation of the noise divided by `l2_norm_clip`.
        key: a `jax.random` key, or an integer seed.
        seed: the former name of `key`.
    """
    name = "differentially_private_aggregate"
    clip, noise = _checked(name, l2_norm_clip, noise_multiplier)
    first = key_from(name, key, seed)

    def init(params: Params) -> DifferentiallyPrivateAggregateState:
        del params
        return DifferentiallyPrivateAggregateState(first)

    def update(
        updates: Updates,
        state: OptState,
        params: Params | None = None,
        **extra_args: object,
    ) -> tuple[Updates, DifferentiallyPrivateAggregateState]:
        del params, extra_args
        state = check.state_of(name, DifferentiallyPrivateAggregateState, state)
        Leaves(updates).check(name)
        leaves, treedef = jax.tree.flatten(updates)
        _check_examples(name, [jnp.shape(g) for g in leaves])
        rng, *keys = jax.random.split(state.rng_key, len(leaves) + 1)
        real = wide_dtype(leaves)
        gs = [widen(jnp.asarray(g), real, integers=True) for g in leaves]
        squares = [jnp.sum(abs_sq(g), axis=range(1, g.ndim)) for g in gs]
        factors = sum(squares[1:], squares[0]) if squares else jnp.zeros((1,))
        factors = jnp.minimum(1, clip / root(factors))
        means = []
        for g, k, was in zip(gs, keys, leaves, strict=True):
            clipped = jnp.tensordot(factors.astype(g.dtype), g, 1)
            noisy = clipped + clip * noise * jax.random.normal(k, g.shape[1:], g.dtype)
            size = jnp.asarray(g.shape[0], g.dtype)
            means.append(restore(noisy / size, update_dtype(was, None)))
        state = DifferentiallyPrivateAggregateState(rng)
        return treedef.unflatten(means), state

    return wrapping(init, update)


@optimizer
def dpsgd(
    learning_rate: ScalarOrSchedule,
    l2_norm_clip: Real,
    noise_multiplier: Real,
    seed: ArrayLike,
    momentum: Real | None = None,
    nesterov: bool = False,
    *,
    memory_dtype: DTypeLike | None = None,
    keep_count: bool = False,
) -> GradientTransformationExtraArgs:
    """Private SGD: `sgd` after `differentially_private_aggregate`.

    Inside `jax.shard_map`, every device draws the same noise for its shard and measures
    only its own shard. Let `jit` handle the mesh axes that shard the params.

    Args:
        learning_rate: a number, or a schedule (a function of the step count).
        l2_norm_clip: the largest norm of the gradient of one example.
        noise_multiplier: standard deviation of the noise divided by `l2_norm_clip`.
        seed: a `jax.random` key, or an integer seed.
        momentum: decay rate of the momentum; `None` for no momentum.
        nesterov: whether to use Nesterov momentum.
        memory_dtype: dtype of the arrays in the state that have no option of their own,
            such as `mu_dtype`, or where it is `None`; by default that of the params, or
            wider. With "int8", "int4" or "float8", averages for large matrices are
            stored in 8 or 4 bits: see `keeping`.
        keep_count: whether to count the steps even if the learning rate is a number, so
            that a schedule can replace it later.

    >>> import jax.numpy as jnp, steepest
    >>> tx = steepest.contrib.dpsgd(0.1, l2_norm_clip=1.0, noise_multiplier=0.0, seed=0)
    >>> each = jnp.array([[3.0, 4.0], [0.6, 0.8]])
    >>> updates, state = tx.update(each, tx.init(jnp.zeros(2)))
    >>> [round(float(u), 2) for u in updates]
    [-0.06, -0.08]
    """
    _checked("dpsgd", l2_norm_clip, noise_multiplier)
    check.flag("dpsgd", nesterov=nesterov)
    direction = identity()
    if momentum is not None:
        (decay,) = check.fraction("dpsgd", momentum=momentum)
        direction = trace(decay, nesterov)
    return chain(
        differentially_private_aggregate(l2_norm_clip, noise_multiplier, seed),
        direction,
        scale_by_learning_rate(check.rate_given("dpsgd", learning_rate)),
    )


def _check_examples(name: str, shapes: list[tuple[int, ...]]) -> None:
    """Check that the first axes of all gradients have the same size, above 0."""
    if len({shape[:1] or None for shape in shapes}) > 1 or () in shapes:
        raise ValueError(
            f"{name}: the gradients have shapes {shapes}, expected a leading axis of "
            "examples, of the same size in all. Compute the gradient of each example "
            "with `jax.vmap(jax.grad(loss), (None, 0))`."
        )
    if (0,) in [shape[:1] for shape in shapes]:
        raise ValueError(f"{name}: got no examples, expected one or more.")


def _checked(name: str, l2_norm_clip: Real, noise_multiplier: Real) -> list[Real]:
    """The two numbers, after checking that they are finite and not negative."""
    numbers = {"l2_norm_clip": l2_norm_clip, "noise_multiplier": noise_multiplier}
    check.finite(name, **numbers)
    return check.nonnegative(name, **numbers)
