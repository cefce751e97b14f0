"""Lookahead: k steps forward, 1 step back.

Zhang, Lucas, Hinton and Ba, Lookahead optimizer: k steps forward, 1 step back, 2019,
arXiv:1907.08610
"""

import warnings
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int

from .. import check
from ..core import (
    AnyTransformation,
    as_inner,
    GradientTransformationExtraArgs,
    like_optax,
    missing,
    OptState,
    Params,
    Real,
    Transformation,
    transformation,
    Updates,
)
from ..engine import apply_updates, map_wide, wide, WrapperInfo
from ..numerics import zero_count


@like_optax
class LookaheadParams(NamedTuple):
    """The params that take the steps, and those that follow them slowly."""

    fast: Params
    slow: Params

    @classmethod
    def init_synced(cls, params: Params) -> "LookaheadParams":
        """Both at `params`, with arrays of their own, so that both can be donated."""
        copy = jax.tree.map(lambda x: x.copy() if hasattr(x, "copy") else x, params)
        return cls(fast=params, slow=copy)

    @staticmethod
    def fast_of(params: Params) -> Params:
        """Those that gradients are taken at: `fast`, or all if there is one kind."""
        return params.fast if isinstance(params, LookaheadParams) else params


@like_optax
class LookaheadState(NamedTuple):
    """The fast optimizer's state, and how many steps it took since the last meeting."""

    fast_state: OptState
    steps_since_sync: Int[Array, ""]


@transformation
def lookahead(
    fast_optimizer: AnyTransformation,
    sync_period: Real,
    slow_step_size: Real,
    reset_state: bool = False,
) -> GradientTransformationExtraArgs:
    """Let `fast_optimizer` run ahead; every `sync_period` steps meet part of the way.

        fast <- fast + u                                    every step
        slow <- slow + slow_step_size (fast - slow)         every `sync_period` steps,
        fast <- slow                                        and then this

    The params are `LookaheadParams`, the gradients those of `fast`, and the updates are
    to be applied as they are. Evaluate at `slow`.

    Args:
        fast_optimizer: any transformation; it hears the extra arguments.
        sync_period: how many fast steps lie between two meetings, at least 1.
        slow_step_size: how far the slow params go, of the way to the fast ones.
        reset_state: whether the fast optimizer forgets everything at a meeting.

    >>> import steepest
    >>> tx = steepest.lookahead(steepest.sgd(0.1), sync_period=2, slow_step_size=0.5)
    >>> params = steepest.LookaheadParams.init_synced(jnp.array([1.0]))
    >>> state = tx.init(params)
    >>> for _ in range(2):
    ...     updates, state = tx.update(jnp.array([1.0]), state, params)
    ...     params = steepest.apply_updates(params, updates)
    >>> round(float(params.slow[0]), 3)
    0.9
    """
    fast_tx = as_inner("lookahead", "fast_optimizer", fast_optimizer)
    (every,) = check.period("lookahead", sync_period=sync_period)
    (share,) = check.finite("lookahead", slow_step_size=slow_step_size)
    check.flag("lookahead", reset_state=reset_state)

    def init(params: Params) -> LookaheadState:
        if not _has_both(params):
            warnings.warn(
                f"lookahead: `init` got a {type(params).__name__} and takes it for the "
                "fast params. Use `LookaheadParams.init_synced(params)`.",
                stacklevel=2,
            )
            params = LookaheadParams(fast=params, slow=None)
        return LookaheadState(fast_tx.init(params.fast), zero_count())

    def update(
        updates: Updates,
        state: LookaheadState,
        params: Params | None = None,
        **extra_args: Any,
    ) -> tuple[LookaheadParams, LookaheadState]:
        if params is None:
            raise missing("lookahead", "params")
        if not _has_both(params):
            raise TypeError(
                f"lookahead: `update` got a {type(params).__name__} as `params`, "
                "expected `LookaheadParams`. Make them with "
                "`LookaheadParams.init_synced(params)`."
            )
        check.state_of("lookahead", LookaheadState, state)
        ahead, fast_state = fast_tx.update(
            updates, state.fast_state, params.fast, **extra_args
        )
        steps = state.steps_since_sync + 1
        meet = steps >= every
        trees = {"fast": params.fast, "slow": params.slow}
        numbers = [meet, share]
        slow = map_wide("lookahead", _follow, numbers, **trees, updates=ahead)
        fast = map_wide("lookahead", _land, [meet], **trees, step=slow, updates=ahead)
        if reset_state:
            fresh = fast_tx.init(apply_updates(params.slow, slow))
            fast_state = jax.tree.map(partial(jnp.where, meet), fresh, fast_state)
        steps = jnp.where(meet, 0, steps)
        return LookaheadParams(fast, slow), LookaheadState(fast_state, steps)

    info = WrapperInfo("lookahead", fast_tx, "fast_state")
    return Transformation(init, update, info)


_follow = wide(lambda meet, a, fast, slow, u: jnp.where(meet, a * (fast + u - slow), 0))
_land = wide(lambda meet, fast, slow, step, u: jnp.where(meet, slow + step - fast, u))


def _has_both(params: Any) -> bool:
    return hasattr(params, "fast") and hasattr(params, "slow")
