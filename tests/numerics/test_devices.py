"""Sums over devices. Under `shard_map`, with optimizers: `laws/test_shard_map.py`."""

import functools

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import AxisType, PartitionSpec as P

from steepest.core import mesh_axes
from steepest.numerics import by_split, length, rms, split_over, sum_of_leaves

MESH = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
AXES = mesh_axes("f", ("x", "y"))


def _inside(f, *specs, **options):
    """The result of `f` inside `shard_map`, with arrays sharded as given."""
    found = []
    run = jax.shard_map(
        lambda *xs: found.append(f(*xs)) or jnp.zeros(()),
        mesh=MESH,
        in_specs=specs,
        out_specs=P(),
        **options,
    )
    jax.eval_shape(run, *(jnp.ones(8) for _ in specs))
    return found[0]


@pytest.mark.parametrize("known", [True, False])
def test_an_array_is_summed_over_the_axes_that_split_it(known):
    f = functools.partial(split_over, AXES)
    split = functools.partial(_inside, f, check_vma=known)
    assert split(P("x")) == (("x",) if known else ("x", "y"))
    assert split(P()) == (() if known else ("x", "y"))
    assert split(P("y"), P("x")) == ("x", "y")  # two arrays, reduced together


def test_leaves_are_grouped_by_their_axes():
    groups = _inside(lambda *xs: by_split(AXES, xs), P("x"), P(), P("x"), P("y"))
    assert groups == {("x",): [0, 2], (): [1], ("y",): [3]}


def test_outside_nothing_is_summed():
    x = jnp.array([3.0, 4.0])
    assert split_over(AXES, x) == () and by_split(AXES, [x, x]) == {(): [0, 1]}
    assert length(x, AXES) == 5 and rms(x, AXES) == rms(x)
    assert sum_of_leaves(AXES, jnp.sum, [x, x], jnp.zeros(())) == 14
    assert sum_of_leaves(None, jnp.sum, [], jnp.zeros(())) == 0


def test_the_mean_is_over_all_elements():
    run = jax.shard_map(
        functools.partial(rms, axes=AXES), mesh=MESH, in_specs=P("x"), out_specs=P()
    )
    x = jnp.arange(8.0)
    assert jnp.allclose(jax.jit(run)(x), rms(x))
