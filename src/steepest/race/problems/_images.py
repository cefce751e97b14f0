"""Scikit-learn's handwritten digits: 1797 images of 8 x 8, from 43 writers."""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

_TRAIN = 1347  # three quarters


def images(margin: int = 0) -> dict[str, np.ndarray]:
    """Load the training and test images with their labels.

    Their order is fixed. Each image is a row of numbers from 0 to 1.

    Args:
        margin: width of the zero padding, in pixels.
    """
    try:
        from sklearn.datasets import load_digits
    except ImportError as error:
        raise ImportError(
            "race: the handwritten digits come with scikit-learn, which is not "
            "installed. Install it with `pip install 'steepest[race]'`."
        ) from error
    dataset: Any = load_digits()
    order = np.random.default_rng(0).permutation(len(dataset.target))
    pixels = (dataset.images[order] / 16).astype(np.float32)
    pixels = np.pad(pixels, ((0, 0), (margin, margin), (margin, margin)))
    pixels = pixels.reshape(len(pixels), -1)
    labels = dataset.target[order].astype(np.int32)
    return {
        "images": pixels[:_TRAIN],
        "labels": labels[:_TRAIN],
        "test_images": pixels[_TRAIN:],
        "test_labels": labels[_TRAIN:],
    }


def accuracy(
    scores: Float[Array, "images 10"], labels: Int[Array, " images"]
) -> Float[Array, ""]:
    """The fraction of images that are classified correctly.

    Args:
        scores: the logits.
        labels: the true digits.
    """
    predicted = jnp.argmax(scores, axis=1)
    return jnp.mean(predicted == labels.astype(predicted.dtype))
