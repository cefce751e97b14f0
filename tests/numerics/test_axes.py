"""Tensors as matrices."""

import jax.numpy as jnp
import numpy as np
import pytest

from steepest.numerics import as_matrices, Axes, axes_of, from_matrices

X = jnp.arange(2 * 3 * 4 * 5.0).reshape(2, 3, 4, 5)


@pytest.mark.parametrize(
    "reduction, output, shape",
    [
        (0, 1, (20, 2, 3)),
        (1, 0, (20, 3, 2)),
        (-1, (0, 1), (4, 5, 6)),
        ((2, 0), [1, 3], (1, 8, 15)),
        ((), (0, 1, 2, 3), (1, 1, 120)),
    ],
    ids=str,
)
def test_there_and_back(reduction, output, shape):
    axes = axes_of("me", X.shape, reduction, output)
    found = as_matrices(X, axes)
    assert found.shape == shape
    np.testing.assert_array_equal(from_matrices(found, X.shape, axes), X)


def test_a_stack_of_layers():
    """Axes that are neither reduction nor output count the layers."""
    axes = axes_of("me", X.shape, 2, (1, 3))
    assert axes == Axes((0,), (2,), (1, 3))
    want = X[1].transpose(1, 0, 2).reshape(4, 15)
    np.testing.assert_array_equal(as_matrices(X, axes)[1], want)


@pytest.mark.parametrize(
    "shape, reduction, output, said",
    [
        ((3,), 0, 1, "at least two axes"),
        ((3, 4), 0, 2, "each in [-2, 2)"),
        ((3, 4), 0, -2, "each axis at most once"),
        ((3, 4, 5), (0, 1), (1, 2), "each axis at most once"),
    ],
    ids=str,
)
def test_errors(as_users_do, shape, reduction, output, said):
    with pytest.raises(ValueError, match="me: shape") as error:
        axes_of("me", shape, reduction, output)
    assert said in str(error.value)
