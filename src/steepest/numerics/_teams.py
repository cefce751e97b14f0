"""Stacks of matrices, shared by the devices of a mesh.

If matrices are sharded by rows or columns, every product of two of them needs an
exchange between the devices. Instead, each matrix is sent to one device, which computes
all products, and the result is sent back: for 8 matrices of 64 x 256 on 8 devices, Muon
then exchanges 128 KB in 2 operations, and else 3,712 KB in 17 (JAX 0.10.2, `python -m
benchmarks.collectives`).
"""

from collections.abc import Callable, Sequence
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
Spec = list[Any]  # the entries of a PartitionSpec


class Team(NamedTuple):
    """The devices along some axes of a mesh."""

    mesh: AnyMesh
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
        return Team(mesh, axes)
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
    """`cond_under_vmap`, for functions of arrays that devices share.

    XLA on a CPU does not put exchanges in a condition into one order with the others,
    and then its devices wait for each other forever (JAX 0.10.2). So there, a team
    always computes both.

    Args:
        team: the devices; `None` if they need not be considered.
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
    team: Team,
    f: Callable[[Array, PyTree], tuple[Array, PyTree]],
    x: Array,
    kept: PyTree = (),
) -> tuple[Array, PyTree]:
    """`f(x, kept)`, where each device computes some members of the stacks.

    The members of `x` are sent to these devices, and the results are sent back. All
    else stays where it is.

    Args:
        team: the devices.
        f: a function of stacks that computes each member from the members of the same
            index. It returns a stack of results, and new values of `kept`.
        x: an array, whose first axis is that of the stack.
        kept: a tree of arrays with the same first axis. It should be sharded over the
            axes of the team along that axis, and then no exchange is needed for it.
    """
    route = _Route(team, many=len(x))
    spec = PartitionSpec(team.axes)
    # Each device computes alone, also where the compiler does not see that it can, as
    # in a scatter, or where another axis could share the work.
    alone = jax.shard_map(
        f,
        mesh=route.mesh,
        in_specs=spec,
        out_specs=spec,
        axis_names=route.names,
        check_vma=False,
    )
    u, new = alone(route.send(x), jax.tree.map(route.stay, kept))
    return route.send_back(u, x), jax.tree.map(lambda y: y[: route.many], new)


class _Route:
    """The way of a stack to the devices that compute its members, and back."""

    def __init__(self, team: Team, many: int):
        # Not `team.mesh`, if its axes are automatic only here.
        mesh = get_abstract_mesh()
        self.mesh = team.mesh if mesh.empty else mesh
        types = zip(self.mesh.axis_names, self.mesh.axis_types, strict=True)
        self.names = {name for name, kind in types if kind != AxisType.Manual}
        self.many = many
        self._axes, self._size = team.axes, team.size

    def stay(self, x: Array) -> Array:
        """A stack where its members are computed."""
        return self._place(self._filled(x), [self._axes])

    def send(self, x: Array) -> Array:
        x = self._filled(x)
        for spec in reversed(self._stops(x)):
            x = self._place(x, spec)
        return self._place(x, [self._axes])

    def send_back(self, x: Array, old: Array) -> Array:
        x = self._place(x, [self._axes])
        stops = self._stops(x)
        for spec in stops:
            x = self._place(x, spec)
        # A formula with the old array, so that the compiler gives both one sharding.
        return after(x[: self.many], self._place(old, stops[-1]))

    def _filled(self, x: Array) -> Array:
        """The same with copies of a member, whose results are not used."""
        more = -self.many % self._size
        if not more:
            return x
        return jnp.concatenate([x, jnp.broadcast_to(x[:1], (more, *x.shape[1:]))])

    def _stops(self, x: Array) -> list[Spec]:
        """The shardings on the way back, after the one with whole members.

        From one to the next, one mesh axis changes its place, which is an all-to-all.
        The compiler would replicate an array to change two of them at once.
        """
        anyhow = [PartitionSpec.UNCONSTRAINED] * (x.ndim - 1)
        counts = reversed(range(len(self._axes)))
        return [[self._axes[:count], *anyhow] for count in counts]

    def _place(self, x: Array, spec: Spec) -> Array:
        where = NamedSharding(self.mesh, PartitionSpec(*spec))
        return jax.lax.with_sharding_constraint(x, where)
