"""L-BFGS: a quasi-Newton direction from the last few steps and gradients.

Liu and Nocedal, On the limited memory BFGS method for large scale optimization, 1989,
doi:10.1007/BF01589116
Nocedal and Wright, Numerical optimization, 2006, algorithms 7.4 and 7.5,
doi:10.1007/978-0-387-40065-5
"""

from collections.abc import Callable
from functools import partial
from operator import index
from typing import NamedTuple, SupportsIndex

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike, DTypeLike
from jaxtyping import Array, Float, Int

from .. import check
from ..combine import chain
from ..core import (
    AnyTransformation,
    as_inner,
    AxisName,
    GradientTransformationExtraArgs,
    like_optax,
    mesh_axes,
    MeshAxes,
    missing,
    OptState,
    Param,
    Params,
    passed,
    ScalarOrSchedule,
    Transformation,
    transformation,
    Updates,
)
from ..engine import keeping, restore, same_shapes, update_dtype
from ..numerics import at_least_float32, increment, promoted, quotient, zero_count
from ..transforms import identity, scale, scale_by_learning_rate
from ..tree import map_trees
from ._line import differentiable, dot, nothing_yet, Stored
from ._zoom import scale_by_zoom_linesearch

_NAME = "scale_by_lbfgs"


def _zoom(axis_name: AxisName = None) -> GradientTransformationExtraArgs:
    return scale_by_zoom_linesearch(
        20, initial_guess_strategy="one", axis_name=axis_name
    )


_ZOOM = _zoom()


@like_optax
class ScaleByLBFGSState(NamedTuple):
    """The last params and gradient, and their last few differences.

    The memories are circular buffers: they have an extra leading axis of `memory_size`.
    """

    count: Int[Array, ""]  # t, the number of steps taken
    params: Params  # the last p
    updates: Updates  # the last g
    diff_params_memory: Params  # s, differences of the params
    diff_updates_memory: Updates  # y, differences of the gradients
    weights_memory: Float[Array, " memory_size"]  # rho = 1 / <s, y>


@transformation
def scale_by_lbfgs(
    memory_size: int = 10,
    scale_init_precond: bool = True,
    *,
    axis_name: AxisName = None,
) -> GradientTransformationExtraArgs:
    """Multiply the gradient by an estimate of the inverse Hessian.

    For each of the last `memory_size` steps, let `s` be the difference of the params,
    `y` the difference of the gradients and `rho = 1 / <s, y>`. Starting with `q = g`:

        q <- q - alpha y        alpha = rho <s, q>        from the newest to the oldest
        q <- gamma q            gamma = <s, y> / <y, y>   of the newest step
        q <- q + (alpha - rho <y, q>) s                   from the oldest to the newest

    The final `q` is `u`. At the first step `u = g / max(|g|, 1)`. If `<s, y>` is 0,
    `rho` is 0.

    Args:
        memory_size: the number of steps to remember, at least 1.
        scale_init_precond: whether to multiply by `gamma`; otherwise `gamma` is 1.
        axis_name: inside `jax.shard_map`, the mesh axes over which the params are
            sharded. Without it, each device measures only its own shard.
    """
    check.flag(_NAME, scale_init_precond=scale_init_precond)
    axes = mesh_axes(_NAME, axis_name)
    memory_size = _whole(memory_size)

    def init(params: Params) -> ScaleByLBFGSState:
        differentiable(_NAME, params)

        def memory() -> Params:
            # `repeat` keeps the sharding and device of the params; `zeros` would not.
            repeated = lambda zero: jnp.repeat(zero[None], memory_size, axis=0)
            return jax.tree.map(repeated, nothing_yet(params))

        return ScaleByLBFGSState(
            count=zero_count(),
            params=nothing_yet(params),
            updates=nothing_yet(params),
            diff_params_memory=memory(),
            diff_updates_memory=memory(),
            weights_memory=jnp.zeros((memory_size,)),
        )

    def update(
        updates: Updates,
        state: ScaleByLBFGSState,
        params: Params | None = None,
        **extra_args: object,
    ) -> tuple[Updates, ScaleByLBFGSState]:
        del extra_args
        if params is None:
            raise missing(_NAME, "params")
        check.state_of(_NAME, ScaleByLBFGSState, state)
        same_shapes(_NAME, updates=updates, params=params)
        same_shapes(_NAME, updates=updates, **{"state's `params`": state.params})
        options = memory_size, scale_init_precond, axes
        return _step(*options, updates, state, params)

    return GradientTransformationExtraArgs(init, update)


@transformation  # not `optimizer`: the storage keywords are applied below
def lbfgs(
    learning_rate: ScalarOrSchedule | None = None,
    memory_size: int = 10,
    scale_init_precond: bool = True,
    linesearch: AnyTransformation | None = _ZOOM,
    *,
    axis_name: AxisName = None,
    memory_dtype: DTypeLike | None = None,
    keep_count: bool = False,
) -> GradientTransformationExtraArgs:
    """L-BFGS: `p <- p - a learning_rate u`, with `u` from `scale_by_lbfgs`.

    The line search chooses `a`. `update` needs the params and, for the line search, the
    keyword arguments `value`, `grad` and `value_fn`: the function, and its value and
    gradient at the params. After the first step, `value_and_grad_from_state` reads the
    value and gradient from the state.

    Args:
        learning_rate: a number, a schedule (a function of the step count), or `None`
            for 1.
        memory_size: the number of steps to remember, at least 1.
        scale_init_precond: whether to scale the initial inverse Hessian by `gamma` of
            `scale_by_lbfgs`; otherwise it is the identity.
        linesearch: a transformation that scales the updates, or `None`. By default
            `scale_by_zoom_linesearch` with at most 20 trials, starting at 1.
        axis_name: inside `jax.shard_map`, the mesh axes over which the params are
            sharded. The default line search uses them too; any other needs its own
            `axis_name`. `value` and `value_fn` must give the loss over all devices.
        memory_dtype: dtype of the arrays in the state that have no option of their own,
            such as `mu_dtype`, or where it is `None`; by default that of the params, or
            wider.
        keep_count: whether to count the steps even if the learning rate is a number, so
            that a schedule can replace it later.

    >>> import jax, jax.numpy as jnp
    >>> f = lambda p: jnp.sum((p - 1.0) ** 4)
    >>> tx, params = lbfgs(), jnp.array([3.0, -2.0])
    >>> state = tx.init(params)
    >>> for _ in range(10):
    ...     value, grad = jax.value_and_grad(f)(params)
    ...     u, state = tx.update(
    ...         grad, state, params, value=value, grad=grad, value_fn=f
    ...     )
    ...     params = params + u
    >>> bool(f(params) < 1e-2)
    True
    """
    if isinstance(linesearch, Transformation) and linesearch == _ZOOM:
        linesearch = _zoom(axis_name)
    elif linesearch is not None:
        linesearch = as_inner("lbfgs", "linesearch", linesearch)
    descend = scale(-1.0)
    if learning_rate is not None:
        descend = scale_by_learning_rate(learning_rate)
    check.dtype("lbfgs", memory_dtype=memory_dtype)
    tx = scale_by_lbfgs(memory_size, scale_init_precond, axis_name=axis_name)
    tx = chain(
        # Not the line search: it must store the value and gradient exactly.
        keeping(tx, memory_dtype=memory_dtype),
        descend,
        identity() if linesearch is None else linesearch,
    )
    return keeping(tx, keep_count=keep_count)


# Compiled once for all optimizers with the same options.
@partial(jax.jit, static_argnums=(0, 1, 2))
def _step(
    memory_size: int,
    scale_init_precond: bool,
    axes: MeshAxes | None,
    updates: Updates,
    state: ScaleByLBFGSState,
    params: Params,
) -> tuple[Updates, ScaleByLBFGSState]:
    """One step of `scale_by_lbfgs`."""
    g, p = _wide(updates, updates), _wide(updates, params)
    t = jnp.asarray(state.count)
    begun = t > 0
    k = (t - 1) % memory_size  # index of the newest step in the memory
    s = _minus(p, _wide(updates, state.params))
    y = _minus(g, _wide(updates, state.updates))
    sy, yy = dot(_NAME, s, y, axes), dot(_NAME, y, y, axes)
    # 1 / <s, y> must be finite. For subnormal <s, y>, on devices that have them, it is
    # not.
    tiny = jnp.finfo(sy.dtype).tiny
    rho = quotient(jnp.ones_like(sy), jnp.where(jnp.abs(sy) < tiny, 0, sy))
    keep = partial(_written, begun, k)
    new = ScaleByLBFGSState(
        count=increment(t),
        params=_kept(state.params, p),
        updates=_kept(state.updates, g),
        diff_params_memory=keep(state.diff_params_memory, s),
        diff_updates_memory=keep(state.diff_updates_memory, y),
        weights_memory=keep(jnp.asarray(state.weights_memory), rho),
    )
    gamma = jnp.ones_like(sy)
    if scale_init_precond:
        later = jnp.where(yy > 0, quotient(sy, yy), 1)
        # At the first step the memory is empty and `y` is `g`.
        gamma = jnp.where(begun, later, 1 / jnp.sqrt(jnp.maximum(yy, 1)))
    return _out(_two_loops(new, g, gamma, k, axes), updates, params), new


def _written(begun: Array, k: Array, memory: Updates, new: Updates) -> Updates:
    """`memory` with `new` at index `k`, or with zeros at the first step."""

    def leaf(kept: Stored, x: Array | None) -> Stored:
        if kept is None or x is None:
            return kept
        # The first step has no differences.
        x = jnp.where(begun, restore(x, kept.dtype), 0)
        return jax.lax.dynamic_update_index_in_dim(kept, x, k, 0)

    return map_trees(_NAME, leaf, none_is_leaf=True, state=memory, updates=new)


def _whole(memory_size: SupportsIndex) -> int:
    try:
        memory_size = index(memory_size)
    except TypeError:
        raise TypeError(
            f"{passed(_NAME, 'memory_size', memory_size)} is {memory_size!r}, "
            "expected an integer of at least 1, not a traced value."
        ) from None
    if memory_size < 1:
        raise ValueError(
            f"{passed(_NAME, 'memory_size', memory_size)} is {memory_size}, expected "
            "at least 1. For an optimizer without memory, use `sgd`."
        )
    return memory_size


def _two_loops(
    state: ScaleByLBFGSState, g: Updates, gamma: Array, k: Array, axes: MeshAxes | None
) -> Updates:
    """`u`, by the formulas of `scale_by_lbfgs`; `k` is the index of the newest step."""
    size = len(state.weights_memory)

    def remembered(j: Array) -> tuple[Updates, Updates, Array]:
        """`s`, `y` and `rho` of the step `j` steps before the newest."""
        at = lambda memory: jax.tree.map(lambda x: x[(k - j) % size], memory)
        s = _wide(g, at(state.diff_params_memory))
        y = _wide(g, at(state.diff_updates_memory))
        return s, y, at(state.weights_memory).astype(gamma.dtype)

    def down(q: Updates, j: Array) -> tuple[Updates, Array]:
        s, y, rho = remembered(j)
        alpha = rho * dot(_NAME, s, q, axes)
        return _plus(q, -alpha, y), alpha

    def up(q: Updates, row: tuple[Array, Array]) -> tuple[Updates, None]:
        j, alpha = row
        s, y, rho = remembered(j)
        return _plus(q, alpha - rho * dot(_NAME, y, q, axes), s), None

    back = jnp.arange(size, dtype=k.dtype)
    q, alphas = jax.lax.scan(down, g, back)
    q = jax.tree.map(lambda x: gamma.astype(x.dtype) * x, q)
    return jax.lax.scan(up, q, (back, alphas), reverse=True)[0]


def _wide(updates: Updates, tree: Updates) -> Updates:
    """The leaves of `tree` that have an update, in float32 or wider."""

    def leaf(g: ArrayLike | None, x: ArrayLike | None) -> Array | None:
        return None if g is None or x is None else at_least_float32(x)

    return map_trees(_NAME, leaf, none_is_leaf=True, updates=updates, params=tree)


def _minus(x: Updates, y: Updates) -> Updates:
    return _in_step(lambda x, y: x - y, x, y)


def _plus(x: Updates, a: Array, y: Updates) -> Updates:
    return _in_step(lambda x, y: x + a.astype(x.dtype) * y, x, y)


def _in_step(f: Callable[[Array, Array], Array], x: Updates, y: Updates) -> Updates:
    """Map `f` over two trees, in the promoted dtype of each pair of leaves."""

    def leaf(x: Array, y: Array) -> Array:
        dtype = promoted(x, y)
        return f(x.astype(dtype), y.astype(dtype))

    return jax.tree.map(leaf, x, y)


def _kept(old: OptState, new: Updates) -> Updates:
    """`new` in the dtypes of `old`; `old` where `new` is `None`."""

    def leaf(old: Stored, x: Array | None) -> Stored:
        return old if old is None or x is None else restore(x, old.dtype)

    return map_trees(_NAME, leaf, none_is_leaf=True, state=old, updates=new)


def _out(u: Updates, updates: Updates, params: Params) -> Updates:
    """`u` in the dtype of the gradient, or of the param if it is wider."""

    def leaf(g: Param | None, u: Array | None, p: Param | None) -> Array | None:
        return None if g is None or u is None else restore(u, update_dtype(g, p))

    trees = {"updates": updates, "u": u, "params": params}
    return map_trees(_NAME, leaf, none_is_leaf=True, **trees)
