"""Each leaf goes to the transformation named by its label."""

import flax
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

import steepest
from steepest.engine import plan_of

P = {"a": jnp.ones(2), "b": {"c": jnp.ones(3), "d": None}}


def _groups():
    return {"x": steepest.adam(0.1), "y": steepest.sgd(0.5)}


def test_groups_run_in_one_pass():
    """Labels become masks, and masks do not split a pass."""
    tx = steepest.chain(
        steepest.clip_by_global_norm(1.0),
        steepest.partition(_groups(), {"a": "x", "b": "y"}),
        steepest.scale(2.0),
    )
    (segment,) = plan_of("test", "tx", tx)._segments
    assert len(segment.passes) == 1


def test_a_group_keeps_memory_for_its_own_leaves():
    state = steepest.partition(_groups(), {"a": "x", "b": "y"}).init(P)
    memory = state.inner_states["x"].inner_state[0].mu
    assert memory["b"] == steepest.MaskedNode()
    assert list(state.inner_states) == ["x", "y"]


def test_labels_by_function_and_by_tree_agree():
    by_tree = steepest.partition(_groups(), {"a": "x", "b": "y"})
    by_function = steepest.partition(_groups(), lambda p: {"a": "x", "b": "y"})
    u, _ = by_tree.update(P, by_tree.init(P), P)
    v, _ = jax.jit(by_function.update)(P, by_function.init(P), P)
    jax.tree.map(np.testing.assert_array_equal, u, v)
    assert u["b"]["d"] is None


def test_labels_need_not_be_strings():
    tx = steepest.partition({0: steepest.sgd(1.0), 1: steepest.set_to_zero()}, [0, 1])
    u, _ = tx.update([jnp.ones(2), jnp.ones(2)], tx.init([jnp.ones(2), jnp.ones(2)]))
    assert u[0].tolist() == [-1, -1] and u[1].tolist() == [0, 0]


def test_a_norm_is_that_of_the_group():
    clip = steepest.clip_by_global_norm(1.0)
    tx = steepest.partition({"x": clip, "y": steepest.identity()}, {"a": "x", "b": "y"})
    g = {"a": jnp.array([3.0, 4.0]), "b": jnp.array([1e6])}
    u, _ = tx.update(g, tx.init(g))
    np.testing.assert_allclose(u["a"], [0.6, 0.8], 1e-6)
    assert u["b"].tolist() == [1e6]


def test_extra_arguments_reach_the_groups():
    """An opaque transformation in a group receives them, masked if it asks for that."""

    def update(updates, state, params=None, *, value, like, **extra):
        return jax.tree.map(lambda u, x: u * value + x, updates, like), state

    opaque = steepest.GradientTransformationExtraArgs(steepest.init_empty_state, update)
    tx = steepest.partition(
        {"x": opaque, "y": steepest.identity()},
        {"a": "x", "b": "y"},
        mask_compatible_extra_args=True,
    )
    u, _ = tx.update(P, tx.init(P), P, value=3.0, like=P)
    assert u["a"].tolist() == [4, 4] and u["b"]["c"].tolist() == [1, 1, 1]


def test_a_label_without_a_transformation_is_named(as_users_do):
    tx = steepest.partition(_groups(), {"a": "x", "b": {"c": "z", "d": "y"}})
    with pytest.raises(ValueError, match=r"leaf \['b'\]\['c'\] has the label 'z'"):
        tx.init(P)


def test_labels_of_another_structure_are_refused(as_users_do):
    message = r"partition: leaf \['b'\]\['c'\] is in the params and not in the labels"
    with pytest.raises(ValueError, match=message):
        steepest.partition(_groups(), {"a": "x"}).init(P)


def test_labels_by_name_for_trees_of_another_kind():
    tx = steepest.partition(_groups(), flax.core.freeze({"a": "x", "b": "y"}))
    u, _ = tx.update(P, tx.init(P), P)
    assert u["b"]["c"].tolist() == [-0.5] * 3 and u["a"][0] != -0.5


def test_labels_by_function_for_a_state_of_nnx():
    p = nnx.State({"a": nnx.Param(jnp.ones(2)), "b": nnx.Param(jnp.ones(3))})
    labels = lambda p: jax.tree.map(lambda x: "x" if x.size == 2 else "y", p)
    tx = steepest.partition(_groups(), labels)
    u, _ = tx.update(p, tx.init(p), p)
    assert jax.tree.structure(u) == jax.tree.structure(p)
    assert jax.tree.leaves(u)[1].tolist() == [-0.5] * 3


def test_another_state_is_refused(as_users_do):
    tx = steepest.partition(_groups(), {"a": "x", "b": "y"})
    other = steepest.partition({"x": steepest.sgd(1.0)}, "x")
    with pytest.raises(ValueError, match=r"partition: the state has the labels"):
        tx.update(P, other.init(P), P)
    with pytest.raises(ValueError, match=r"partition: the state is a tuple"):
        tx.update(P, steepest.adam(1.0).init(P), P)


def test_groups_inside_groups():
    inner = steepest.partition(
        {"u": steepest.scale(2.0), "v": steepest.scale(3.0)},
        lambda p: jax.tree.map(lambda x: "u" if x.size == 2 else "v", p),
    )
    tx = steepest.partition(
        {"in": inner, "out": steepest.scale(5.0)}, ["in", "in", "out"]
    )
    g = [jnp.ones(2), jnp.ones(3), jnp.ones(4)]
    u, _ = tx.update(g, tx.init(g))
    assert [float(x[0]) for x in u] == [2, 3, 5]


def test_optax_calls_it_multi_transform():
    assert steepest.multi_transform is steepest.partition
    assert steepest.MultiTransformState is steepest.PartitionState


def test_one_group_may_be_reset():
    tx = steepest.partition(
        {"a": steepest.adam(0.1), "b": steepest.adam(0.1)}, {"x": "a", "y": "b"}
    )
    p = {"x": jnp.ones(2), "y": jnp.ones(2)}
    _, state = tx.update(p, tx.init(p), p)
    fresh = {**state.inner_states, "a": tx.init(p).inner_states["a"]}
    _, state = tx.update(p, state._replace(inner_states=fresh), p)
    counts = {k: int(steepest.read(x, "count")) for k, x in state.inner_states.items()}
    assert counts == {"a": 1, "b": 2}
