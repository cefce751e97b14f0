"""State in the memory of the host, copied to the device for each step.

Ren et al., ZeRO-Offload: democratizing billion-scale model training, 2021,
arXiv:2101.06840 (there the host also computes the step; here it only stores)
"""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import PyTree

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
from ..engine import WrapperInfo
from ..tree import as_patterns, matching

_NAME = "offload"


@transformation
def offload(
    inner: AnyTransformation, match: str = ".*"
) -> GradientTransformationExtraArgs:
    """Keep the state of `inner` in the memory of the host between steps.

    A step copies the state to the device, computes there, and copies the new state
    back. The numbers are those of `inner`, and the arrays keep their shardings.

    Between steps, the state takes no memory of the device: 8 bytes per param of AdamW
    in float32. A step takes longer by the time of the copies. Use it outside all other
    wrappers, since only `offload` moves arrays between the memories.

    Args:
        inner: any transformation; it receives the extra arguments.
        match: a regular expression for the paths of the arrays in the state to move,
            such as `mu` or `embed`; it may match anywhere in the path. By default all.
            Scalars, such as step counts, and random keys stay on the device.

    >>> import jax.numpy as jnp, steepest
    >>> tx = steepest.offload(steepest.adam(1e-3))
    >>> tx.init(jnp.ones(3))[0].mu.sharding.memory_kind
    'pinned_host'
    """
    tx = as_inner(_NAME, "inner", inner)
    as_patterns(_NAME, [match])  # an error names this function
    selected = matching(match)

    def move(state: OptState, to: Any) -> OptState:
        def leaf(x: PyTree, here: PyTree) -> PyTree:
            return jax.device_put(x, to) if here and _is_array(x) else x

        return jax.tree.map(leaf, state, selected(state))

    def init(params: Params) -> OptState:
        return move(tx.init(params), jax.memory.Space.Host)

    def update(
        updates: Updates,
        state: OptState,
        params: Params | None = None,
        **extra_args: object,
    ) -> tuple[Updates, OptState]:
        state = move(state, jax.memory.Space.Device)
        updates, state = tx.update(updates, state, params, **extra_args)
        return updates, move(state, jax.memory.Space.Host)

    return Transformation(init, update, WrapperInfo(_NAME, tx, ""))


def _is_array(x: object) -> bool:
    """Whether `x` has axes, and is not a random key."""
    dtype = getattr(x, "dtype", None)
    is_key = dtype is None or jnp.issubdtype(dtype, jax.dtypes.prng_key)
    return not is_key and getattr(x, "ndim", 0) > 0
