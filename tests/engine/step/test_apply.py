"""Applying updates, averaging, copying."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import steepest

from ...unusual import ODD

OLD = {"w": jnp.array([1.0, 2.0]), "b": [None, jnp.array([[3.0]])]}
NEW = {"w": jnp.array([5.0, -2.0]), "b": [None, jnp.array([[0.0]])]}


def _same(a, b):
    assert jax.tree.structure(a) == jax.tree.structure(b)
    jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, 1e-6), a, b)


def test_apply_updates_adds():
    _same(steepest.apply_updates(OLD, NEW), optax.apply_updates(OLD, NEW))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_the_sum_has_the_dtype_of_the_params(dtype):
    """Computed in float32 or wider: twice half of the last digit is one digit."""
    p = jnp.ones((2,), dtype)
    u = jnp.full((2,), float(jnp.finfo(dtype).eps) * 0.75)
    assert steepest.apply_updates(p, u).dtype == jnp.dtype(dtype)
    assert (steepest.apply_updates(p, u) > p).all()


def test_a_none_update_leaves_the_param_unchanged():
    params = {"a": None, "b": jnp.ones(2), "c": {"d": jnp.ones(2)}}
    updates = {"a": None, "b": None, "c": None}
    got = steepest.apply_updates(params, updates)
    assert got["a"] is None
    _same(got, params)
    assert steepest.apply_updates({"a": None}, {"a": jnp.ones(2)}) == {"a": None}


def test_a_mismatch_is_named():
    with pytest.raises(ValueError, match=r"apply_updates: leaf \['b'\] is in the para"):
        steepest.apply_updates({"a": 1.0, "b": 2.0}, {"a": 1.0})
    with pytest.raises(ValueError, match=r"leaf \['a'\] has shape \(2,\) in the updat"):
        steepest.apply_updates({"a": jnp.ones(3)}, {"a": jnp.ones(2)})


@pytest.mark.parametrize("step_size", [0.0, 0.1, 1.0, jnp.float32(0.25)])
def test_incremental_update_is_an_average(step_size):
    got = steepest.incremental_update(NEW, OLD, step_size)
    _same(got, optax.incremental_update(NEW, OLD, step_size))


def test_a_half_precision_average_rounds_once():
    """The result keeps the dtype, so that it can be the carry of a loop."""
    old, new = jnp.ones((2,), "bfloat16"), jnp.full((2,), 3.0)
    got = steepest.incremental_update(new, old, 0.01)
    assert got.dtype == jnp.bfloat16
    np.testing.assert_array_equal(got, jnp.full((2,), 1.02).astype("bfloat16"))


@pytest.mark.parametrize("compiled", [False, True])
def test_periodic_update_copies_now_and_then(compiled):
    """With traced steps and a traced period."""
    update = jax.jit(steepest.periodic_update) if compiled else steepest.periodic_update
    for period in (1, 2, 3):
        for t in range(7):
            want = optax.periodic_update(NEW, OLD, jnp.asarray(t), period)
            _same(update(NEW, OLD, jnp.asarray(t), jnp.asarray(period)), want)
            _same(update(NEW, OLD, t, period), want)


@pytest.mark.parametrize(
    "call, said",
    [
        (
            lambda: steepest.periodic_update(NEW, OLD, 3, 0),
            "periodic_update: update_per",
        ),
        (
            lambda: steepest.periodic_update(NEW, OLD, -1, 2),
            "periodic_update: steps is -",
        ),
        (
            lambda: steepest.periodic_update(NEW, OLD, "a", 2),
            "periodic_update: steps is a",
        ),
        (
            lambda: steepest.incremental_update(NEW, OLD, float("inf")),
            "incremental_update: step_size is inf, expected a number that is finite",
        ),
        (
            lambda: steepest.apply_updates({"w": 1.0}, None),
            "apply_updates: the updates are",
        ),
        (
            lambda: steepest.apply_updates({"w": 1.0}, {"w": jnp.array(1j)}),
            "apply_updates: leaf ['w'] is complex64 in the updates and not complex in",
        ),
        (
            lambda: steepest.apply_updates({"w": 1.0}, {"w": 1.0}, key=0),
            "apply_updates: key is a int, expected one random key.",
        ),
    ],
    ids=["period", "steps", "text", "step size", "nothing", "complex", "key"],
)
def test_bad_arguments_are_refused(call, said, as_users_do):
    with pytest.raises((TypeError, *ODD)) as caught:
        call()
    assert str(caught.value).startswith(said)


def test_periodic_update_ignores_what_it_does_not_take():
    """NaN in the tree that is not copied has no effect."""
    bad = jax.tree.map(lambda x: x * jnp.nan, NEW)
    _same(steepest.periodic_update(bad, OLD, 1, 2), OLD)


def test_a_fraction_added_to_an_integer_is_a_warning():
    """As in Optax, it is truncated: an update of -0.1 turns 2 into 1."""
    p = {"n": jnp.arange(3), "w": jnp.ones(2)}
    u = {"n": jnp.full(3, -0.1), "w": jnp.ones(2)}
    says = r"apply_updates: leaf \['n'\] is float32 in the updates and int32 in the"
    with jax.numpy_dtype_promotion("standard"):  # JAX rejects it under strict promotion
        for apply in (steepest.apply_updates, jax.jit(steepest.apply_updates)):
            with pytest.warns(UserWarning, match=says):
                found = apply(p, u)
            _same(found, optax.apply_updates(p, u))
        for harmless in (jnp.zeros(3), jnp.zeros(3, int), None):
            found = steepest.apply_updates(p, {"n": harmless, "w": u["w"]})
            assert found["n"].tolist() == [0, 1, 2]
