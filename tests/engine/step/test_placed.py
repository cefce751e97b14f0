import copy
import pickle

import jax
import jax.numpy as jnp
from jax.sharding import AxisType, PartitionSpec as P

from steepest.engine.step import on_mesh, Placed, placed_in

MESH = jax.make_mesh((8,), ("x",), axis_types=(AxisType.Auto,))
PLACED = Placed(MESH, (P(),), (P("x"),))


def test_it_is_a_static_part_of_a_tree():
    tree = {"a": jnp.ones(3), "b": PLACED}
    assert len(jax.tree.leaves(tree)) == 1
    assert jax.jit(lambda tree: tree)(tree)["b"] == PLACED
    assert placed_in(tree) == [PLACED]
    assert jax.tree.structure(tree) != jax.tree.structure({**tree, "b": Placed()})


def test_the_mesh_is_kept_unless_arrays_know_it():
    traced = Placed(None, (P(),), (P("x"),))
    assert on_mesh([traced], MESH) == [PLACED]
    explicit = jax.make_mesh((8,), ("x",), axis_types=(AxisType.Explicit,))
    assert on_mesh([traced], explicit) == [traced]


def test_copies_keep_it_and_pickles_do_not():
    """Devices cannot be pickled."""
    assert copy.deepcopy([PLACED]) == [PLACED]
    assert pickle.loads(pickle.dumps([PLACED])) == [Placed()]
