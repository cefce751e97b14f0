"""State in the memory of the host, copied to the device for each step.

Ren et al., ZeRO-Offload: democratizing billion-scale model training, 2021,
arXiv:2101.06840 (there the host also computes the step; here it only stores)
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax.core import Tracer
from jaxtyping import Array

from .. import check
from ..core import (
    AnyTransformation,
    as_inner,
    GradientTransformationExtraArgs,
    OptState,
    Params,
    Transformation,
    transformation,
    Updates,
)
from ..engine import streamed, WrapperInfo
from ..tree import as_patterns, matching

_NAME = "offload"
_PINNED = "pinned_host"
_MEMORIES = _PINNED, "unpinned_host"


@transformation
def offload(
    inner: AnyTransformation, match: str = ".*", to: str = "pinned_host"
) -> GradientTransformationExtraArgs:
    """Keep the state of `inner` in the memory of the host between steps.

    A step copies each array of the state to the device when it is used, and copies the
    new one back. Inside `jit`, and so in `make_step`, only a few arrays are on the
    device at once. The numbers are those of `inner`, and the arrays keep their
    shardings.

    The state takes no memory of the device between steps, and little during one: AdamW
    in float32 saves 8 bytes per param. A step takes longer by the time of the copies.
    Use it outside all other wrappers, since only `offload` moves arrays between the
    memories. Make the state with `steepest.init`: `tx.init` makes all of it on the
    device before it moves it.

    Args:
        inner: any transformation; it receives the extra arguments.
        match: a regular expression for the paths of the arrays in the state to move,
            such as `mu` or `embed`; it may match anywhere in the path. By default all.
            Scalars, such as step counts, and random keys stay on the device.
        to: the memory: "pinned_host", from which a GPU can copy by itself, or
            "unpinned_host", if the device has it. Inside `jit`, JAX only knows the
            first; with the second, use `make_step` or `make_train_step`, which return
            the state to the memory that it came from.

    >>> import jax.numpy as jnp, steepest
    >>> tx = steepest.offload(steepest.adam(1e-3))
    >>> tx.init(jnp.ones(3))[0].mu.sharding.memory_kind
    'pinned_host'
    """
    tx = as_inner(_NAME, "inner", inner)
    as_patterns(_NAME, [match])  # an error names this function
    check.choice(_NAME, _MEMORIES, to=to)
    selected = matching(match)
    to_host, to_device = (partial(_put, to=place) for place in (to, None))

    def is_moved(state: OptState) -> OptState:
        return jax.tree.map(lambda x, on: on and _is_array(x), state, selected(state))

    def move(put: Callable[[Any], Any], state: OptState) -> OptState:
        leaf = lambda x, moved: put(x) if moved else x
        return jax.tree.map(leaf, state, is_moved(state))

    def init(params: Params) -> OptState:
        _check_device(to, params)
        return move(to_host, tx.init(params))

    def update(
        updates: Updates,
        state: OptState,
        params: Params | None = None,
        **extra_args: object,
    ) -> tuple[Updates, OptState]:
        step = lambda state: tx.update(updates, state, params, **extra_args)
        if any(isinstance(x, Tracer) for x in jax.tree.leaves(state)):
            return streamed(step, state, is_moved, to_device, to_host)
        out, new = step(move(to_device, state))
        return out, move(to_host, new)

    def memory(shapes: OptState) -> OptState:
        at = lambda x: x.sharding.with_memory_kind(to)
        struct = lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=at(x))
        return move(struct, shapes)

    return Transformation(init, update, WrapperInfo(_NAME, tx, "", memory=memory))


def _put(x: Array, to: str | None) -> Array:
    """An array in a memory of the host, or, for `None`, of the device."""
    if to == _PINNED:
        return jax.device_put(x, jax.memory.Space.Host)
    if to is None or isinstance(x, Tracer):
        return jax.device_put(x, jax.memory.Space.Device)
    return jax.device_put(x, x.sharding.with_memory_kind(to))


def _check_device(to: str, params: Params) -> None:
    """Check that the device of the params has this memory."""
    arrays = [x for x in jax.tree.leaves(params) if isinstance(x, jax.Array)]
    arrays = [x for x in arrays if not isinstance(x, Tracer)]
    mine = arrays[0].sharding.addressable_devices if arrays else jax.local_devices()
    device = next(iter(mine))
    has = [memory.kind for memory in device.addressable_memories()]
    if to not in has:
        raise ValueError(
            f"{_NAME}: to is {to!r}, but {device} has only the memories "
            f"{', '.join(map(repr, has))}. Pass one of them that is the host's, or "
            "keep the state on the device."
        )


def _is_array(x: object) -> bool:
    """Whether `x` has axes, and is not a random key."""
    dtype = getattr(x, "dtype", None)
    is_key = dtype is None or jnp.issubdtype(dtype, jax.dtypes.prng_key)
    return not is_key and getattr(x, "ndim", 0) > 0
