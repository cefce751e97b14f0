"""A small convolutional network on handwritten digits."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key

from steepest import losses

from .._problem import Problem
from ._images import accuracy, images

Params = dict[str, dict[str, Array]]
Pixels = dict[str, Array]
Patches = Float[Array, "9 16 images"]
Batch = tuple[Patches, Int[Array, " images"]]

_BATCH = 32
_WIDE = 10  # pixels: 8, and a margin of one for the patches at the edges

# The fan-in and the width of each layer. The second convolution has windows of 2 x 2
# that do not overlap.
_LAYERS = {
    "conv1": (9, 16),
    "conv2": (4 * 16, 32),
    "dense": (4 * 32, 64),
    "head": (64, 10),
}


def _pixels() -> Int[np.ndarray, "9 16"]:
    """The index of each pixel of each patch.

    A patch has 3 x 3 pixels, with stride 2. The patches are ordered by their place in
    the windows of the second convolution, so every layer is a single matrix product
    without transposes in between.
    """
    # Along one side: (place in the patch, patch in the window, window).
    one = np.arange(3)[:, None, None] + 2 * np.arange(2)[:, None] + 4 * np.arange(2)
    both = _WIDE * one[:, None, :, None, :, None] + one[None, :, None, :, None, :]
    return both.reshape(9, 16)


_PIXELS = _pixels()


def digits() -> Problem:
    """Handwritten digits: a small convolutional network, 1347 training images.

    Scikit-learn's images of 8 x 8 pixels; two convolutions and two dense layers, 11146
    parameters. The metric is the accuracy on 450 held-out images.
    """
    return Problem(
        init=_init,
        loss=_loss,
        batches=_batches,
        metric=_accuracy,
        data=images(margin=1),
        name="digits",
        about="A small convolutional network on handwritten digits of 8 x 8 pixels.",
        measure="accuracy",
        better="higher",
        target=0.98,
        steps=4000,
        seeds=5,
        optimizers=(
            "sgd(momentum=0.9)",
            "rmsprop",
            "adamw",
            "adan",
            "lion",
            "muon",
            "lookahead(adamw)",
            "schedule_free_adamw",
        ),
        learning_rates=(3e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1),
    )


def _init(key: Key[Array, ""]) -> Params:
    def layer(key: Key[Array, ""], fan_in: int, out: int) -> dict[str, Array]:
        kernel = jax.random.normal(key, (fan_in, out), jnp.float32)
        kernel = kernel * (2 / fan_in) ** 0.5
        return {"kernel": kernel, "bias": jnp.zeros(out, jnp.float32)}

    keys = jax.random.split(key, len(_LAYERS))
    pairs = zip(_LAYERS.items(), keys, strict=True)
    return {name: layer(k, *sides) for (name, sides), k in pairs}


def _batches(key: Key[Array, ""], data: Pixels) -> Batch:
    rows = jax.random.randint(key, (_BATCH,), 0, len(data["labels"]))
    return _patches(data["images"][rows]), data["labels"][rows]


def _patches(pixels: Float[Array, "images pixels"]) -> Patches:
    return jnp.moveaxis(pixels[:, _PIXELS], 0, -1)


def _scores(params: Params, x: Patches) -> Float[Array, "10 images"]:
    """The logits, with a column for each image.

    The learning rates of a sweep share the images, but not the kernels. With the
    kernels on the left, the batched product needs no transpose.
    """
    for name, (fan_in, _) in _LAYERS.items():
        layer = params[name]
        x = layer["kernel"].T @ x.reshape(fan_in, -1) + layer["bias"][:, None]
        x = x if name == "head" else jax.nn.relu(x)
    return x


def _loss(params: Params, batch: Batch) -> Float[Array, ""]:
    patches, labels = batch
    right = labels[None, :] == jnp.arange(10, dtype=labels.dtype)[:, None]
    x = _scores(params, patches)
    return jnp.mean(losses.softmax_cross_entropy(x, right.astype(x.dtype), axis=0))


def _accuracy(params: Params, data: Pixels) -> Float[Array, ""]:
    scores = _scores(params, _patches(data["test_images"]))
    return accuracy(scores.T, data["test_labels"])
