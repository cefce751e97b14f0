"""Errors name the leaf that is not an array, or that a rule does not accept."""

import jax
import jax.numpy as jnp
import pytest

import steepest

P = {"w": jnp.ones((3, 2)), "b": jnp.ones(2)}
TEXT = {**P, "b": "2.0"}
SAID = r"leaf \['b'\] of the {} is a str, expected an array. Use `None` for"


@pytest.mark.parametrize(
    "maker", [steepest.clip, steepest.trace], ids=["clip", "trace"]
)
def test_updates_that_are_not_arrays(maker):
    tx = maker(1.0)
    with pytest.raises(TypeError, match=SAID.format("updates")):
        tx.update(TEXT, tx.init(P), P)


def test_params_that_are_not_arrays():
    """If nothing is stored for them, the params may be anything, as in Optax."""
    with pytest.raises(TypeError, match=f"trace: {SAID.format('params')}"):
        steepest.trace(0.9).init(TEXT)
    assert steepest.clip(1.0).init(TEXT) == steepest.EmptyState()


def test_mapping_over_leaves_that_are_not_arrays():
    tx = steepest.stateless_with_tree_map(lambda g, p: g)
    with pytest.raises(TypeError, match=SAID.format("updates")):
        tx.update(TEXT, tx.init(P), P)


def test_a_refused_leaf_is_named_also_under_jit():
    g = {**P, "b": jnp.ones(2, jnp.complex64)}
    tx = steepest.chain(steepest.scale(2.0), steepest.clip(1.0))
    said = r"clip: leaf \['b'\] is complex64, expected a real one"
    for update in (tx.update, jax.jit(tx.update)):
        with pytest.raises(ValueError, match=said):
            update(g, tx.init(g), g)


def test_a_leaf_that_a_rule_does_not_see_is_not_refused():
    g = {**P, "b": jnp.ones(2, jnp.complex64)}
    tx = steepest.masked(steepest.clip(0.5), {"w": True, "b": False})
    u, _ = tx.update(g, tx.init(g))
    assert float(u["w"][0, 0]) == 0.5 and complex(u["b"][0]) == 1


def test_the_state_of_another_transformation(as_users_do):
    """Every tuple has a method called `count`, which is not the field."""
    tx = steepest.scale_by_schedule(lambda t: 1.0)
    said = (
        "scale_by_schedule: the state is a TraceState, expected a ScaleByScheduleState"
    )
    with pytest.raises(TypeError, match=said):
        tx.update(P, steepest.trace(0.9).init(P))
