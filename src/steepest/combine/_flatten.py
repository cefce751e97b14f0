"""Apply a transformation to all leaves as one vector."""

from collections.abc import Sequence
from itertools import accumulate

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array

from ..core import (
    AnyTransformation,
    as_inner,
    GradientTransformationExtraArgs,
    OptState,
    Params,
    transformation,
    Updates,
)
from ..engine import Leaves, map_leaves, restore, update_dtype, WrapperInfo, wrapping


@transformation
def flatten(inner: AnyTransformation) -> GradientTransformationExtraArgs:
    """Apply `inner` to one vector of all the leaves, in their widest dtype.

    Operations on single leaves, such as norms or factored moments, then act on the
    whole vector. Many small leaves cost less; large leaves are copied twice. The
    updates are returned in their original structure and dtypes.

    Inside `jax.shard_map` the vector holds one device's shards. A replicated leaf then
    counts once per device in a norm of `inner`.

    Args:
        inner: any transformation; its state is that of one vector.

    >>> import jax.numpy as jnp, steepest
    >>> tx = steepest.flatten(steepest.adam(0.1))
    >>> state = tx.init({"w": jnp.ones((2, 3)), "b": jnp.ones(2)})
    >>> state[0].mu.shape
    (8,)
    """
    tx = as_inner("flatten", "inner", inner)

    def init(params: Params) -> OptState:
        Leaves(params, "params").check("flatten")
        return tx.init(_vector(jax.tree.leaves(params)))

    def update(
        updates: Updates,
        state: OptState,
        params: Params | None = None,
        **extra_args: object,
    ) -> tuple[Updates, OptState]:
        gs = Leaves(updates)
        gs.check("flatten")
        ps = None
        if params is not None:
            ps = gs.match("flatten", params, "params", _ADVICE)
            map_leaves("flatten", lambda g, p: g, updates=updates, params=params)
        beside = gs.arrays if ps is None else ps
        # A leaf without a gradient still has its place in the vector.
        full = [
            _zeros(p) if g is None else g
            for g, p in zip(gs.arrays, beside, strict=True)
        ]
        p = None if ps is None else _vector(ps)
        u, state = tx.update(_vector(full), state, p, **extra_args)
        cuts = iter(_cut(u, [x for x in full if x is not None]))
        cut = [None if x is None else next(cuts) for x in full]
        rows = zip(gs.arrays, beside, cut, strict=True)
        restored = [
            None if g is None or x is None else restore(x, update_dtype(g, p))
            for g, p, x in rows
        ]
        return gs.like(restored), state

    return wrapping(init, update, WrapperInfo("flatten", tx, ""))


_ADVICE = "Pass the params that the updates belong to."


def _zeros(p: ArrayLike | None) -> Array | None:
    return None if p is None else jnp.zeros_like(p)


def _vector(leaves: Sequence[ArrayLike | jax.ShapeDtypeStruct | None]) -> Array:
    """The leaves, concatenated into one vector."""
    arrays = [jnp.asarray(_known(x)).ravel() for x in leaves if x is not None]
    with jax.numpy_dtype_promotion("standard"):
        return jnp.concatenate(arrays) if arrays else jnp.zeros((0,))


def _cut(vector: Array, leaves: Sequence[Array | np.ndarray]) -> list[Array]:
    """Split the vector into arrays with the shapes of the leaves."""
    ends = list(accumulate(x.size for x in leaves))
    pieces = zip(leaves, ends, strict=True)
    return [vector[end - x.size : end].reshape(x.shape) for x, end in pieces]


def _known(x: ArrayLike | jax.ShapeDtypeStruct) -> ArrayLike:
    """`x`, or zeros if it is only a shape, which is enough for `init`."""
    return jnp.zeros(x.shape, x.dtype) if isinstance(x, jax.ShapeDtypeStruct) else x
