"""Sophia, and Hutchinson's estimate of the diagonal of the Hessian.

Liu et al., Sophia: a scalable stochastic second-order optimizer for language model
pre-training, 2023, arXiv:2305.14342
Hutchinson, A stochastic estimator of the trace of the influence matrix for Laplacian
smoothing splines, 1990, doi 10.1080/03610919008812866
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike, DTypeLike
from jaxtyping import Array, Int

from .. import check
from ..combine import chain
from ..core import (
    AnyTransformation,
    as_inner,
    gives,
    GradientTransformationExtraArgs,
    like_optax,
    missing,
    only_real,
    OptState,
    Params,
    Real,
    Rule,
    ScalarOrSchedule,
    transformation,
    Updates,
)
from ..engine import branch, Leaves, lift, map_wide, MaskOrFn, optimizer, wide
from ..numerics import (
    debias,
    ema,
    first_moment,
    increment,
    is_inexact,
    second_moment,
    zero_count,
)
from ..transforms import add_decayed_weights, scale_by_learning_rate
from ..tree import random_like, size


@like_optax
class HutchinsonState(NamedTuple):
    """State: the random key for the next step."""

    key: Array


@like_optax
class SophiaState(NamedTuple):
    """State of Sophia: a step count, two arrays per leaf, and the estimator's state."""

    count: Int[Array, ""]  # t, the number of steps taken
    mu: Updates  # mean of g, in `mu_dtype`
    nu: Updates  # mean of the diagonal of the Hessian
    hessian_fn_state: OptState


@transformation
def hutchinson_estimator_diag_hessian(
    random_seed: ArrayLike | None = None,
) -> GradientTransformationExtraArgs:
    """Estimate the diagonal of the Hessian: `u = z * (H z)`.

    `z` is a vector of random signs, drawn at each step. The expectation of `u` is the
    diagonal of `H`; if `H` is diagonal, `u` is exact. `update` needs the params and
    `obj_fn=...`, a function of the params with Hessian `H`. It ignores the gradients.

    Args:
        random_seed: a `jax.random` key, or an integer seed; by default 0.
    """
    name = "hutchinson_estimator_diag_hessian"
    seed: Any = 0 if random_seed is None else random_seed
    number = hasattr(seed, "dtype") and np.ndim(seed) == 0
    number = jnp.issubdtype(seed.dtype, jnp.integer) if number else type(seed) is int
    if not number:
        check.key(name, random_seed=seed)

    def init(params: Params) -> HutchinsonState:
        del params
        # A new array each time: the state can be donated, and `init` called again.
        return HutchinsonState(jax.random.PRNGKey(seed) if number else seed.copy())

    def update(
        updates: Updates,
        state: HutchinsonState,
        params: Params | None = None,
        obj_fn: Callable[[Params], ArrayLike] | None = None,
        **extra_args: object,
    ) -> tuple[Updates, HutchinsonState]:
        del updates, extra_args
        if params is None:
            raise missing(name, "params")
        if obj_fn is None:
            raise missing(name, "obj_fn")
        check.function(name, obj_fn=obj_fn)
        state = check.state_of(name, HutchinsonState, state)
        leaves = Leaves(params, "params")
        for k, p in enumerate(leaves.arrays):
            if p is not None and not is_inexact(p):
                raise TypeError(
                    f"{name}: leaf {leaves.path(k)} {check.kind(p)}, expected a "
                    "floating dtype: integers have no derivative. Exclude it with "
                    "`masked`."
                )
        rest, mine = jax.random.split(state.key)
        z = random_like(mine, params, jax.random.rademacher)
        _, h_z = jax.jvp(jax.grad(obj_fn), (params,), (z,))
        return jax.tree.map(jnp.multiply, z, h_z), HutchinsonState(rest)

    return GradientTransformationExtraArgs(init, update)


@gives("c1")
def mu_correction(count: Array, *, b1: Real) -> tuple[dict[str, Array], Array]:
    """`c1 = 1 - b1^t`."""
    t = increment(count)
    return {"c1": debias(b1, t)}, t


def sophia_formula(
    g: Array,
    mu: Array,
    nu: Array,
    *,
    b1: Real,
    eps: Real,
    gamma: Real,
    clip_threshold: Real | None,
    c1: Array,
) -> tuple[Array, Array, Array]:
    """One step of Sophia for one array, where `c1 = 1 - b1^t`. `nu` does not change."""
    mu = ema(mu, g, b1)
    least = jnp.maximum(eps, jnp.finfo(nu.dtype).tiny)
    u = mu / c1 / jnp.maximum(gamma * nu, least)
    if clip_threshold is not None:
        u = jnp.clip(u, -clip_threshold, clip_threshold)
    return u, mu, nu


@optimizer
def sophia(
    learning_rate: ScalarOrSchedule,
    b1: Real = 0.965,
    b2: Real = 0.99,
    eps: Real = 1e-8,
    weight_decay: ScalarOrSchedule = 1e-4,
    weight_decay_mask: MaskOrFn | None = None,
    gamma: Real = 0.01,
    clip_threshold: Real | None = 1.0,
    update_interval: Real = 10,
    hessian_diagonal_fn: AnyTransformation = hutchinson_estimator_diag_hessian(),  # noqa: B008
    mu_dtype: DTypeLike | None = None,
    verbose: bool = False,
    print_win_rate_every_n_steps: Real = 0,
    *,
    memory_dtype: DTypeLike | None = None,
    keep_count: bool = False,
) -> GradientTransformationExtraArgs:
    """Sophia: divide the mean of the gradients by the curvature, and clip the result.

        mu <- b1 mu + (1 - b1) g
        m   = mu / (1 - b1^t)
        u   = clip(m / max(gamma nu, eps), -clip_threshold, clip_threshold)
        nu <- b2 nu + (1 - b2) h            every `update_interval` steps
        p  <- p - learning_rate (u + weight_decay p)

    `h` is an estimate of the diagonal of the Hessian. The first step computes one, and
    the second step is the first to use it. `update` needs the arguments of the
    estimator; by default `obj_fn=...`, the loss as a function of the params.

    Args:
        learning_rate: a number, or a schedule (a function of the step count).
        b1: decay rate of `mu`, in [0, 1).
        b2: decay rate of `nu`, in [0, 1).
        eps: the smallest divisor.
        weight_decay: weight decay coefficient, multiplied by the learning rate.
        weight_decay_mask: the leaves to decay: a tree of booleans, a function of the
            params that returns one, or a regular expression for their paths; by
            default all.
        gamma: scales the curvature. Choose it so that 10% to 50% of the weights are not
            clipped.
        clip_threshold: the largest `u`; `None` for no clipping.
        update_interval: the number of steps from one estimate to the next.
        hessian_diagonal_fn: a transformation whose updates are `h`; it receives the
            params and the extra arguments.
        mu_dtype: dtype of `mu`; by default that of the params.
        verbose: whether to print the fraction of weights that are not clipped.
        print_win_rate_every_n_steps: print every this many steps; by default every
            step.
        memory_dtype: dtype of the arrays in the state that have no option of their own,
            such as `mu_dtype`, or where it is `None`; by default that of the params, or
            wider. With "int8", "int4" or "float8", averages for large matrices are
            stored in 8 or 4 bits: see `keeping`.
        keep_count: whether to count the steps even if the learning rate is a number, so
            that a schedule can replace it later.

    >>> import jax, jax.numpy as jnp
    >>> from steepest import contrib
    >>> def loss(p):
    ...     return jnp.sum(p**2)
    >>> tx = contrib.sophia(learning_rate=0.1)
    >>> params = jnp.array([1.0, -2.0])
    >>> grads = jax.grad(loss)(params)
    >>> updates, state = tx.update(grads, tx.init(params), params, obj_fn=loss)
    >>> [round(float(u), 3) for u in updates]
    [-0.1, 0.1]
    """
    estimator = as_inner("sophia", "hessian_diagonal_fn", hessian_diagonal_fn)
    direction = _direction(b1, eps, gamma, clip_threshold, mu_dtype)
    (b2,) = check.fraction("sophia", b2=b2)
    (interval,) = check.period("sophia", update_interval=update_interval)
    check.dtype("sophia", mu_dtype=mu_dtype)
    check.flag("sophia", verbose=verbose)
    (every,) = check.whole(
        "sophia", print_win_rate_every_n_steps=print_win_rate_every_n_steps
    )

    def init(params: Params) -> SophiaState:
        begin = direction.init(params)
        return SophiaState(*begin, hessian_fn_state=estimator.init(params))

    def update(
        updates: Updates,
        state: SophiaState,
        params: Params | None = None,
        **extra_args: object,
    ) -> tuple[Updates, SophiaState]:
        if params is None:
            raise missing("sophia", "params")
        state = check.state_of("sophia", SophiaState, state)

        def estimate() -> tuple[Updates, OptState]:
            h, kept = estimator.update(
                updates, state.hessian_fn_state, params, **extra_args
            )
            trees = {"updates": updates, "hessian": h, "nu": state.nu}
            return map_wide("sophia", _follow, [jnp.asarray(b2)], **trees), kept

        def keep() -> tuple[Updates, OptState]:
            return state.nu, state.hessian_fn_state

        old = _Direction(state.count, state.mu, state.nu)
        u, new = direction.update(updates, old, params)
        if verbose and clip_threshold is not None:
            _print_win_rate(u, clip_threshold, new.count, every)
        nu, kept = branch(state.count % interval == 0, estimate, keep)
        return u, SophiaState(new.count, new.mu, nu, kept)

    return chain(
        GradientTransformationExtraArgs(init, update),
        add_decayed_weights(weight_decay, weight_decay_mask),
        scale_by_learning_rate(check.rate_given("sophia", learning_rate)),
    )


class _Direction(NamedTuple):
    count: Array
    mu: Updates
    nu: Updates


def _direction(
    b1: Real,
    eps: Real,
    gamma: Real,
    clip_threshold: Real | None,
    mu_dtype: DTypeLike | None,
) -> GradientTransformationExtraArgs:
    """The rule that computes `u` from the latest `nu`."""
    (b1,) = check.fraction("sophia", b1=b1)
    eps, gamma = check.nonnegative("sophia", eps=eps, gamma=gamma)
    top = None
    if clip_threshold is not None:
        (top,) = check.positive("sophia", clip_threshold=clip_threshold)
    numbers = {"b1": b1, "eps": eps, "gamma": gamma, "clip_threshold": top}
    return lift(
        Rule(
            "sophia",
            sophia_formula,
            _Direction,
            memory={"mu": first_moment(mu_dtype), "nu": second_moment()},
            shared={"count": zero_count},
            numbers=numbers,
            per_step=mu_correction,
            check_leaf=only_real if top is not None else None,
        )
    )


# `g` is unused, but a leaf without a gradient then keeps its nu.
_follow = wide(lambda b2, g, h, nu: ema(nu, h, b2))


def _print_win_rate(u: Updates, top: Real, t: Array, every: Real) -> None:
    inside = [jnp.sum(jnp.abs(x) < top, dtype=float) for x in jax.tree.leaves(u)]
    rate = sum(inside, jnp.zeros(())) / max(size(u), 1)

    def show() -> None:
        jax.debug.print("Sophia optimizer win rate: {rate}", rate=rate)

    if isinstance(every, int | float):
        every = max(every, 1)
    jax.lax.cond(t % every == 0, show, lambda: None)
