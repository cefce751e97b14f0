"""Clipping each unit relative to the norm of its weights."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import steepest
from steepest.transforms import unitwise_clip, unitwise_norm

from ..unusual import ODD

# shape -> the axes of a unit
UNITS = {
    (): (),
    (1,): (0,),
    (3,): (0,),
    (1, 3): (0, 1),
    (3, 1): (0, 1),
    (1, 1, 3): (0, 1, 2),
    (2, 3): (0,),
    (1, 2, 3): (0,),
    (2, 3, 4): (0,),
    (2, 1, 3, 2): (0, 1, 2),
    (1, 1, 2, 3): (0, 1, 2),
    (2, 2, 2, 2, 2): (0, 1, 2, 3),
    (0, 3): (0,),
}


def _some(shape):
    size = int(np.prod(shape))
    return jnp.asarray(np.sin(np.arange(1, 1 + size)).reshape(shape), jnp.float32)


@pytest.mark.parametrize("shape", UNITS, ids=str)
def test_units(shape):
    x = np.asarray(_some(shape))
    want = np.sqrt(np.sum(x * x, UNITS[shape], keepdims=True))
    found = unitwise_norm(x)
    np.testing.assert_allclose(found, np.broadcast_to(want, shape), rtol=1e-6)
    if shape in ((3,), (2, 3), (2, 3, 4), (1, 1, 2, 3)):
        with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
            theirs = optax.transforms.unitwise_norm(jnp.asarray(x))
        np.testing.assert_allclose(found, theirs, rtol=1e-6)


@pytest.mark.parametrize("axis", [0, 1, -1, (0, 2), (0, 1, 2), ()], ids=str)
def test_units_of_given_axes(axis):
    x = _some((2, 3, 4))
    want = np.sqrt(np.sum(np.square(x), axis, keepdims=True))
    found = unitwise_norm(x, axis)
    np.testing.assert_allclose(found, np.broadcast_to(want, x.shape), rtol=1e-5)


def test_an_axis_that_is_not_there():
    with pytest.raises(ValueError, match=r"unitwise_norm: axis is 1, .*expected"):
        unitwise_norm(jnp.ones(3), 1)


@pytest.mark.parametrize(
    "axis, shape, said",
    [
        (1, (3,), "has shape (3,), expected a shape with axis 1"),
        ((0, -3), (3, 2), "has shape (3, 2), expected a shape with axis (0, -3)"),
        (
            None,
            (1, 2, 1, 2, 1, 2),
            "has shape (1, 2, 1, 2, 1, 2), expected at most five",
        ),
    ],
    ids=["one", "two", "none"],
)
def test_a_leaf_without_that_axis_is_named(axis, shape, said):
    tx, g = steepest.adaptive_grad_clip(0.1, axis=axis), {"w": jnp.ones(shape)}
    with pytest.raises(ValueError, match=re.escape(f"clip: leaf ['w'] {said}")):
        tx.update(g, tx.init(g), g)


def test_an_axis_is_a_number(as_users_do):
    with pytest.raises(
        TypeError, match="adaptive_grad_clip: axis is 'x', expected a whole"
    ):
        steepest.adaptive_grad_clip(0.1, axis="x")


def test_dtypes_of_norms():
    assert unitwise_norm(jnp.ones((2, 3), jnp.bfloat16)).dtype == jnp.bfloat16
    assert unitwise_norm(jnp.arange(3)).dtype == jnp.float32
    assert unitwise_norm(jnp.array([3.0 + 4.0j])).tolist() == [5.0]
    half = unitwise_norm(jnp.full(4, 300.0, jnp.float16))
    np.testing.assert_array_equal(half, jnp.full(4, 600.0, jnp.float16))


def test_the_norm_of_zeros_has_a_slope():
    """Optax's gradient is NaN there."""
    slopes = jax.grad(lambda x: unitwise_norm(x).sum())(jnp.zeros((2, 2)))
    np.testing.assert_array_equal(slopes, jnp.zeros((2, 2)))


def test_only_what_is_too_long_is_clipped():
    norms = jnp.array([2.0, 3.0, 0.0, 0.0, 1e-9])
    limits = jnp.array([1.0, 5.0, 0.0, 1.0, 1e-12])
    grads = jnp.array([2.0, -3.0, 0.0, 1e-3, 1e-9])
    want = [1, -3, 0, 1e-3, 1e-15]
    np.testing.assert_allclose(unitwise_clip(norms, limits, grads), want, rtol=1e-6)
    np.testing.assert_allclose(
        unitwise_clip(norms, limits, grads, div_eps=4.0),
        [0.5, -3, 0, 1e-3, 2.5e-22],
        1e-5,
    )


def test_clipping_mixes_dtypes_as_optax_does():
    u = unitwise_clip(2 * jnp.ones(2), jnp.ones(2), jnp.ones(2, jnp.bfloat16))
    assert u.dtype == jnp.float32


@pytest.mark.parametrize("shape", [(), (1, 1)], ids=str)
def test_clipping_wants_one_shape(shape):
    with pytest.raises(ValueError, match=r"expected the same shape for all three"):
        unitwise_clip(jnp.ones(shape), jnp.ones(shape), jnp.ones((3, 2)))


def test_each_column_has_its_own_limit():
    g, p = jnp.array([[3.0, 0.1], [4.0, 0.0]]), jnp.array([[10.0, 0.0], [0.0, 1.0]])
    tx = steepest.adaptive_grad_clip(0.1)
    u, _ = tx.update(g, tx.init(p), p)
    np.testing.assert_allclose(u, [[0.6, 0.1], [0.8, 0]], rtol=1e-6)


def test_zero_weights_can_leave_zero():
    tx, g = steepest.adaptive_grad_clip(0.5, eps=0.1), jnp.array([3.0, 4.0])
    u, _ = tx.update(g, tx.init(g), jnp.zeros(2))
    np.testing.assert_allclose(u, 0.05 * g / 5, rtol=1e-6)


def test_what_is_refused():
    with pytest.raises(ODD, match=r"adaptive_grad_clip: clipping is -0\.1"):
        steepest.adaptive_grad_clip(-0.1)
    with pytest.raises(ODD, match="adaptive_grad_clip: `update` needs"):
        steepest.adaptive_grad_clip(0.1).update(jnp.ones(2), steepest.EmptyState())


def test_more_than_five_axes_need_an_axis_argument():
    x = jnp.ones((2,) * 6)
    with pytest.raises(
        ValueError, match=r"unitwise_norm: x has shape \(2, 2, 2, 2, 2, 2\)"
    ):
        steepest.transforms.unitwise_norm(x)
    assert steepest.transforms.unitwise_norm(x, axis=(0, 1, 2)).shape == x.shape
