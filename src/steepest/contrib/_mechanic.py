"""Mechanic: learn the learning rate of an optimizer.

Cutkosky, Defazio and Mehta, Mechanic: a learning rate tuner, 2023, arXiv:2306.00144
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.typing import DTypeLike
from jaxtyping import Array, Float, Int, PyTree

from .. import check
from ..core import (
    AnyTransformation,
    as_inner,
    AxisName,
    GradientTransformationExtraArgs,
    like_optax,
    mesh_axes,
    missing,
    OptState,
    Params,
    Real,
    transformation,
    Updates,
)
from ..engine import Leaves, map_wide, wide, widen, WrapperInfo, wrapping
from ..numerics import (
    copy_of,
    increment,
    inner,
    root,
    sum_of_leaves,
    sum_of_squares,
    wide_dtype,
    zero_count,
)


@like_optax
class MechanicState(NamedTuple):
    """State of Mechanic: one number for each decay rate, and the initial params."""

    base_optimizer_state: OptState
    count: Int[Array, ""]  # number of steps taken
    r: Float[Array, " k"]  # the winnings of the bets
    m: Float[Array, " k"]  # the largest `|h|`
    v: Float[Array, " k"]  # the sum of `h^2`
    s: Float[Array, " k"]  # the learning rates; their sum is used
    x0: Params  # the initial params


@transformation
def mechanize(
    base_optimizer: AnyTransformation,
    weight_decay: Real = 0.01,
    eps: Real = 1e-8,
    s_init: Real = 1e-6,
    num_betas: int = 6,
    *,
    axis_name: AxisName = None,
) -> GradientTransformationExtraArgs:
    """Multiply the sum of all steps of `base_optimizer` by a learned factor.

        d  = (x0 - p) / (sum(s) + eps)              the path so far, without the factor
        h  = <g + weight_decay sum(s) |g| / (|p| + eps) p, d>
        m' = max(beta m, |h| + eps)
        v <- beta^2 v + h^2
        r <- beta r + s min(max(h, -m), m)          with the old m
        s <- (s_init / k m' + max(r, 0)) / (sqrt(v) + eps)
        p <- x0 - sum(s) (d - base(g))

    for `k` decay rates beta: 1 - 0.1, 1 - 0.01, ...

    Args:
        base_optimizer: any transformation; it receives the extra arguments. Only the
            shape of its learning rate schedule matters, not the scale.
        weight_decay: decay of the factor towards zero; lambda in the paper.
        eps: keeps divisions finite; above 0.
        s_init: the initial factor; above 0.
        num_betas: `k`, the number of decay rates.
        axis_name: inside `jax.shard_map`, the mesh axes over which the params are
            sharded. Without it, each device measures only its own shard.

    >>> import jax.numpy as jnp, steepest
    >>> tx = steepest.contrib.mechanize(steepest.sgd(1.0))
    >>> params = jnp.array([1.0])
    >>> updates, state = tx.update(jnp.array([1.0]), tx.init(params), params)
    >>> state.s.shape
    (6,)
    """
    name = "mechanize"
    base = as_inner(name, "base_optimizer", base_optimizer)
    (decay,) = check.finite(name, weight_decay=weight_decay)
    eps, s_init = check.measurable(name, eps=eps, s_init=s_init)
    (k,) = check.period(name, num_betas=num_betas)
    axes = mesh_axes(name, axis_name)

    def init(params: Params) -> MechanicState:
        Leaves(params, "params").check(name)
        real = wide_dtype(jax.tree.leaves(params))
        zeros = lambda: jnp.zeros((k,), real)  # separate, so that each can be donated
        return MechanicState(
            base_optimizer_state=base.init(params),
            count=zero_count(),
            r=zeros(),
            m=zeros(),
            v=zeros(),
            s=jnp.full((k,), s_init, real),
            x0=jax.tree.map(copy_of, params),
        )

    def update(
        updates: Updates,
        state: MechanicState,
        params: Params | None = None,
        **extra_args: object,
    ) -> tuple[Updates, MechanicState]:
        if params is None:
            raise missing(name, "params")
        state = check.state_of(name, MechanicState, state)
        real = state.s.dtype
        us, base_state = base.update(
            updates, state.base_optimizer_state, params, **extra_args
        )
        first = state.count == 0
        x0 = map_wide(name, _choose, [first], params=params, x0=state.x0)
        total = jnp.sum(state.s)
        columns = _side_by_side(real, updates, params=params, x0=x0)
        rows = list(zip(*columns, strict=True))
        sums = sum_of_leaves(axes, _measured, rows, jnp.zeros((4,), real))
        g_sq, p_sq, g_way, p_way = sums
        pull = decay * total * root(g_sq) / (root(p_sq) + eps)
        h = (g_way + pull * p_way) / (total + eps)
        memory = state.r, state.m, state.v, state.s
        r, m, v, s = mechanic_formula(h, *memory, s_init=s_init, eps=eps)
        numbers = [total + eps, jnp.sum(s)]
        moved = map_wide(name, _move, numbers, x0=x0, params=params, updates=us)
        count = increment(state.count)
        return moved, MechanicState(base_state, count, r, m, v, s, x0)

    return wrapping(init, update, WrapperInfo(name, base, "base_optimizer_state"))


def mechanic_formula(
    h: Array, r: Array, m: Array, v: Array, s: Array, *, s_init: Real, eps: Real
) -> tuple[Array, Array, Array, Array]:
    """One step of `r`, `m`, `v` and `s`, which have an entry for each decay rate."""
    k = len(s)
    betas = jnp.array([1 - 0.1 ** (i + 1) for i in range(k)], s.dtype)
    new_m = jnp.maximum(betas * m, jnp.abs(h) + eps)
    v = betas**2 * v + h**2
    r = betas * r + s * jnp.clip(h, -m, m)
    s = (s_init / k * new_m + jnp.maximum(r, 0)) / (root(v) + eps)
    return r, new_m, v, s


def _measured(row: tuple[Array, Array, Array]) -> Float[Array, "4"]:
    """`|g|^2`, `|p|^2`, `<g, x0 - p>` and `<p, x0 - p>` of one leaf."""
    g, p, x = row
    squares = sum_of_squares(g), sum_of_squares(p)
    return jnp.stack([*squares, inner(g, x - p), inner(p, x - p)])


_choose = wide(lambda first, p, x0: jnp.where(first, p, x0))
_move = wide(lambda was, now, x0, p, u: x0 - now * ((x0 - p) / was - u) - p)


def _side_by_side(
    real: DTypeLike, updates: Updates, **trees: PyTree
) -> list[list[Array]]:
    """The leaves of several trees that have a gradient, in a wide dtype."""
    first, advice = Leaves(updates), "Pass the params the updates are for."
    others = (first.match("mechanize", x, name, advice) for name, x in trees.items())
    columns = [first.arrays, *others]
    here = [i for i, g in enumerate(first.arrays) if g is not None]
    wide = lambda x: widen(jnp.asarray(x), real, integers=True)
    return [[wide(column[i]) for i in here] for column in columns]
