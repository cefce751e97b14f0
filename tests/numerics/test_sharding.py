"""The sharding of arrays."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, NamedSharding, PartitionSpec

from steepest.numerics import sharded_like

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
