"""The axes of a device mesh, as the argument `axis_name`.

    axes = mesh_axes("clip_by_global_norm", axis_name)

checks the argument. The functions in `numerics` that reduce an array take the result.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from ._calling import passed

AxisName = str | Sequence[str] | None


class MeshAxes(NamedTuple):
    """The mesh axes to sum over, and the function they were passed to."""

    name: str  # name used in error messages
    names: tuple[str, ...]


def mesh_axes(
    name: str, axis_name: object, argument: str = "axis_name"
) -> MeshAxes | None:
    """The axes as an object, or `None` if there are none.

    Args:
        name: name used in error messages.
        axis_name: the name of a mesh axis, several names, or `None`.
        argument: the name of the argument in error messages.
    """
    if axis_name is None:
        return None
    names = (axis_name,) if isinstance(axis_name, str) else axis_name
    if not isinstance(names, Sequence):
        value = f"a {type(axis_name).__name__}"
    elif not all(isinstance(x, str) for x in names):
        value = repr(axis_name)
    elif len(set(names)) < len(names):
        value = f"{axis_name!r}, with one name twice"
    else:
        return _made(name, tuple(names)) if names else None
    raise TypeError(
        f"{passed(name, argument, axis_name)} is {value}, expected the name of a mesh "
        "axis, a sequence of different names, or None."
    )


@lru_cache(maxsize=1024)
def _made(name: str, names: tuple[str, ...]) -> MeshAxes:
    """Equal names give the same object, so equal formulas are compiled once."""
    return MeshAxes(name, names)
