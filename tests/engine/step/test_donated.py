"""An array that appears twice in a donated tree."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, NamedSharding, PartitionSpec

import steepest

KEEPS = steepest.GradientTransformation(  # stores its inputs, as some of Optax's do
    lambda p: p, lambda g, s, p: (jax.tree.map(lambda g, s: -g * s, g, s), s)
)


def _places(place):
    """Params, a state and gradients in which one array appears twice."""
    x, y = jnp.ones(8), jnp.arange(8.0)
    tx = KEEPS if place == "state" else steepest.sgd(0.1)
    tied = {"a": x, "b": x if place == "params" else y}
    state = tx.init(tied)
    g = tied if place == "gradients" else {"a": y + 1, "b": y + 2}
    return tx, tied, state, g


@pytest.mark.parametrize("place", ["params", "state", "gradients"])
@pytest.mark.parametrize("split", [False, True], ids=["one device", "split"])
def test_an_array_may_appear_twice(place, split):
    tx, p, state, g = _places(place)
    u, _ = tx.update(g, state, p)
    want = steepest.apply_updates(p, u)
    if split:
        mesh = jax.make_mesh((4,), ("x",), axis_types=(AxisType.Auto,))
        where = NamedSharding(mesh, PartitionSpec("x"))
        moved = {id(x): jax.device_put(x, where) for x in jax.tree.leaves((p, state))}
        p, state, g = jax.tree.map(lambda x: moved.get(id(x), x), (p, state, g))
    step = steepest.make_step(tx)
    found, state = step(p, state, g)
    jax.tree.map(np.testing.assert_array_equal, found, want)
    if split:
        assert all(x.sharding == where for x in found.values())
    step(found, state, found)  # the output of a step, in two places
    assert not any(x.is_deleted() for x in found.values())  # they are also gradients


def test_a_training_step_takes_tied_weights_too():
    x = jnp.ones(3)
    tied, tx = {"a": x, "b": x}, steepest.adam(0.1)
    loss = lambda p, y: jnp.sum(p["a"] * p["b"] * y)
    want = {"a": jnp.ones(3), "b": jnp.ones(3)}
    step = steepest.make_train_step(loss, tx)
    want, *_ = step(want, tx.init(want), jnp.ones(3))
    found, *_ = step(tied, tx.init(tied), x)
    jax.tree.map(np.testing.assert_array_equal, found, want)


def test_arrays_that_appear_once_are_not_copied():
    tx, p = steepest.adam(0.1), {"a": jnp.ones(3), "b": jnp.zeros(3)}
    state, g = tx.init(p), {"a": jnp.ones(3), "b": jnp.ones(3)}
    steepest.make_step(tx)(p, state, g)
    assert all(x.is_deleted() for x in jax.tree.leaves((p, state)))
    assert not any(x.is_deleted() for x in jax.tree.leaves(g))
