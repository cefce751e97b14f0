"""Small arrays, packed into a few vectors and unpacked."""

import jax
import jax.numpy as jnp
import pytest

from steepest.engine.leaves import Leaves
from steepest.engine.storage._layout import layout_of, repack, unpack

TREE = {"a": jnp.arange(3.0), "b": jnp.ones((2, 2)), "c": jnp.ones(9), "n": None}


def _layout(kinds=("x", "x", None, None)):
    return layout_of(Leaves(TREE), kinds)


def test_leaves_of_one_kind_lie_in_one_vector():
    packed = _layout().pack("test", TREE, "tree")
    assert [x.tolist() for x in packed.vectors] == [[0, 1, 2, 1, 1, 1, 1]]
    assert [None if x is None else x.shape for x in packed.whole] == [(9,), None]
    back = unpack(packed)
    assert back["n"] is None
    jax.tree.map(lambda x, y: (x == y).all() or pytest.fail(), TREE, back)


def test_one_alone_stays_as_it_is():
    assert _layout(("x", "y", None, None)).vectors == ()


def test_equal_layouts_are_one_structure():
    one, other = (_layout().pack("test", TREE, "tree") for _ in range(2))
    assert jax.tree.structure(one) == jax.tree.structure(other)
    assert hash(one.layout) == hash(other.layout)
    assert _layout() != _layout(("x", "y", None, None))


def test_repack_undoes_unpack():
    packed = {"memory": _layout().pack("test", TREE, "tree"), "count": jnp.zeros(())}
    again = repack(packed, unpack(packed))
    assert jax.tree.structure(again) == jax.tree.structure(packed)
    with pytest.raises(ValueError, match="repack: `tree` has another structure"):
        repack(packed, {"memory": TREE})


def test_a_leaf_of_another_shape_is_named():
    with pytest.raises(ValueError, match=r"test: leaf \['b'\] has shape \(4,\)"):
        _layout().pack("test", {**TREE, "b": jnp.ones(4)}, "tree")
