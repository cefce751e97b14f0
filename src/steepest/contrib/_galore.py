"""GaLore: run an optimizer on gradients projected to few dimensions.

Zhao et al., GaLore: memory-efficient LLM training by gradient low-rank projection,
2024, arXiv:2403.03507
"""

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.core import Tracer
from jax.typing import DTypeLike
from jaxtyping import Array, Int, PyTree

from .. import check
from ..combine import chain
from ..core import (
    AnyTransformation,
    as_inner,
    GradientTransformationExtraArgs,
    like_optax,
    OptState,
    Param,
    Params,
    Real,
    ScalarOrSchedule,
    transformation,
    Updates,
)
from ..engine import (
    Leaves,
    MaskOrFn,
    optimizer,
    restore,
    stacks,
    update_dtype,
    widen,
    wrapping,
)
from ..numerics import (
    as_matrices,
    Axes,
    cond_under_vmap,
    from_matrices,
    increment,
    irregular_turn,
    replicated_near,
    sharded_like,
    wide_dtype,
    zero_count,
)
from ..optimizers import scale_by_adam
from ..transforms import add_decayed_weights, scale_by_learning_rate
from ..tree import leaf_paths
from ._dimension_numbers import axes_by_leaf, map_numbers, NumbersOrFn, Row

_ADVICE = "Pass the params and the state that the updates are for."


@like_optax
class GaLoreDimensionNumbers(NamedTuple):
    """Which axes make a tensor the matrix `W` of a layer `y = x W`."""

    reduction_axis: int | Sequence[int] = 0  # summed over; the rows
    output_axis: int | Sequence[int] = 1  # the columns


@like_optax
class GaLoreState(NamedTuple):
    """State of GaLore: a step count, the base optimizer's state, a basis per leaf."""

    count: Int[Array, ""]  # number of steps taken
    base_optimizer_state: OptState  # in the projected dimensions
    projector: Updates  # P; one zero if a leaf is not projected


@transformation
def scale_by_galore(
    rank: int = 128,
    update_proj_gap: Real = 200,
    scale: Real = 1.0,
    base_optimizer: AnyTransformation | None = None,
    weight_dimension_numbers: NumbersOrFn | None = None,
) -> GradientTransformationExtraArgs:
    """Run `base_optimizer` on the gradient projected to its main directions.

        P <- the first `rank` left singular vectors of g, every `update_proj_gap` steps
        u  = scale P base(P^T g)

    For a matrix with more columns than rows, `P` contains right singular vectors and
    `u = scale base(g P) P^T`. Other leaves go to `base_optimizer` unchanged.
    Derivatives do not flow through `P`.

    Inside `jax.shard_map`, each device would treat its shard as a whole matrix. Gather
    the matrices first, or let `jit` handle the mesh axes that shard them.

    Args:
        rank: the number of directions. A matrix with fewer directions keeps them all.
        update_proj_gap: the number of steps between two updates of `P`. The state of
            the base optimizer is not converted to the new directions.
        scale: multiplies the steps of projected leaves.
        base_optimizer: any transformation that does not need params; by default
            `scale_by_adam()`.
        weight_dimension_numbers: `GaLoreDimensionNumbers` in the structure of the
            params, with `None` for leaves that are not projected, or a function of the
            params that returns them. By default every leaf with two axes is a matrix.
            Vectors and scalars are never projected.
    """
    name = "scale_by_galore"
    rank, gap = check.period(name, rank=rank, update_proj_gap=update_proj_gap)
    (scale,) = check.finite(name, scale=scale)
    base = scale_by_adam() if base_optimizer is None else base_optimizer
    base = as_inner(name, "base_optimizer", base)
    numbers = _all_matrices
    if weight_dimension_numbers is not None:
        numbers = partial(_of_two_axes, name, weight_dimension_numbers)

    def init(params: Params) -> GaLoreState:
        leaves = Leaves(params, "params")
        leaves.check(name)
        unflatten = leaves.treedef.unflatten
        rows = _rows(name, numbers, params)
        pairs = [_zeros(rank, axes, p) for axes, p in rows]
        small, bases = [x for x, _ in pairs], [basis for _, basis in pairs]
        return GaLoreState(zero_count(), base.init(unflatten(small)), unflatten(bases))

    def update(
        updates: Updates,
        state: GaLoreState,
        params: Params | None = None,
        **extra_args: object,
    ) -> tuple[Updates, GaLoreState]:
        state = check.state_of(name, GaLoreState, state)
        leaves = Leaves(updates)
        leaves.check(name)
        treedef = leaves.treedef
        rows = _rows(name, numbers, updates)
        old = leaves.match(name, state.projector, "state's `projector`", _ADVICE)
        xs = _widened(name, leaves, rows, old)
        axes = [axes for axes, _ in rows]
        due = state.count % gap == 0
        if any(
            g is None and basis is not None
            for (_, g), basis in zip(rows, old, strict=True)
        ):
            due |= irregular_turn(state.count, gap) == 0
            due |= _any_is_zero(xs, old)
        bases = _latest(due, old, xs, axes)
        projected = treedef.unflatten(_projected(rows, xs, bases))
        inner, base_state = base.update(
            projected, state.base_optimizer_state, **extra_args
        )
        ps: list[Any] = [None] * len(rows)
        if params is not None:
            ps = leaves.match(name, params, "params", _ADVICE)
        us = treedef.flatten_up_to(inner)
        steps = [
            _step(scale, its, g, p, basis, u)
            for (its, g), p, basis, u in zip(rows, ps, bases, us, strict=True)
        ]
        new = GaLoreState(increment(state.count), base_state, treedef.unflatten(bases))
        return treedef.unflatten(steps), new

    return wrapping(init, update)


@optimizer
def galore(
    learning_rate: ScalarOrSchedule,
    rank: int = 128,
    update_proj_gap: Real = 200,
    scale: Real = 1.0,
    base_optimizer: AnyTransformation | None = None,
    weight_decay: ScalarOrSchedule = 0.0,
    mask: MaskOrFn | None = None,
    weight_dimension_numbers: NumbersOrFn | None = None,
    *,
    memory_dtype: DTypeLike | None = None,
    keep_count: bool = False,
) -> GradientTransformationExtraArgs:
    """GaLore: `p <- p - learning_rate (u + weight_decay p)`.

    `u` comes from `scale_by_galore`.

    Inside `jax.shard_map`, each device would treat its shard as a whole matrix. Gather
    the matrices first, or let `jit` handle the mesh axes that shard them.

    Args:
        learning_rate: a number, or a schedule (a function of the step count).
        rank: the number of directions to project to.
        update_proj_gap: the number of steps between two updates of the projection.
        scale: multiplies the steps of projected leaves.
        base_optimizer: any transformation that does not need params; by default
            `scale_by_adam()`.
        weight_decay: weight decay coefficient, multiplied by the learning rate.
        mask: the leaves to decay: a tree of booleans, a function of the params that
            returns one, or a regular expression for their paths; by default all.
        weight_dimension_numbers: `GaLoreDimensionNumbers` in the structure of the
            params, or a function of the params that returns them; by default every leaf
            with two axes is a matrix.
        memory_dtype: dtype of the arrays in the state that have no option of their own,
            such as `mu_dtype`, or where it is `None`; by default that of the params, or
            wider. With "int8", "int4" or "float8", averages for large matrices are
            stored in 8 or 4 bits: see `keeping`.
        keep_count: whether to count the steps even if the learning rate is a number, so
            that a schedule can replace it later.

    >>> import jax.numpy as jnp, steepest
    >>> tx = steepest.contrib.galore(learning_rate=0.1, rank=1)
    >>> params = jnp.array([[3.0, 4.0]])
    >>> updates, state = tx.update(params, tx.init(params), params)
    >>> [round(float(u), 2) for u in updates[0]]
    [-0.06, -0.08]
    """
    return chain(
        scale_by_galore(
            rank, update_proj_gap, scale, base_optimizer, weight_dimension_numbers
        ),
        add_decayed_weights(weight_decay, mask),
        scale_by_learning_rate(check.rate_given("galore", learning_rate)),
    )


def _zeros(
    rank: int, axes: Axes | None, p: Param | None
) -> tuple[Param | None, Array | None]:
    """Zeros for a projected leaf and its basis; other leaves are returned unchanged."""
    if p is None:
        return None, None
    if axes is None:
        # Optax keeps an array without elements here, which Orbax cannot save.
        return p, replicated_near(p, jnp.zeros((1, 1), p.dtype))
    dtype = update_dtype(p, p)  # a floating dtype, even for integers
    m, n = _shape(p, axes)
    k = min(rank, m, n)
    small = jnp.zeros((k, n) if m >= n else (m, k), dtype)
    basis = jnp.zeros((max(m, n), k), dtype)
    return replicated_near(p, small), replicated_near(p, basis)


def _widened(name: str, leaves: Leaves, rows: list[Row], bases: list[Any]) -> list[Any]:
    """The gradients to project, in float32 or wider; `None` for other leaves."""
    xs: list[Any] = [None] * len(rows)
    for k, ((axes, g), basis) in enumerate(zip(rows, bases, strict=True)):
        if g is None or axes is None:
            continue
        if basis.shape[:1] != (max(_shape(g, axes)),):
            raise ValueError(
                f"{name}: leaf {leaves.path(k)} has shape {g.shape} in the updates "
                f"and {basis.shape} in the state's `projector`. {_ADVICE}"
            )
        xs[k] = widen(g, wide_dtype([g, basis]), integers=True)
    return xs


def _projected(rows: list[Row], xs: list[Any], bases: list[Any]) -> list[Any]:
    """The coordinates of the gradients to project; other gradients unchanged."""
    return [
        g if x is None or axes is None else _coordinates(basis, x, axes)
        for (axes, g), x, basis in zip(rows, xs, bases, strict=True)
    ]


def _step(
    scale: Real,
    axes: Axes | None,
    g: Any,
    p: Any,
    basis: Any,
    u: Any,
) -> Array | None:
    """The update of a leaf, from the base optimizer's update `u`."""
    if g is not None and axes is not None:
        u = scale * _back(basis, u, g, axes)
    return u if g is None else restore(u, update_dtype(g, p))


def _any_is_zero(xs: list[Any], bases: list[Any]) -> Array:
    """Whether a leaf with a gradient has no basis yet: it was missing when one was due.

    Args:
        xs: the gradients to project, and `None` for other leaves.
        bases: the basis of each leaf.
    """
    pairs = zip(xs, bases, strict=True)
    empty = [jnp.logical_not(jnp.any(basis)) for x, basis in pairs if x is not None]
    return jnp.any(jnp.array(empty, bool))


def _latest(due: Array, old: list[Any], xs: list[Any], axes: list[Any]) -> list[Any]:
    """The bases, recomputed if due. Matrices of one shape share a batched SVD."""

    def new(old: list[Any], xs: list[Any]) -> list[Any]:
        bases = list(old)
        # Tall and wide matrices use singular vectors of different sides.
        pairs = zip(xs, axes, strict=True)
        kinds = [None if x is None else (x.shape, its) for x, its in pairs]
        for row in stacks(xs, kinds):
            k, dtype = old[row[0]].shape[1], old[row[0]].dtype
            one = partial(_directions, axes=axes[row[0]], k=k)
            # Singular vectors are not differentiable where singular values coincide.
            mine = [jax.lax.stop_gradient(xs[j]) for j in row]
            if len(row) == 1:
                directions = [sharded_like(old[row[0]], one, mine[0])]
            else:
                directions = jax.vmap(one)(jnp.stack(mine))
            for j, basis in zip(row, directions, strict=True):
                bases[j] = restore(basis, dtype)
        return bases

    if isinstance(due, Tracer):
        return cond_under_vmap(due, new, lambda old, xs: old, old, xs)
    return new(old, xs) if due else old


def _coordinates(basis: Array, x: Array, axes: Axes) -> Array:
    """The coordinates of the gradient in the basis."""

    def product(basis: Array, x: Array) -> Array:
        x = as_matrices(x, axes)[0]
        return basis.conj().T @ x if _is_tall(x.shape) else x @ basis

    return sharded_like(basis, product, widen(basis, wide_dtype([x, basis])), x)


def _back(basis: Array, u: Array, g: Array, axes: Axes) -> Array:
    """The step with coordinates `u` in the basis, in the shape of `g`."""
    real = wide_dtype([basis, u])

    def product(basis: Array, u: Array) -> Array:
        wide = basis @ u if _is_tall(_shape(g, axes)) else u @ basis.conj().T
        return from_matrices(wide[None], g.shape, axes)

    return sharded_like(g, product, widen(basis, real), widen(u, real))


def _directions(g: Array, axes: Axes, k: int) -> Array:
    """The first `k` singular vectors, on the longer side."""
    x = as_matrices(g, axes)[0]
    left, _, right = jnp.linalg.svd(x, full_matrices=False)
    return left[:, :k] if _is_tall(x.shape) else right[:k].conj().T


def _is_tall(shape: Sequence[int]) -> bool:
    return shape[0] >= shape[1]


def _shape(x: Param, axes: Axes) -> tuple[int, int]:
    _, m, n = jax.eval_shape(lambda: as_matrices(jnp.zeros(x.shape), axes)).shape
    return m, n


def _rows(name: str, numbers: NumbersOrFn, tree: Params) -> list[Row]:
    """The axes of each leaf, and the leaf. Every axis must be a row or column axis."""
    rows = axes_by_leaf(name, numbers, tree)
    for k, (axes, x) in enumerate(rows):
        if axes is not None and axes.batch:
            raise ValueError(
                f"{name}: leaf {leaf_paths(tree)[k]} of shape {x.shape} has reduction "
                f"axes {axes.reduction} and output axes {axes.output}, expected every "
                "axis in one of them."
            )
    return rows


def _all_matrices(tree: Params) -> PyTree:
    numbers = lambda x: GaLoreDimensionNumbers() if jnp.ndim(x) == 2 else None
    return jax.tree.map(numbers, tree)


def _of_two_axes(name: str, numbers: NumbersOrFn, tree: Params) -> PyTree:
    """The numbers, with `None` for vectors and scalars, which are not matrices."""
    return map_numbers(name, lambda n, x: n if x.ndim > 1 else None, numbers, tree)
