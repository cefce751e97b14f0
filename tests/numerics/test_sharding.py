"""The sharding of arrays."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, NamedSharding, PartitionSpec

from steepest.numerics import replicated_near, sharded_like, sharded_near

P = PartitionSpec


def test_the_result_lives_where_it_should():
    """A product of sharded matrices, on a mesh where JAX needs an output sharding."""
    mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Explicit,) * 2)
    x = jax.random.normal(jax.random.key(0), (8, 4))
    with jax.set_mesh(mesh):
        sharded = jax.device_put(x, NamedSharding(mesh, P("x", "y")))
        gram = jax.jit(lambda x: sharded_like(x, lambda x: x @ x.T @ x, x))(sharded)
        assert jax.typeof(gram).sharding.spec == P("x", "y")
    np.testing.assert_allclose(gram, x @ x.T @ x, rtol=1e-5)


def test_elsewhere_nothing_happens():
    x = jnp.ones((2, 3))
    assert sharded_like(x, lambda x: 2 * x, x).tolist() == (2 * x).tolist()


def test_new_zeros_are_put_on_explicit_axes_only():
    zeros = jnp.zeros((2, 3))
    for kind in (AxisType.Auto, AxisType.Explicit):
        mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(kind, kind))
        p = jax.device_put(jnp.ones((8, 6)), NamedSharding(mesh, PartitionSpec("x")))
        struct = jax.ShapeDtypeStruct(p.shape, p.dtype, sharding=p.sharding)
        for near in (p, struct):
            found = replicated_near(near, zeros)
            assert len(found.devices()) == (8 if kind is AxisType.Explicit else 1)
        inside = jax.jit(lambda p: (replicated_near(p, jnp.zeros(3)), p))(p)[0]
        assert len(inside.devices()) == 8


def test_an_axis_is_sharded_where_the_mesh_is_known():
    x = jnp.zeros((2, 8, 3))
    whole, over_both = (2, 8, 3), (2, 1, 3)
    part = lambda x: x.sharding.shard_shape(x.shape)
    for kind in (AxisType.Auto, AxisType.Explicit):
        mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(kind, kind))
        p = jax.device_put(jnp.ones((8, 6)), NamedSharding(mesh, PartitionSpec("x")))
        near = lambda p, axes, k=1: sharded_near(p, x, axes, k)
        assert part(near(p, ("x", "y"))) == over_both
        with jax.set_mesh(mesh):
            assert part(jax.jit(near, static_argnums=1)(p, ("x", "y"))) == over_both
        # No axes; no such axis of the mesh; one that does not divide 2; one that `x`
        # does not have; a param on one device.
        for found in (
            near(p, ()),
            near(p, ("z",)),
            near(p, ("x",), 0),
            near(p, ("x",), 3),
            near(jnp.ones(8), ("x",)),
        ):
            assert part(found) == whole and len(found.devices()) == 1
