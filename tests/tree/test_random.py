"""Random trees, and keys for their leaves."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from steepest import tree
from tests.oracles._calls import assert_same, called

TARGET = {"w": jnp.ones(2), "b": [jnp.ones((1,), jnp.float16), None]}
KEYS = {"new": jax.random.key(3), "old": jax.random.PRNGKey(3)}


def bare(x):
    return tree.unwrap_random_key_data(x)


@pytest.mark.parametrize("kind", KEYS)
def test_keys_are_split_as_in_optax(kind):
    key = KEYS[kind]
    found = tree.split_key_like(key, TARGET)
    assert_same(bare(found), bare(called(optax.tree.split_key_like, key, TARGET)))


@pytest.mark.parametrize(
    "kind, dtype, sampler",
    [("new", None, "normal"), ("old", "bfloat16", "uniform"), ("old", None, "uniform")],
)
def test_numbers_are_drawn_as_in_optax(kind, dtype, sampler):
    args = KEYS[kind], TARGET, getattr(jax.random, sampler)
    found = tree.random_like(*args, dtype=dtype)
    assert_same(found, called(optax.tree.random_like, *args, dtype=dtype))


def test_normal_by_default():
    key = KEYS["new"]
    x = jnp.ones(3, jnp.complex64)
    assert_same(tree.random_like(key, x), called(optax.tree.random_like, key, x))


def test_shapes_numbers_and_numpy_arrays_are_targets():
    x = [jax.ShapeDtypeStruct((2,), jnp.float16), 1.0, np.ones(3)]
    found = tree.random_like(KEYS["new"], x)
    types = [(y.shape, str(y.dtype)) for y in found]
    assert types == [((2,), "float16"), ((), "float32"), ((3,), "float32")]


def test_every_leaf_has_its_own_numbers():
    a, b = tree.random_like(KEYS["new"], [jnp.ones(4), jnp.ones(4)])
    assert not jnp.any(a == b)


def test_empty_trees():
    assert tree.split_key_like(KEYS["new"], {}) == {}
    assert tree.random_like(KEYS["new"], {"a": None}) == {"a": None}


def test_what_a_sampler_is_given():
    seen = []

    def three(*args):
        seen.append(args[1:])
        return jnp.zeros(args[1], args[2])

    def four(key, shape, dtype, out_sharding):
        seen.append((shape, dtype, out_sharding))
        return jnp.zeros(shape, dtype)

    tree.random_like(KEYS["new"], jnp.ones(2), three)
    tree.random_like(KEYS["new"], jnp.ones(2), four)
    assert seen[0] == ((2,), jnp.float32)
    assert seen[1] == ((2,), jnp.float32, jax.typeof(jnp.ones(2)).sharding)


def test_a_sampler_that_does_not_fit():
    with pytest.raises(TypeError):
        tree.random_like(KEYS["new"], jnp.ones(2), lambda key, shape: None)
    with pytest.raises(ValueError):
        tree.random_like(KEYS["new"], jnp.ones(2, int))


def test_only_new_keys_are_unwrapped():
    x = {"k": KEYS["new"], "old": KEYS["old"], "p": 1.0, "s": "name", "n": None}
    found = tree.unwrap_random_key_data(x)
    np.testing.assert_array_equal(found["k"], jax.random.key_data(x["k"]))
    assert found["old"] is x["old"]
    assert (found["p"], found["s"], found["n"]) == (1.0, "name", None)


def test_compiled_too():
    f = lambda key: tree.random_like(key, TARGET)
    assert_same(jax.jit(f)(KEYS["new"]), f(KEYS["new"]))
