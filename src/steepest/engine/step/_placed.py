"""The shardings of params, as a part of a state that has no arrays."""

from dataclasses import dataclass, replace
from typing import Any

import jax
from jax.sharding import AxisType, PartitionSpec
from jaxtyping import PyTree

Specs = tuple[PartitionSpec, ...]


@jax.tree_util.register_static
@dataclass(frozen=True)
class Placed:
    """How params are sharded outside and inside of a transformation.

    Inside `jit`, JAX does not tell how arrays are sharded, unless the axes of the mesh
    are explicit. So a state keeps it, as a static part: a pytree without leaves.
    """

    mesh: Any = None  # `None` on explicit axes, where arrays know it
    before: Specs = ()  # of each param; empty if not known, or on one device
    after: Specs = ()
    used: Specs = ()  # of each array of the inner state, during a step
    kept: Specs = ()  # the same, between steps

    def __deepcopy__(self, memo: object) -> "Placed":
        return self

    def __reduce__(self) -> tuple[object, ...]:
        # Devices cannot be pickled. `place` puts a state on a mesh again.
        return Placed, ()


def on_mesh(state: PyTree, mesh: Any) -> PyTree:
    """A state that was traced on explicit axes, as it is on `mesh`.

    Args:
        state: a state, or its shapes.
        mesh: the mesh of the params.
    """
    if AxisType.Explicit in mesh.axis_types:
        return state
    put = lambda x: replace(x, mesh=mesh) if _is_placed(x) else x
    return jax.tree.map(put, state, is_leaf=_is_placed)


def placed_in(state: PyTree) -> list[Placed]:
    """The shardings of params that a state keeps.

    Args:
        state: a state, or its shapes.
    """
    return list(filter(_is_placed, jax.tree.leaves(state, is_leaf=_is_placed)))


def _is_placed(x: object) -> bool:
    return isinstance(x, Placed)
