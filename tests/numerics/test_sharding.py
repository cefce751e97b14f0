"""The sharding of arrays."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, NamedSharding, PartitionSpec

from steepest.numerics import (
    replicated_near,
    reshaped,
    sharded_like,
    sharded_near,
    sliced,
)

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


def test_arrays_on_no_mesh_are_replicated():
    """Such as factors from `tx.init`."""
    x, free = _numbered((8, 4), P("x")), jnp.ones(3)
    double = lambda x, y: (2 * x, 2 * y)
    f = jax.jit(lambda x, y: sharded_like((x, y), double, x, y))
    y, there = f(x, free)
    assert _spec(y) == ("x", None)
    assert len(there.devices()) == 8 and there.tolist() == [2, 2, 2]


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


def _numbered(shape, spec, kind=AxisType.Explicit):
    mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(kind, kind))
    x = jnp.arange(np.prod(shape)).reshape(shape)
    return jax.device_put(x, NamedSharding(mesh, spec))


def _spec(x):
    return tuple(jax.typeof(x).sharding.spec)


@pytest.mark.parametrize(
    "shape, spec, new, expected",
    [
        ((16, 4), P("x"), (8, 2, 4), ("x", None, None)),  # to the first
        ((8, 4), P("x"), (2, 4, 4), (None, "x", None)),  # to the first it divides
        ((6, 5), P("y"), (3, 2, 5), (None, "y", None)),
        ((16, 4), P(("x", "y")), (4, 4, 4), ("x", "y", None)),
        ((16, 4), P(("x", "y")), (16, 1, 4), (("x", "y"), None, None)),
        ((12, 6), P("x", "y"), (2, 6, 3, 2), (None, None, None, "y")),  # to none
        ((3, 4, 8), P(None, "x"), (12, 8), ("x", None)),
        ((2, 2, 4, 8), P(None, "y", "x"), (16, 8), (("y", "x"), None)),
        ((1, 8, 4), P(None, "x"), (8, 4, 1), ("x", None, None)),
        ((4, 6), P("x", "y"), (6, 4), ("y", "x")),  # both axes become both
        ((0, 8), P(), (0,), (None,)),
    ],
)
def test_reshaped(shape, spec, new, expected):
    """A mesh axis stays with the numbers that it shards."""
    x = _numbered(shape, spec)
    for f in (reshaped, jax.jit(reshaped, static_argnums=1)):
        y = f(x, new)
        assert _spec(y) == expected
        np.testing.assert_array_equal(y, np.asarray(x).reshape(new))
        back = reshaped(y, shape, x)
        assert _spec(back) == _spec(x)
        np.testing.assert_array_equal(back, x)
    auto = _numbered(shape, spec, AxisType.Auto)
    np.testing.assert_array_equal(reshaped(auto, new), y)


def test_sliced():
    """A part is sharded over the mesh axes that divide it."""
    x = _numbered((3, 16, 6), P(None, ("x", "y")))
    both = "x", "y"
    cases = {(0, 16): both, (0, 8): both, (0, 4): "x", (2, 4): "y", (1, 4): None}
    for (a, b), expected in cases.items():
        y = sliced(x, (slice(a, b), slice(0, 5)))
        assert _spec(y) == (None, expected, None)
        np.testing.assert_array_equal(y, np.asarray(x)[:, a:b, :5])
