"""Differential privacy: the update reveals little about any single example.

Abadi et al., Deep learning with differential privacy, 2016, arXiv:1607.00133
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
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
    """The key of the next noise."""

    rng_key: Array


@transformation
def differentially_private_aggregate(
    l2_norm_clip: Real,
    noise_multiplier: Real,
    key: Any = None,
    *,
    seed: int | None = None,
) -> GradientTransformationExtraArgs:
    """The mean of the clipped gradients of single examples, with noise.

        u = (sum over i of g_i min(1, l2_norm_clip / |g_i|) + sigma normal) / size
        sigma = l2_norm_clip noise_multiplier

    Every leaf of the gradients has one more axis than its param, in front: the
    examples, as `jax.vmap(jax.grad(loss), (None, 0))` makes them. `|g_i|` is the length
    of all leaves together. This must be the first transformation in a chain.

    Inside `jax.shard_map`, every device draws the same noise for its shard, and measures
    only its own shard. Let `jit` handle the mesh axes that shard the params.

    Args:
        l2_norm_clip: the largest length that the gradient of an example may have.
        noise_multiplier: the size of the noise, in units of `l2_norm_clip`.
        key: a key of `jax.random`, or a seed for one.
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
        **extra_args: Any,
    ) -> tuple[Updates, DifferentiallyPrivateAggregateState]:
        del params, extra_args
        state = check.state_of(name, DifferentiallyPrivateAggregateState, state)
        Leaves(updates).check(name)
        leaves, treedef = jax.tree.flatten(updates)
        shapes = [jnp.shape(g) for g in leaves]
        if len({shape[:1] or None for shape in shapes}) > 1 or () in shapes:
            raise ValueError(
                f"{name}: the gradients have shapes {shapes}, expected one axis of "
                "examples, of one size in front of all. Take them one by one, with "
                "`jax.vmap(jax.grad(loss), (None, 0))`."
            )
        if (0,) in [shape[:1] for shape in shapes]:
            raise ValueError(f"{name}: got no examples, expected one or more.")
        rng, *keys = jax.random.split(state.rng_key, len(leaves) + 1)
        real = wide_dtype(leaves)
        gs = [widen(jnp.asarray(g), real, integers=True) for g in leaves]
        squares = [jnp.sum(abs_sq(g), axis=range(1, g.ndim)) for g in gs]
        factors = sum(squares[1:], squares[0]) if squares else jnp.zeros((1,))
        factors = jnp.minimum(1, clip / root(factors))
        found = []
        for g, k, was in zip(gs, keys, leaves, strict=True):
            clipped = jnp.tensordot(factors.astype(g.dtype), g, 1)
            noisy = clipped + clip * noise * jax.random.normal(k, g.shape[1:], g.dtype)
            size = jnp.asarray(g.shape[0], g.dtype)
            found.append(restore(noisy / size, update_dtype(was, None)))
        state = DifferentiallyPrivateAggregateState(rng)
        return treedef.unflatten(found), state

    return wrapping(init, update)


@optimizer
def dpsgd(
    learning_rate: ScalarOrSchedule,
    l2_norm_clip: Real,
    noise_multiplier: Real,
    seed: Any,
    momentum: Real | None = None,
    nesterov: bool = False,
    *,
    memory_dtype: Any = None,
    keep_count: bool = False,
) -> GradientTransformationExtraArgs:
    """Private gradient descent: `sgd`, after `differentially_private_aggregate`.

    Inside `jax.shard_map`, every device draws the same noise for its shard, and measures
    only its own shard. Let `jit` handle the mesh axes that shard the params.

    Args:
        learning_rate: a number, or a schedule (a function of the step count).
        l2_norm_clip, noise_multiplier: as for `differentially_private_aggregate`.
        seed: a key of `jax.random`, or a seed for one.
        momentum: the `decay` of `trace`; `None` for no momentum.
        nesterov: as for `trace`.
        memory_dtype, keep_count: as for `keeping`.

    >>> import steepest
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


def _checked(name: str, l2_norm_clip: Real, noise_multiplier: Real) -> list[Any]:
    """The two numbers: noise of infinite size is refused."""
    given = {"l2_norm_clip": l2_norm_clip, "noise_multiplier": noise_multiplier}
    check.finite(name, **given)
    return check.nonnegative(name, **given)
