"""Weights in half precision, rounded up or down at random.

Gupta, Agrawal, Gopalakrishnan and Narayanan, Deep learning with limited numerical
precision, 2015, arXiv:1502.02551
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array

from .. import check
from ..core import (
    AnyTransformation,
    as_inner,
    GradientTransformationExtraArgs,
    missing,
    OptState,
    Params,
    Transformation,
    transformation,
    Updates,
)
from ..engine import apply_updates, Landed, Leaves, Plan, WrapperInfo
from ..numerics import (
    at_random,
    Corrected,
    dither,
    inlined,
    is_half,
    key_from,
    seeds,
    way,
)
from ._half_weights import advanced, widened

_NAME = "stochastic_rounding"


class StochasticRoundingState(NamedTuple):
    """The inner state, and a random key."""

    inner_state: OptState
    rng_key: Array  # the key of the next step


@transformation
def stochastic_rounding(
    inner: AnyTransformation, key: ArrayLike
) -> GradientTransformationExtraArgs:
    """Apply `inner`, and round bfloat16 and float16 params up or down at random.

        x  = p + u                          in float32
        p <- one of the two neighbours of x, with mean x

    Rounded to nearest, a bfloat16 weight ignores steps below 0.2 % of it. Rounded at
    random, such steps are kept on average, and add noise. This needs no memory, and the
    state is that of `inner` for half-precision params. `compensated` adds no noise.

    The gradients are passed to `inner` in float32. The update is float32. Added by
    `apply_updates`, it lands exactly on the new `p`. `make_step` writes `p` without it,
    and on a GPU in the same kernel as memory in 8 bits. Nothing may follow in a chain.
    Leaves in other dtypes are updated by `inner` alone. Derivatives of the update are
    zero. A finite number stays finite.

    The random bits of a weight depend on its index in the whole array, so under `jit`
    sharding changes nothing. Inside `jax.shard_map` all devices draw the same bits for
    their shards.

    Args:
        inner: any transformation; it receives the extra arguments.
        key: a key of `jax.random`, or an integer seed.

    >>> import jax.numpy as jnp, steepest
    >>> tx = steepest.stochastic_rounding(steepest.sgd(1.0), key=0)
    >>> p = jnp.ones(1000, jnp.bfloat16)
    >>> u, state = tx.update(jnp.full(1000, 1e-3, jnp.bfloat16), tx.init(p), p)
    >>> new = steepest.apply_updates(p, u)
    >>> round(float(jnp.mean(new.astype(float))), 3)  # 1.0 if rounded to nearest
    0.999
    """
    tx = as_inner(_NAME, "inner", inner)
    plan: Any = getattr(tx, "info", None)
    first = key_from(_NAME, key)

    def init(params: Params) -> StochasticRoundingState:
        # A copy, so that `init` can be called again after the state was donated.
        return StochasticRoundingState(tx.init(params), jnp.copy(first))

    def update(
        updates: Updates,
        state: StochasticRoundingState,
        params: Params | None = None,
        **extra_args: object,
    ) -> tuple[Updates, StochasticRoundingState]:
        if params is None:
            raise missing(_NAME, "params")
        check.state_of(_NAME, StochasticRoundingState, state)
        leaves = Leaves(params, "params")
        leaves.check(_NAME)
        us, inner_state = tx.update(
            widened(updates), state.inner_state, params, **extra_args
        )
        advice = "`inner` must return updates like the params."
        news = leaves.match(_NAME, us, "inner updates", advice)
        both = list(zip(leaves.arrays, news, strict=True))
        mine = [k for k, pair in enumerate(both) if _is_rounded(*pair)]
        ps = [leaves.arrays[k] for k in mine]
        sums = apply_updates(widened(ps), [news[k] for k in mine])
        key, now = jax.random.split(state.rng_key)
        for k, x, p, seed in zip(mine, sums, ps, seeds(now, len(ps)), strict=True):
            news[k] = _land(x, p, seed)
        return leaves.like(news), StochasticRoundingState(inner_state, key)

    def advance(
        updates: Updates,
        state: StochasticRoundingState,
        params: Params,
        extra_args: dict[str, object],
    ) -> tuple[Updates, StochasticRoundingState]:
        """The same step, without the detour over an update."""
        check.state_of(_NAME, StochasticRoundingState, state)
        leaves = Leaves(params, "params")
        leaves.check(_NAME)
        advice = "Pass the gradients of these params."
        grads = leaves.match(_NAME, updates, "updates", advice)
        weights: list[Any] = list(leaves.arrays)
        mine = [k for k, p in enumerate(weights) if _is_rounded(p, grads[k])]
        key, now = jax.random.split(state.rng_key)
        for k, seed in zip(mine, seeds(now, len(mine)), strict=True):
            weights[k] = Corrected(weights[k], None, seed)
        news, inner_state = advanced(
            plan, leaves, weights, updates, state.inner_state, extra_args
        )
        for k in mine:
            news[k] = Landed(news[k].half)
        return leaves.like(news), StochasticRoundingState(inner_state, key)

    of_rules = isinstance(plan, Plan) and plan.has_only_rules
    info = WrapperInfo(_NAME, tx, "inner_state", advance=advance if of_rules else None)
    return Transformation(init, update, info)


@inlined
def _land(x: Array, p: Array, seed: Array) -> Array:
    noise = dither(seed, x, jnp.uint16)
    return way(at_random(x.astype(jnp.float32), p.dtype, noise), p)


def _is_rounded(p: Any, u: Any) -> bool:
    return p is not None and u is not None and is_half(p.dtype)
