"""Scikit-learn's handwritten digits: 1797 images of 8 x 8, from 43 writers."""

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

_TRAIN = 1347  # three quarters


class Images(NamedTuple):
    """Images and what they show."""

    pixels: Float[np.ndarray, "images 8 8"]  # from 0 to 1
    labels: Int[np.ndarray, " images"]


def images() -> tuple[Images, Images]:
    """Those to train with and those held out, in an order that is always the same."""
    try:
        from sklearn.datasets import load_digits
    except ImportError as error:
        raise ImportError(
            "race: the handwritten digits come with scikit-learn, which is not "
            "installed. Install it with `pip install 'steepest[race]'`."
        ) from error
    found: Any = load_digits()
    order = np.random.default_rng(0).permutation(len(found.target))
    pixels = (found.images[order] / 16).astype(np.float32)
    labels = found.target[order].astype(np.int32)
    cut = slice(None, _TRAIN), slice(_TRAIN, None)
    train, held_out = (Images(pixels[part], labels[part]) for part in cut)
    return train, held_out


def accuracy(
    scores: Float[Array, "images 10"], labels: Int[Array, " images"]
) -> Float[Array, ""]:
    """The share of images whose highest score is that of the right digit.

    Args:
        scores: one for each digit.
        labels: the right digits.
    """
    found = jnp.argmax(scores, axis=1)
    return jnp.mean(found == labels.astype(found.dtype))
