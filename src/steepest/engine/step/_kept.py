"""Steps on several devices: results have the shardings of the arguments."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

import jax
import numpy as np
from jax.core import Tracer
from jax.sharding import NamedSharding, PartitionSpec, Sharding
from jaxtyping import PyTree

from ...core import OptState, Params
from ...tree import first_difference
from ._placed import placed_in

Two = tuple[Params, OptState]
_NAMES = "params", "state"
T = TypeVar("T")


@dataclass(frozen=True)
class KeptShardings:
    """The shardings of params and state; `None` where the compiler may choose."""

    treedef: Any
    leaves: tuple[Sharding | None, ...]

    @property
    def tree(self) -> PyTree:
        """A pair of trees, one like the params and one like the state."""
        return self.treedef.unflatten(self.leaves)

    def check(self, name: str, old: Two, new: Two) -> None:
        """Check that the new params and state look like the old ones.

        Args:
            name: name used in error messages.
            old: the params and the state before the step.
            new: those after it.
        """
        for tree, a, b in zip(_NAMES, old, new, strict=True):
            if jax.tree.structure(a) != jax.tree.structure(b):
                names = f"old {tree}", f"new {tree}"
                raise ValueError(
                    f"{name}: {first_difference(a, b, names)}, so the new one cannot "
                    "have the shardings of the old one. Pass params and state from "
                    "`tx.init` and earlier steps."
                )
        for path, x, y in _pairs(old, new):
            if np.shape(x) != np.shape(y):
                raise ValueError(
                    f"{name}: {path} has shape {np.shape(x)} before the step and "
                    f"{np.shape(y)} after it, so it cannot keep its sharding. Its "
                    "shape must not change."
                )


def kept_shardings(
    name: str, params: Params, state: OptState
) -> tuple[Two, KeptShardings | None]:
    """Params and state, ready for a step, and the shardings that the step returns.

    On one device, in its usual memory, there are none to keep. If the params are on a
    mesh, arrays that JAX may move (NumPy arrays, a new count) are put on the mesh:
    otherwise the second step would be compiled again.

    Args:
        name: name used in error messages.
        params: the params, or their shapes.
        state: the state, or its shapes.
    """
    both = params, state
    leaves, treedef = jax.tree.flatten(both)
    where = [_sharding(x) for x in leaves]
    many = [x for x in where if x is not None and len(x.device_set) > 1]
    if not many and not any(map(_is_elsewhere, where)):
        return both, None
    if any(isinstance(x, Tracer) for x in leaves):
        return both, None
    if many:
        if any(not placed.after for placed in placed_in(state)):
            raise ValueError(
                f"{name}: the state of `zero` does not know the shardings of the "
                "params, since it was made inside `jit` or unpickled. Use "
                "`steepest.place(state, steepest.shardings(tx, params))`."
            )
        mesh = next((x.mesh for x in many if isinstance(x, NamedSharding)), None)
        for k, (x, its) in enumerate(zip(leaves, where, strict=True)):
            if its is not None and (len(its.device_set) > 1 or _is_elsewhere(its)):
                continue
            if isinstance(x, jax.Array) and x.committed:
                raise _on_one_device(name, both, where, k)
            if mesh is not None and isinstance(x, jax.Array | np.ndarray):
                where[k] = NamedSharding(mesh, PartitionSpec())
                leaves[k] = jax.device_put(x, where[k])
    return treedef.unflatten(leaves), KeptShardings(treedef, tuple(where))


def committed(tree: T, others: PyTree) -> T:
    """`tree`, with all arrays committed to a device if one array anywhere is.

    JAX commits an array to its device if the user put it there, and all results of a
    step if one argument is committed. A second step with such results would then be
    compiled again (JAX 0.10.2). To commit an array does not copy it.

    Args:
        tree: arrays that a step returns again, all on one device.
        others: the other arguments of the step.
    """
    leaves = jax.tree.leaves((tree, others))
    arrays = [x for x in leaves if isinstance(x, jax.Array)]
    if any(isinstance(x, Tracer) for x in arrays):
        return tree
    where = next((x.sharding.device_set for x in arrays if x.committed), ())
    if len(where) != 1:
        return tree
    (device,) = where
    is_free = lambda x: (
        not x.committed if isinstance(x, jax.Array) else isinstance(x, np.ndarray)
    )
    return jax.tree.map(lambda x: jax.device_put(x, device) if is_free(x) else x, tree)


def _on_one_device(
    name: str, both: Two, where: list[Sharding | None], k: int
) -> ValueError:
    """The error for leaf `k`, which is on one device, and others are on more."""
    paths = [path for path, *_ in _pairs(both, both)]
    first, devices = next(
        (paths[j], len(x.device_set))
        for j, x in enumerate(where)
        if x is not None and len(x.device_set) > 1
    )
    return ValueError(
        f"{name}: {paths[k]} is on one device and {first} on {devices}, expected all "
        "of them on one mesh. Put a restored state there: `steepest.place(state, "
        "steepest.shardings(tx, params))`."
    )


def _pairs(old: Two, new: Two) -> Iterator[tuple[str, Any, Any]]:
    """For each leaf, its path and its values in two trees."""
    for name, a, b in zip(_NAMES, old, new, strict=True):
        rows = jax.tree_util.tree_leaves_with_path(a)
        for (path, x), y in zip(rows, jax.tree.leaves(b), strict=True):
            yield f"{name}{jax.tree_util.keystr(path)}", x, y


def _sharding(x: Any) -> Sharding | None:
    """The sharding of an array or of a shape; `None` for anything else."""
    if isinstance(x, Tracer):
        return None
    where = getattr(x, "sharding", None)
    return where if isinstance(where, Sharding) else None


def _is_elsewhere(where: Sharding | None) -> bool:
    """Whether this is not the usual memory of its devices."""
    if where is None or where.memory_kind is None:
        return False
    device = next(iter(where.device_set))
    return where.memory_kind != device.default_memory().kind
