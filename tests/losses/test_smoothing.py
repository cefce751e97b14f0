"""Label smoothing, against Optax."""

import jax.numpy as jnp
import numpy as np
import pytest

from steepest import losses

from .agree import agree, finite

HOT = np.eye(3)[np.array([[0, 1], [2, 0]])]

SMOOTH = {
    "plain": (0.1, {}),
    "all of it": (1.0, {}),
    "first axis": (0.1, {"axis": 0}),
    "two axes": (0.2, {"axis": (1, -1)}),
    "all axes": (0.2, {"axis": None}),
    "no axis": (0.2, {"axis": ()}),
    "array": (np.array([0.1, 0.2, 0.3]), {}),
    "mask": (0.3, {"where": np.array([True, True, False])}),
    "mask of all": (0.3, {"where": np.arange(12).reshape(2, 2, 3) % 5 > 0}),
    "float mask": (0.3, {"where": np.array([1.0, 1.0, 0.0])}),
}


@pytest.mark.parametrize("alpha, options", SMOOTH.values(), ids=SMOOTH)
def test_smooth_labels(alpha, options):
    agree("smooth_labels", HOT, alpha, **options)


def test_smooth_labels_counts_classes_as_broadcast():
    # Optax counts the entries of the mask itself: here 1 and 0 classes.
    ours = losses.smooth_labels(
        jnp.asarray(HOT[0]), 0.3, where=jnp.array([[True], [False]])
    )
    np.testing.assert_allclose(ours, [[0.8, 0.1, 0.1], [0.0, 0.7, 0.0]], rtol=1e-6)
    finite(
        lambda a: losses.smooth_labels(jnp.ones(3), a, where=jnp.zeros(3, bool)), 0.1
    )


def test_smooth_labels_dtypes_and_refusals():
    half = jnp.asarray(HOT, jnp.bfloat16)
    assert losses.smooth_labels(half, 0.1).dtype == jnp.bfloat16
    assert losses.smooth_labels(half, jnp.float32(0.1)).dtype == jnp.float32
    with pytest.raises(TypeError, match="labels has dtype int32"):
        losses.smooth_labels(jnp.arange(3), 0.1)
    with pytest.raises(ValueError, match="alpha has shape"):
        losses.smooth_labels(jnp.asarray(HOT), jnp.ones(2))
    with pytest.raises(ValueError, match="axis"):
        losses.smooth_labels(jnp.ones(()), 0.1)
    assert losses.smooth_labels(jnp.ones((2, 0)), 0.1).shape == (2, 0)
