"""Lookahead: k steps forward, 1 step back.

Zhang, Lucas, Hinton and Ba, Lookahead optimizer: k steps forward, 1 step back, 2019,
arXiv:1907.08610
"""

import warnings
from functools import partial
from typing import NamedTuple

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
from ..engine import apply_updates, map_wide, wide, WrapperInfo, zeros_for_none
from ..numerics import zero_count


@like_optax
class LookaheadParams(NamedTuple):
    """The fast params, which take the steps, and the slow params, which follow them."""

    fast: Params
    slow: Params

    @classmethod
    def init_synced(cls, params: Params) -> "LookaheadParams":
        """Fast and slow params from `params`; `slow` is a copy, so both can be donated.

        Args:
            params: the initial params.
        """
        copy = jax.tree.map(lambda x: x.copy() if hasattr(x, "copy") else x, params)
        return cls(fast=params, slow=copy)

    @staticmethod
    def fast_of(params: Params) -> Params:
        """The params to differentiate at: `fast`, or `params` without lookahead.

        Args:
            params: `LookaheadParams` or plain params.
        """
        return params.fast if isinstance(params, LookaheadParams) else params


@like_optax
class LookaheadState(NamedTuple):
    """The fast optimizer's state, and its number of steps since the last sync."""

    fast_state: OptState
    steps_since_sync: Int[Array, ""]


@transformation
def lookahead(
    fast_optimizer: AnyTransformation,
    sync_period: Real,
    slow_step_size: Real,
    reset_state: bool = False,
) -> GradientTransformationExtraArgs:
    """Run `fast_optimizer`, and average with slow params every `sync_period` steps.

        fast <- fast + u                                    every step
        slow <- slow + slow_step_size (fast - slow)         every `sync_period` steps,
        fast <- slow                                        then this

    The params are `LookaheadParams` and the gradients are taken at `fast`. Apply the
    updates with `apply_updates`. Evaluate at `slow`.

    Args:
        fast_optimizer: any transformation; it receives the extra arguments.
        sync_period: the number of fast steps between two syncs, at least 1.
        slow_step_size: the fraction of the distance to the fast params that the slow
            params move at a sync.
        reset_state: whether to reset the fast optimizer's state at a sync.

    >>> import jax.numpy as jnp, steepest
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
                f"lookahead: `init` got a {type(params).__name__} and uses it as the "
                "fast params. Pass `LookaheadParams.init_synced(params)`.",
                stacklevel=2,
            )
            params = LookaheadParams(fast=params, slow=None)
        return LookaheadState(fast_tx.init(params.fast), zero_count())

    def update(
        updates: Updates,
        state: LookaheadState,
        params: Params | None = None,
        **extra_args: object,
    ) -> tuple[LookaheadParams, LookaheadState]:
        both = _with_both(params)
        check.state_of("lookahead", LookaheadState, state)
        ahead, fast_state = fast_tx.update(
            updates, state.fast_state, both.fast, **extra_args
        )
        # A leaf without gradient takes part in a sync, too.
        ahead = zeros_for_none(ahead, both.fast)
        steps = state.steps_since_sync + 1
        sync = steps >= every
        trees = {"fast": both.fast, "slow": both.slow}
        numbers = [sync, share]
        slow = map_wide("lookahead", _follow, numbers, **trees, updates=ahead)
        fast = map_wide("lookahead", _land, [sync], **trees, step=slow, updates=ahead)
        if reset_state:
            fresh = fast_tx.init(apply_updates(both.slow, slow))
            fast_state = jax.tree.map(partial(jnp.where, sync), fresh, fast_state)
        steps = jnp.where(sync, 0, steps)
        return LookaheadParams(fast, slow), LookaheadState(fast_state, steps)

    info = WrapperInfo("lookahead", fast_tx, "fast_state")
    return Transformation(init, update, info)


# The updates of the slow params, and those of the fast params.
_follow = wide(lambda sync, a, fast, slow, u: jnp.where(sync, a * (fast + u - slow), 0))
_land = wide(lambda sync, fast, slow, step, u: jnp.where(sync, slow + step - fast, u))


def _with_both(params: Params | None) -> Params:
    """The params of `update`, which must be `LookaheadParams`."""
    if params is None:
        raise missing("lookahead", "params")
    if not _has_both(params):
        raise TypeError(
            f"lookahead: `update` got a {type(params).__name__} as `params`, expected "
            "`LookaheadParams`. Make them with `LookaheadParams.init_synced(params)`."
        )
    return params


def _has_both(params: Params) -> bool:
    return hasattr(params, "fast") and hasattr(params, "slow")
