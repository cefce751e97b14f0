"""Params on a mesh of eight devices."""

import jax
import jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

AUTO, EXPLICIT = AxisType.Auto, AxisType.Explicit


def mesh(kind=AUTO):
    return jax.make_mesh((4, 2), ("x", "y"), axis_types=(kind, kind))


def on(mesh, *spec, **memory):
    return NamedSharding(mesh, P(*spec), **memory)


def params(mesh, w=("x", "y"), b=("y",)):
    """A matrix and a vector."""
    arrays = {"w": jnp.ones((8, 16)), "b": jnp.ones(8)}
    return jax.device_put(arrays, {"w": on(mesh, *w), "b": on(mesh, *b)})


def specs(where):
    """The specs of a tree of shardings, without `None`s at the end."""

    def short(sharding):
        spec = list(sharding.spec)
        while spec and spec[-1] is None:
            spec.pop()
        return tuple(spec)

    return jax.tree.map(short, where)
