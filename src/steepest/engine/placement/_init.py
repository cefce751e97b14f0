"""Make a state on the devices of its params, and put a restored one there."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jax.sharding import (
    AbstractMesh,
    AxisType,
    get_abstract_mesh,
    PartitionSpec,
    reshard,
    Sharding,
)
from jaxtyping import Array, PyTree

from ...core import AnyTransformation, as_inner, OptState, Params
from ...tree import first_difference, leaf_paths, owner_of
from ..leaves import Stacked
from ..step import committed, placed_in
from ._shardings import memory_of, mesh_of, shardings, typed_init


def init(tx: AnyTransformation, params: Params) -> OptState:
    """`tx.init(params)`, with every array where `shardings(tx, params)` says.

    On several devices, use it in place of `tx.init`, which leaves counts and factors on
    the first device, and under `jit` everything. On one device it is `tx.init`, with
    the counts on the device that the params were put on.

    It also works inside `jit`. On a mesh with automatic axes, JAX does not tell what
    the shardings of the params are; the compiler then shards the state like the params.

    Args:
        tx: any transformation.
        params: the params, or `ShapeDtypeStruct`s with a `sharding`.

    >>> import jax, jax.numpy as jnp, steepest
    >>> from jax.sharding import NamedSharding, PartitionSpec
    >>> mesh = jax.make_mesh((1,), ("data",))
    >>> where = NamedSharding(mesh, PartitionSpec("data"))
    >>> params = {"w": jax.device_put(jnp.ones((8, 4)), where)}
    >>> state = steepest.init(steepest.adamw(1e-3), params)
    >>> state[0].count.sharding.mesh == mesh
    True
    """
    tx = as_inner("init", "tx", tx)
    leaves = jax.tree.leaves(params)
    if any(isinstance(x, Tracer) for x in leaves):
        return _traced(tx, params)
    # In one program, what goes to the host need not be on the device all at once.
    if mesh_of("init", params) is None and memory_of(tx) is None:
        return committed(tx.init(params), params)
    where = shardings(tx, params)
    if placed_in(where):  # it reads the shardings of the params, unknown inside `jit`
        return place(tx.init(params), where)
    if any(isinstance(x, jax.ShapeDtypeStruct) for x in leaves):
        return jax.jit(lambda: tx.init(params), out_shardings=where)()
    return jax.jit(tx.init, out_shardings=where)(params)


def place(state: OptState, where: PyTree) -> OptState:
    """Put every array of a state where `where` says.

        state = place(restored, shardings(tx, params))

    Use it after a restore on any other mesh, or from NumPy arrays. With several
    processes, each passes the same arrays, and keeps its shards. An array that is there
    already is not copied.

    Args:
        state: a state, or any other tree of arrays.
        where: a sharding for each array, from `shardings`.

    >>> import jax.numpy as jnp, numpy as np, steepest
    >>> tx, params = steepest.adamw(1e-3), jnp.ones(3)
    >>> saved = jax.tree.map(np.asarray, tx.init(params))
    >>> state = steepest.place(saved, steepest.shardings(tx, params))
    >>> type(saved[0].mu).__name__, len(state[0].mu.devices())
    ('ndarray', 1)
    """
    paths, leaves = leaf_paths(state), jax.tree.leaves(state, is_leaf=_is_none)
    if paths != leaf_paths(where):
        names = "state", "shardings"
        raise ValueError(
            f"place: {first_difference(state, where, names)}. Pass the shardings of "
            "the same optimizer: `place(state, shardings(tx, params))`."
        )
    targets, treedef = jax.tree.flatten(where, is_leaf=_is_none)
    rows = zip(paths, leaves, targets, strict=True)
    return treedef.unflatten([_placed(*row) for row in rows])


def _placed(path: str, x: Any, where: object) -> Any:
    """One array of a state."""
    if where is None:
        return x
    if not isinstance(where, Sharding):
        raise TypeError(
            f"place: {path} of `where` is a {type(where).__name__}, expected a "
            "Sharding. Make it with `shardings(tx, params)`."
        )
    try:
        where.shard_shape(np.shape(x))
    except ValueError as error:
        raise ValueError(
            f"place: {path} of the state has shape {np.shape(x)}, which cannot be "
            f"sharded as {where}. Pass the shardings for the params that the state is "
            f"for. {error}"
        ) from None
    kind = where.memory_kind
    if isinstance(x, jax.Array) and kind and x.sharding.memory_kind != kind:
        # JAX 0.10.2 cannot move to other devices and another memory at once.
        x = jax.device_put(x, x.sharding.with_memory_kind(kind))
    here = not isinstance(x, jax.Array) or x.is_fully_addressable
    if where.is_fully_addressable or not here:
        return jax.device_put(x, where)
    if jnp.issubdtype(x.dtype, jax.dtypes.prng_key):
        data = _placed(path, jax.random.key_data(x), where)
        return jax.random.wrap_key_data(data, impl=jax.random.key_impl(x))
    # Every process has the whole array, and makes its own shards.
    whole = np.asarray(x)
    return jax.make_array_from_callback(whole.shape, where, lambda at: whole[at])


def _traced(tx: AnyTransformation, params: Params) -> OptState:
    """A state made inside `jit`."""
    leaves, treedef = jax.tree.flatten(params)
    state = tx.init(params)
    kinds = {kind for x in leaves for kind in jax.typeof(x).sharding.mesh.axis_types}
    if AxisType.Explicit in kinds:
        put = lambda x, where: reshard(x, where.update(memory_kind=None))
        return jax.tree.map(put, state, shardings(tx, params))
    if AxisType.Manual in kinds:  # inside `shard_map`, an array is one device's
        return state
    # Axis k of each param is sharded over a mesh axis called k. The types of the state
    # then tell which of its axes are which axes of the params.
    names = [str(k) for k in range(max((jnp.ndim(x) for x in leaves), default=0))]
    # The last mesh axis is not used: a mesh inside another must have the same size.
    size = get_abstract_mesh().size or 1
    mesh = AbstractMesh((*[1] * len(names), size), (*names, "rest"))
    specs = [PartitionSpec(*names[: jnp.ndim(x)]) for x in leaves]
    types = typed_init(tx, treedef, leaves, specs, mesh)
    rows = jax.tree_util.tree_leaves_with_path(params)
    owners = {path: k for k, (path, _) in enumerate(rows)}

    # Several axes of a param may be merged into one, as in blocks of a convolution.
    axis_of = lambda name: int(name) if isinstance(name, str) else None

    def leaf(path: Any, x: Array, type_: Any) -> Array:
        k, spec = owner_of(path, owners), getattr(type_.sharding, "spec", None) or ()
        p = leaves[k or 0]
        # A program that uses no param runs on one device. So arrays that are not made
        # from a param use one too.
        axes = [None if k is None else axis_of(name) for name in spec]
        like = _along(p, axes, x.shape)
        return x if like is None else _sharded_like(x, like)

    def part(path: Any, x: Any, type_: Any) -> Any:
        if not isinstance(x, Stacked):
            return leaf(path, x, type_)
        # Its stacks are already on the mesh, if it is known, and not like a param.
        pairs = zip(x.by_path, type_.by_path, strict=True)
        whole = (_mapped(leaf, (*path, *own), y, t) for (own, y), (_, t) in pairs)
        return replace(x, whole=tuple(whole))

    return jax.tree_util.tree_map_with_path(
        part, state, types, is_leaf=lambda x: isinstance(x, Stacked)
    )


def _mapped(f: Callable[..., Array], path: Any, x: PyTree, types: PyTree) -> PyTree:
    """`f(path, x, type)` for each array of a tree that is at this path."""
    one = lambda more, y, type_: f((*path, *more), y, type_)
    return jax.tree_util.tree_map_with_path(one, x, types)


def _along(p: Array, axes: list[int | None], shape: tuple[int, ...]) -> Array | None:
    """An array of this shape, sharded like these axes of `p`.

    `None` if an axis has another length than that of `p`.
    """
    axes = [*axes, *[None] * (len(shape) - len(axes))]
    if p.size == 0 or any(
        k is not None and p.shape[k] != n for k, n in zip(axes, shape, strict=True)
    ):
        return None
    kept = [k for k in axes if k is not None]
    if axes == list(range(p.ndim)):
        return p
    rest = tuple(slice(None) if k in kept else 0 for k in range(p.ndim))
    order = [sorted(kept).index(k) for k in kept]
    line = p[rest].transpose(order)
    new = [j for j, k in enumerate(axes) if k is None]
    return jnp.broadcast_to(jnp.expand_dims(line, new), shape)


def _sharded_like(x: Array, like: Array) -> Array:
    """`x`, for which the compiler chooses the sharding of `like`.

    The result of a selection is sharded like what it selects from. This one always
    selects `x`, which the compiler cannot know. `jax.experimental.shard_alike` is not
    used: in JAX 0.10.2 it gives all arrays of one shape the same sharding.
    """
    if jnp.issubdtype(x.dtype, jax.dtypes.prng_key):
        return x
    space = jax.typeof(x).memory_space
    like = jnp.real(like)
    positive = like > 0
    never = positive ^ jax.lax.optimization_barrier(positive)
    x = jax.device_put(x, jax.memory.Space.Device)  # `offload` moved it to the host
    return jax.device_put(jnp.where(never, like.astype(x.dtype), x), space)


def _is_none(x: object) -> bool:
    return x is None
