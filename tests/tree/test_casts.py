"""Casting and filling trees, and adding axes."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from steepest import MaskedNode, tree
from tests.oracles._calls import assert_same, called

HALF, BRAIN = jnp.float16, jnp.bfloat16


def a_tree():
    return {"w": jnp.array([1.5, -2.0]), "n": None, "i": jnp.array([1, 2])}


CALLS = {
    "cast": lambda t, x: t.cast(x, HALF),
    "cast_by_name": lambda t, x: t.cast(x, "bfloat16"),
    "cast_to_integers": lambda t, x: t.cast(x, jnp.int32),
    "cast_to_nothing": lambda t, x: t.cast(x, None),
    "cast_like": lambda t, x: t.cast_like(x, t.cast(x, HALF)),
    "zeros_like": lambda t, x: t.zeros_like(x),
    "zeros_like_in": lambda t, x: t.zeros_like(x, HALF),
    "ones_like": lambda t, x: t.ones_like(x),
    "ones_like_in": lambda t, x: t.ones_like(x, "bfloat16"),
    "full_like": lambda t, x: t.full_like(x, 7),
    "full_like_in": lambda t, x: t.full_like(x, 2.5, jnp.float32),
    "batch_shape": lambda t, x: t.batch_shape(x, (3, 1)),
    "batch_shape_of_none": lambda t, x: t.batch_shape(x),
}


@pytest.mark.parametrize("name", CALLS)
def test_as_optax_does(name):
    x = a_tree()
    assert_same(CALLS[name](tree, x), called(CALLS[name], optax.tree, x))


def test_cast_takes_python_numbers():
    assert_same(tree.cast([1, 2.5], HALF), [jnp.array(1, HALF), jnp.array(2.5, HALF)])


def test_cast_to_nothing_is_the_tree_itself():
    x = a_tree()
    assert tree.cast(x, None) is x


def test_an_unknown_dtype_is_a_type_error():
    with pytest.raises(TypeError):
        tree.cast(jnp.ones(1), "no dtype")


def test_cast_like_looks_at_dtypes_alone():
    """Shapes may differ; Python numbers and `None` on either side do not change."""
    x = {"a": jnp.ones(3), "b": 2.5, "c": jnp.ones(1)}
    like = {"a": jnp.ones(2, HALF), "b": jnp.ones(1, HALF), "c": None}
    found = tree.cast_like(x, like)
    assert (found["a"].dtype, found["a"].shape) == (HALF, (3,))
    assert found["b"] == 2.5
    assert found["c"].dtype == jnp.float32
    shape = jax.ShapeDtypeStruct((2,), HALF)
    assert tree.cast_like(jnp.ones(3), shape).dtype == HALF


def test_cast_like_wants_one_structure():
    for t in (tree, optax.tree):
        with pytest.raises(ValueError):
            t.cast_like({"a": jnp.ones(1)}, {"b": jnp.ones(1)})


def test_filled_trees_take_shapes_and_keep_masks():
    x = {"s": jax.ShapeDtypeStruct((2,), HALF), "m": MaskedNode()}
    for f in (tree.zeros_like, tree.ones_like, lambda x: tree.full_like(x, 3)):
        assert (f(x)["s"].shape, f(x)["s"].dtype) == ((2,), HALF)
        assert f(x)["m"] == MaskedNode()


def test_full_like_broadcasts_its_value():
    found = tree.full_like(jnp.ones((2, 2)), jnp.array([[1.0, 2.0]]))
    np.testing.assert_array_equal(found, [[1, 2], [1, 2]])


def test_batch_shape_wants_a_sequence():
    with pytest.raises(TypeError):
        tree.batch_shape.__wrapped__(jnp.ones(1), 3)


MIXED = {
    "nothing": {},
    "one": [HALF],
    "same": [HALF, HALF],
    "half_and_float": [HALF, jnp.float32],
    "float_and_half": [jnp.float32, HALF],
    "halves": [HALF, BRAIN],
    "three": [HALF, BRAIN, jnp.float32],
    "integers_and_half": [jnp.int32, HALF],
    "signed_and_not": [jnp.uint8, jnp.int8],
    "complex": [jnp.float32, jnp.complex64],
}


@pytest.mark.parametrize("handler", [None, "promote", "highest", "lowest"])
@pytest.mark.parametrize("name", MIXED)
def test_dtype_as_optax_says(name, handler):
    x = [jax.numpy.ones(1, dtype) for dtype in MIXED[name]]
    try:
        wanted = called(optax.tree.dtype, x, handler)
    except ValueError:
        with pytest.raises(ValueError, match=r"leaf \[1\]"):
            tree.dtype(x, handler)
    else:
        assert tree.dtype(x, handler) == wanted


def test_dtype_of_numbers_shapes_and_keys():
    assert tree.dtype(1.0) == tree.dtype({}) == jnp.float32
    assert tree.dtype(3) == jnp.int32
    assert tree.dtype(np.ones(2)) == jnp.float32
    assert tree.dtype(jax.ShapeDtypeStruct((2,), HALF)) == HALF
    key = jax.random.key(0)
    assert tree.dtype(key) == key.dtype
    with jax.enable_x64(True):
        assert tree.dtype({}) == tree.dtype(np.ones(2)) == jnp.float64


def test_an_unknown_handler_is_an_error():
    with pytest.raises(ValueError, match="mixed_dtype_handler is 'any'"):
        tree.dtype(jnp.ones(1), "any")
