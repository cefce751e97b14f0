"""What is known about a wrapper."""

import jax.numpy as jnp

import steepest
from steepest.engine import wrapper_info


def test_inner_is_the_state_of_the_wrapped_transformation():
    inner = steepest.adam(1e-3)
    tx = steepest.apply_if_finite(inner, 3)
    info = wrapper_info(tx)
    assert info is not None and info.name == "apply_if_finite"
    state = tx.init(jnp.ones(3))
    assert info.inner(state) is state.inner_state


def test_a_wrapper_without_a_state_of_its_own():
    info = wrapper_info(steepest.packed(steepest.adam(1e-3)))
    assert info is not None
    state = object()
    assert info.inner(state) is state
