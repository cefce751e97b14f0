"""Sharpness-aware minimization: descend with the gradient at the worst nearby point.

Foret et al., Sharpness-aware minimization for efficiently improving generalization,
2021, arXiv:2010.01412
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.core import Tracer
from jaxtyping import Array, Int

from .. import check
from ..core import (
    AnyTransformation,
    as_inner,
    AxisName,
    EmptyState,
    gives,
    GradientTransformationExtraArgs,
    like_optax,
    Measure,
    mesh_axes,
    missing,
    OptState,
    Params,
    Real,
    Rule,
    transformation,
    Updates,
)
from ..engine import (
    apply_updates,
    branch,
    Leaves,
    lift,
    map_leaves,
    map_wide,
    wide,
    WrapperInfo,
    wrapping,
    zeros_for_none,
)
from ..numerics import copy_of, gradient_norm_squared, quotient, root, zero_count

NormalizeState = EmptyState


@like_optax
class SAMState(NamedTuple):
    """State of SAM: the step within the round, both states, and the initial params."""

    steps_since_sync: Int[Array, ""]
    opt_state: OptState
    adv_state: OptState
    cache: Params | None  # the params before the climb; `None` in opaque mode


@gives("factor")
def normalizing_factor(*, total: Array) -> dict[str, Array]:
    """`1 / |g|`, or 0 if `g` is zero; `total` is the sum of squares of all leaves."""
    norm = jnp.where(total > 0, root(total), 0)
    return {"factor": quotient(jnp.ones_like(norm), norm)}


def normalize_formula(g: Array, *, factor: Array) -> Array:
    """`u = factor g`."""
    return factor * g


@transformation
def normalize(*, axis_name: AxisName = None) -> GradientTransformationExtraArgs:
    """Divide by the norm over all leaves: `u = g / |g|`, or 0 if `g` is zero.

    Args:
        axis_name: inside `jax.shard_map`, the mesh axes over which the params are
            sharded. Without it, each device measures only its own shard.

    >>> import jax.numpy as jnp, steepest
    >>> tx = steepest.contrib.normalize()
    >>> g = jnp.array([3.0, 4.0])
    >>> [round(float(x), 1) for x in tx.update(g, tx.init(g))[0]]
    [0.6, 0.8]
    """
    return lift(
        Rule(
            "normalize",
            normalize_formula,
            per_step=normalizing_factor,
            measure=Measure(
                gradient_norm_squared, axes=mesh_axes("normalize", axis_name)
            ),
        )
    )


@transformation
def sam(
    optimizer: AnyTransformation,
    adv_optimizer: AnyTransformation,
    sync_period: Real = 2,
    reset_state: bool = True,
    opaque_mode: bool = False,
    batch_axis_name: str | None = None,
) -> GradientTransformationExtraArgs:
    """SAM: climb with `adv_optimizer`, then descend with the gradient at the top.

        p <- p - u      u from `adv_optimizer`            sync_period - 1 times
        p <- q + u      u from `optimizer`                once

    where `q` are the params before the climb, and both use the gradient at `p`. In
    opaque mode each update is a whole round, and the gradients within it come from the
    extra argument `grad_fn(params, step)`. `adv_optimizer` is usually
    `chain(normalize(), sgd(0.05))`.

    Args:
        optimizer: the transformation that descends.
        adv_optimizer: the transformation that climbs; its updates are subtracted.
        sync_period: the number of gradients per round, at least 1; 1 for no climb.
        reset_state: whether to reset the state of `adv_optimizer` after each round.
        opaque_mode: whether an update is a whole round; `sync_period` must be an int.
        batch_axis_name: in opaque mode, the mapped axis over which to average the
            gradients of `grad_fn`.
    """
    down = as_inner("sam", "optimizer", optimizer)
    up = as_inner("sam", "adv_optimizer", adv_optimizer)
    (sync_period,) = check.period("sam", sync_period=sync_period)
    check.flag("sam", reset_state=reset_state, opaque_mode=opaque_mode)

    def init(params: Params) -> SAMState:
        Leaves(params, "params").check("sam")
        cache = None if opaque_mode else jax.tree.map(copy_of, params)
        return SAMState(zero_count(), down.init(params), up.init(params), cache)

    parts = _Parts(down, up, sync_period, reset_state)
    if opaque_mode:
        update = _update_by_rounds(parts, batch_axis_name)
        return GradientTransformationExtraArgs(init, update)
    return wrapping(
        init, _update_by_steps(parts), WrapperInfo("sam", down, "opt_state")
    )


Turn = tuple[Updates, OptState, OptState]  # the updates, and both new states


class _Parts(NamedTuple):
    """The options of `sam`."""

    down: GradientTransformationExtraArgs
    up: GradientTransformationExtraArgs
    sync_period: Real
    reset_state: bool

    def after_climb(self, params: Params, adv_state: OptState) -> OptState:
        return self.up.init(params) if self.reset_state else adv_state


def _update_by_steps(parts: _Parts) -> Callable[..., tuple[Updates, SAMState]]:
    """The `update` that takes one step of a round."""
    down, up, sync_period, _ = parts

    def update(
        updates: Updates,
        state: SAMState,
        params: Params | None = None,
        **extra_args: object,
    ) -> tuple[Updates, SAMState]:
        if params is None:
            raise missing("sam", "params")
        state = check.state_of("sam", SAMState, state)
        here = state.steps_since_sync == 0
        cache = map_wide("sam", _choose, [here], params=params, cache=state.cache)

        def descend() -> Turn:
            u, opt_state = down.update(updates, state.opt_state, cache, **extra_args)
            # A leaf without gradient returns from the climb, too.
            u = zeros_for_none(u, params)
            trees = {"cache": cache, "params": params, "updates": u}
            back = map_wide("sam", _return, [], **trees)
            return back, opt_state, parts.after_climb(params, state.adv_state)

        def climb() -> Turn:
            u, adv_state = up.update(updates, state.adv_state, params, **extra_args)
            u = zeros_for_none(u, params)
            return _backwards(u), state.opt_state, adv_state

        last = state.steps_since_sync == sync_period - 1

        def climb_alike() -> Turn:
            """`climb` in the dtypes of `descend`, as the branches of a `cond` need."""
            cast = lambda x, like: x.astype(like.dtype)
            return jax.tree.map(cast, climb(), jax.eval_shape(descend))

        traced = isinstance(last, Tracer)
        u, opt_state, adv_state = branch(
            last, descend, climb_alike if traced else climb
        )
        steps = jnp.where(last, 0, state.steps_since_sync + 1)
        return u, SAMState(steps, opt_state, adv_state, cache)

    return update


def _update_by_rounds(
    parts: _Parts, batch_axis_name: str | None
) -> Callable[..., tuple[Updates, SAMState]]:
    """The `update` of opaque mode, which takes a whole round."""
    down, up, sync_period, _ = parts

    def update(
        updates: Updates,
        state: SAMState,
        params: Params | None = None,
        *,
        grad_fn: Callable[[Params, int], Updates] | None = None,
        **extra_args: object,
    ) -> tuple[Updates, SAMState]:
        if params is None:
            raise missing("sam", "params")
        if grad_fn is None:
            raise missing("sam", "grad_fn")
        check.function("sam", grad_fn=grad_fn)
        state = check.state_of("sam", SAMState, state)
        worst, adv_state = params, state.adv_state
        for i in range(int(sync_period) - 1):
            u, adv_state = up.update(updates, adv_state, worst, **extra_args)
            worst = apply_updates(worst, _backwards(u))
            updates = grad_fn(worst, i)
            if batch_axis_name is not None:
                updates = jax.lax.pmean(updates, batch_axis_name)
        u, opt_state = down.update(updates, state.opt_state, params, **extra_args)
        adv_state = parts.after_climb(params, adv_state)
        return u, SAMState(zero_count(), opt_state, adv_state, None)

    return update


_choose = wide(lambda here, params, cache: jnp.where(here, params, cache))
_return = wide(lambda cache, params, u: cache - params + u)


def _backwards(updates: Updates) -> Updates:
    return map_leaves("sam", lambda u: -u, updates=updates)
