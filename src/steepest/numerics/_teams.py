"""Stacks of matrices, shared by the devices of a mesh.

If matrices are sharded by rows or columns, every product of two of them needs an
exchange between the devices. Instead, each matrix is sent to one device, which computes
all products, and the result is sent back: for 8 matrices of 64 x 256 on 8 devices, Muon
then exchanges 128 KB in 2 operations, and else 3,712 KB in 17 (JAX 0.10.2, `python -m
benchmarks.collectives`).
"""

from collections.abc import Callable
from math import prod
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
from jax.core import Tracer
from jax.sharding import (
    AbstractMesh,
    AxisType,
    get_abstract_mesh,
    Mesh,
    NamedSharding,
    PartitionSpec,
)
from jaxtyping import Array, PyTree

from ._xla import after

T = TypeVar("T")


class Team(NamedTuple):
    """The devices along some axes of a mesh."""

    mesh: Mesh | AbstractMesh
    axes: tuple[str, ...]

    @property
    def size(self) -> int:
        """The number of devices that get different matrices."""
        return prod(self.mesh.shape[name] for name in self.axes)


def team_of(name: str, axes: tuple[str, ...], x: Any) -> Team:
    """The devices along these axes of the mesh that is set, or that `x` is on.

    Args:
        name: name used in error messages.
        axes: names of mesh axes.
        x: any of the arrays.
    """
    meshes: list[Mesh | AbstractMesh] = [
        get_abstract_mesh(),
        jax.typeof(x).sharding.mesh,
    ]
    where = None if isinstance(x, Tracer) else getattr(x, "sharding", None)
    if isinstance(where, NamedSharding):
        meshes.append(where.mesh)
    given = repr(axes[0]) if len(axes) == 1 else repr(axes)
    for mesh in meshes:
        types = dict(zip(mesh.axis_names, mesh.axis_types, strict=True))
        if not set(axes) <= set(types):
            continue
        if any(types[axis] == AxisType.Manual for axis in axes):
            raise ValueError(
                f"{name}: reshard is {given}, but inside `jax.shard_map` each device "
                "has arrays of its own along this axis. Call the step outside of it."
            )
        return Team(mesh, axes)
    known = sorted({str(axis) for mesh in meshes for axis in mesh.axis_names})
    has = f"the mesh has the axes {known}" if known else "no mesh is set"
    raise ValueError(
        f"{name}: reshard is {given}, but {has}. Name axes of the mesh, and call the "
        "step inside `with jax.set_mesh(mesh):`."
    )


def divided(team: Team, f: Callable[..., T], like: T, *stacks: PyTree) -> T:
    """`f(*stacks)`, where each device computes some members of the stacks.

    Args:
        team: the devices.
        f: a function of stacks that computes each member from the members of the same
            index. What it returns unchanged is not sent back.
        like: stacks in the shardings of the results; the same structure.
        stacks: trees of arrays, whose first axis is that of the stack.
    """
    mesh = get_abstract_mesh()  # not `team.mesh`, if its axes are automatic only here
    mesh = team.mesh if mesh.empty else mesh
    arrays, treedef = jax.tree.flatten(stacks)
    many = len(arrays[0])
    more = -many % team.size
    unchanged: list[Array | None] = []  # for each result, the array it is

    def place(x: Array, *spec: Any) -> Array:
        where = NamedSharding(mesh, PartitionSpec(*spec))
        return jax.lax.with_sharding_constraint(x, where)

    def spread(x: Array, count: int) -> Array:
        """`x`, whose stack is divided over the first axes, and the members in any way.

        From one to the next, one mesh axis changes its place, which is an all-to-all.
        The compiler would replicate an array to change two of them at once.
        """
        anyhow = [PartitionSpec.UNCONSTRAINED] * (x.ndim - 1)
        return place(x, team.axes[:count], *anyhow)

    def send(x: Array) -> Array:
        if more:  # copies of a member, whose results are not used
            x = jnp.concatenate([x, jnp.broadcast_to(x[:1], (more, *x.shape[1:]))])
        for count in range(len(team.axes)):
            x = spread(x, count)
        return place(x, team.axes)

    def send_back(x: Array, old: Array) -> Array:
        x = place(x, team.axes)
        for count in reversed(range(len(team.axes))):
            x = spread(x, count)
        # A formula with the old array, so that the compiler gives both one sharding.
        return after(x[:many], spread(old, 0))

    def mine(sent: list[Array]) -> list[Array]:
        same = dict(zip(map(id, sent), arrays, strict=True))
        new = jax.tree.leaves(f(*treedef.unflatten(sent)))
        unchanged[:] = [same.get(id(x)) for x in new]
        return [x for x in new if id(x) not in same]

    # Each device computes alone, also where the compiler does not see that it can, as
    # in a scatter.
    spec = PartitionSpec(team.axes)
    new = iter(
        jax.shard_map(
            mine,
            mesh=mesh,
            in_specs=spec,
            out_specs=spec,
            axis_names=set(team.axes),
            check_vma=False,
        )([send(x) for x in arrays])
    )
    olds, structure = jax.tree.flatten(like)
    pairs = zip(olds, unchanged, strict=True)
    return structure.unflatten(
        [send_back(next(new), old) if same is None else same for old, same in pairs]
    )
