"""Stacks of matrices, shared by the devices of a mesh.

If matrices are sharded by rows or columns, every product of two of them needs an
exchange between the devices. Instead, each matrix is sent to one device, which computes
all products, and the result is sent back: for 8 matrices of 64 x 256 on 8 devices, Muon
then exchanges 128 KB in 2 operations, and else 3,712 KB in 17 (JAX 0.10.2, `python -m
benchmarks.collectives`).
"""

from collections.abc import Callable, Sequence
from itertools import starmap
from math import prod
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
from jax.sharding import (
    AxisType,
    get_abstract_mesh,
    NamedSharding,
    PartitionSpec,
)
from jaxtyping import Array, Bool, PyTree

from ._cond import cond_under_vmap
from ._sharding import AnyMesh, meshes_near
from ._xla import after, short_programs

T = TypeVar("T")
Named = dict[str, PyTree]
Spec = list[Any]  # the entries of a PartitionSpec


class Team(NamedTuple):
    """The devices along some axes of a mesh."""

    mesh: AnyMesh
    axes: tuple[str, ...]
    # The names of memory whose first axis after the stack is sharded over `axes`, if
    # they divide it, as `sharded_near` does.
    by_side: frozenset[str] = frozenset()

    @property
    def size(self) -> int:
        """The number of devices that get different matrices."""
        return prod(self.mesh.shape[name] for name in self.axes)


def team_of(
    name: str, axes: tuple[str, ...], x: Any, by_side: frozenset[str] = frozenset()
) -> Team:
    """The devices along these axes of the mesh that is set, or that `x` is on.

    Args:
        name: name used in error messages.
        axes: names of mesh axes.
        x: any of the arrays.
        by_side: names of memory that is sharded along a side.
    """
    meshes = meshes_near(x)
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
        return Team(mesh, axes, by_side)
    known = sorted({str(axis) for mesh in meshes for axis in mesh.axis_names})
    has = f"the mesh has the axes {known}" if known else "no mesh is set"
    raise ValueError(
        f"{name}: reshard is {given}, but {has}. Name axes of the mesh, and call the "
        "step inside `with jax.set_mesh(mesh):`."
    )


def known_team(axes: tuple[str, ...], arrays: Sequence[Any]) -> Team | None:
    """The devices along these axes of the mesh of some array; `None` if not known.

    Args:
        axes: names of mesh axes.
        arrays: arrays or their shapes, or `None`.
    """
    for x in arrays:
        for mesh in () if x is None else meshes_near(x):
            if set(axes) <= set(mesh.axis_names):
                return Team(mesh, axes)
    return None


def cond_in(
    team: Team | None,
    condition: Bool[Array, ""],
    yes: Callable[..., T],
    no: Callable[..., T],
    *operands: PyTree,
) -> T:
    """`cond_under_vmap`, for functions that call `divided`.

    XLA on a CPU does not put exchanges in a condition into one order with the others,
    and then its devices wait for each other forever (JAX 0.10.2). So there, a team
    always computes both.

    Args:
        team: the devices; `None` if the functions do not call `divided`.
        condition: whether to call `yes`.
        yes: a function of the operands.
        no: a function of the operands that returns arrays of the same shapes.
        operands: the arguments of both.
    """
    if team is None or not short_programs():
        return cond_under_vmap(condition, yes, no, *operands)
    choose = lambda new, old: jnp.where(condition, new, old)
    return jax.tree.map(choose, yes(*operands), no(*operands))


def divided(
    team: Team, f: Callable[[Named], Named], like: Named, stacks: Named
) -> Named:
    """`f(stacks)`, where each device computes some members of the stacks.

    A single member goes to all devices, and each keeps its part of the result: for a
    factor of 256 x 256 and its basis on 8 devices, one receives 512 KB. To send it to
    one device, with padding, and back would be 768 KB.

    Args:
        team: the devices.
        f: a function of stacks that computes each member from the members of the same
            index. What it returns unchanged is not sent back.
        like: stacks in the shardings of the results, by name.
        stacks: trees of arrays, whose first axis is that of the stack, by name.
    """
    arrays, treedef = jax.tree.flatten(stacks)
    route = _Route(team, many=len(arrays[0]))
    unchanged: list[Array | None] = []  # for each result, the array it is

    def mine(sent: list[Array]) -> list[Array]:
        same = dict(zip(map(id, sent), arrays, strict=True))
        new = jax.tree.leaves(f(treedef.unflatten(sent)))
        unchanged[:] = [same.get(id(x)) for x in new]
        return [x for x in new if id(x) not in same]

    # Each device computes alone, also where the compiler does not see that it can, as
    # in a scatter.
    spec = PartitionSpec(route.axes)
    new = iter(
        jax.shard_map(
            mine,
            mesh=route.mesh,
            in_specs=spec,
            out_specs=spec,
            axis_names=set(team.axes),
            check_vma=False,
        )([*starmap(route.send, zip(arrays, _by_side(team, stacks), strict=True))])
    )
    olds, structure = jax.tree.flatten(like)
    rows = zip(olds, _by_side(team, like), unchanged, strict=True)
    return structure.unflatten(
        route.send_back(next(new), old, by_side) if same is None else same
        for old, by_side, same in rows
    )


def _by_side(team: Team, stacks: Named) -> list[bool]:
    """For each array, whether it is sharded along a side."""
    flags = {
        name: jax.tree.map(lambda _, name=name: name in team.by_side, tree)
        for name, tree in stacks.items()
    }
    return jax.tree.leaves(flags)


class _Route:
    """The way of a stack to the devices that compute its members, and back."""

    def __init__(self, team: Team, many: int):
        # Not `team.mesh`, if its axes are automatic only here.
        mesh = get_abstract_mesh()
        self.mesh = team.mesh if mesh.empty else mesh
        self.axes = () if many == 1 else team.axes
        self._team, self._many = team, many

    def send(self, x: Array, by_side: bool) -> Array:
        more = -self._many % self._team.size if self.axes else 0
        if more:  # copies of a member, whose results are not used
            x = jnp.concatenate([x, jnp.broadcast_to(x[:1], (more, *x.shape[1:]))])
        for spec in reversed(self._stops(x, by_side)):
            x = self._place(x, spec)
        return self._place(x, [self.axes])

    def send_back(self, x: Array, old: Array, by_side: bool) -> Array:
        x = self._place(x, [self.axes])
        stops = self._stops(x, by_side)
        for spec in stops:
            x = self._place(x, spec)
        # A formula with the old array, so that the compiler gives both one sharding.
        return after(x[: self._many], self._place(old, stops[-1]))

    def _stops(self, x: Array, by_side: bool) -> list[Spec]:
        """The shardings on the way back, after the one with whole members.

        From one to the next, one mesh axis changes its place, which is an all-to-all.
        The compiler would replicate an array to change two of them at once, except if
        both go to the same place.
        """
        if by_side:
            divides = x.ndim > 1 and x.shape[1] % self._team.size == 0
            return [[None, self._team.axes] if divides else []]
        anyhow = [PartitionSpec.UNCONSTRAINED] * (x.ndim - 1)
        counts = reversed(range(max(1, len(self.axes))))
        return [[self.axes[:count], *anyhow] for count in counts]

    def _place(self, x: Array, spec: Spec) -> Array:
        where = NamedSharding(self.mesh, PartitionSpec(*spec))
        return jax.lax.with_sharding_constraint(x, where)
