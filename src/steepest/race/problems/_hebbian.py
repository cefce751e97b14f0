"""Predictive coding: a network that learns without backpropagation.

Rao and Ballard, Predictive coding in the visual cortex, 1999
Whittington and Bogacz, An approximation of the error backpropagation algorithm in a
predictive coding network with local Hebbian synaptic plasticity, 2017
"""

from itertools import pairwise

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from .._problem import Problem
from ._images import accuracy, images

Params = list[Array]  # a weight matrix and a bias for each layer
Batch = tuple[Float[Array, "images 64"], Float[Array, "images 10"]]
Layers = list[Array]  # an array (images, width) for each layer

_BATCH = 64
_WIDTHS = 64, 64, 32, 10
_SETTLING = 16  # updates of the activities per update of the weights
_PACE = 0.2  # step size of these updates


def hebbian() -> Problem:
    """Handwritten digits by predictive coding: a local rule instead of backpropagation.

    Each layer predicts the next. With the label clamped at the top, the hidden
    activities are relaxed until the prediction errors are small. Then each weight
    changes by the product of its input activity and its output error. The metric is the
    accuracy on 450 held-out images.
    """
    return Problem(
        init=_init,
        loss=_energy,
        batches=_batches,
        metric=_accuracy,
        data=images(),
        adjust=_adjust,
        name="hebbian",
        about="A predictive-coding network learns handwritten digits by local rules.",
        measure="accuracy",
        better="higher",
        target=0.95,
        steps=1000,
        optimizers=(
            "sgd",
            "sgd(momentum=0.9)",
            "rmsprop",
            "adam",
            "adamw",
            "lion",
            "muon",
        ),
    )


def _init(key: Key[Array, ""]) -> Params:
    params, keys = [], jax.random.split(key, len(_WIDTHS) - 1)
    for k, (below, above) in zip(keys, pairwise(_WIDTHS), strict=True):
        weights = jax.random.normal(k, (below, above), jnp.float32)
        params += [weights * below**-0.5, jnp.zeros(above, jnp.float32)]
    return params


def _batches(key: Key[Array, ""], data: dict[str, Array]) -> Batch:
    rows = jax.random.randint(key, (_BATCH,), 0, len(data["labels"]))
    return data["images"][rows], _one_hot(data["labels"][rows])


def _one_hot(labels: Int[Array, " images"]) -> Float[Array, "images 10"]:
    return jax.nn.one_hot(labels, 10, dtype=jnp.float32)


def _predict(params: Params, layer: int, below: Array) -> Array:
    """The prediction of the next layer. The image enters without the nonlinearity."""
    weights, bias = params[2 * layer : 2 * layer + 2]
    return _fire(layer, below) @ weights + bias[None, :]


def _fire(layer: int, x: Array) -> Array:
    return jnp.tanh(x) if layer else x


def _guess(params: Params, x: Array) -> Layers:
    """A forward pass: each layer equals its prediction."""
    layers = [x]
    for layer in range(len(params) // 2):
        layers.append(_predict(params, layer, layers[-1]))
    return layers


def _errors(params: Params, layers: Layers) -> Layers:
    """The prediction error of each layer except the image."""
    below = layers[:-1]
    predicted = [_predict(params, layer, x) for layer, x in enumerate(below)]
    return [x - y for x, y in zip(layers[1:], predicted, strict=True)]


def _settled(params: Params, batch: Batch) -> Layers:
    """Relax the hidden layers, with the image and the label clamped.

    Each one moves towards its prediction, and to where it predicts the next one better:

        x <- x - pace (e - tanh'(x) W e')       e' is the error of the next layer
    """
    image, label = batch
    layers = [*_guess(params, image)[:-1], label]

    def settle(_: Int[Array, ""], between: Layers) -> Layers:
        e = _errors(params, [image, *between, label])
        moved = []
        for k, x in enumerate(between):
            slope = 1 - jnp.tanh(x) ** 2
            from_above = slope * (e[k + 1] @ params[2 * k + 2].T)
            moved.append(x - _PACE * (e[k] - from_above))
        return moved

    between = jax.lax.fori_loop(0, _SETTLING, settle, layers[1:-1])
    return [image, *between, label]


def _adjust(params: Params, batch: Batch) -> Params:
    """The Hebbian rule: activity below times error above, a mean over images."""
    layers = _settled(params, batch)
    adjustments = []
    for layer, e in enumerate(_errors(params, layers)):
        e = -e / len(e)
        adjustments += [_fire(layer, layers[layer]).T @ e, jnp.sum(e, axis=0)]
    return adjustments


def _energy(params: Params, batch: Batch) -> Float[Array, ""]:
    """`sum of |e|^2 / 2` when settled, a mean over images."""
    e = _errors(params, _settled(params, batch))
    return sum((0.5 * jnp.sum(x**2) for x in e), jnp.zeros((), jnp.float32)) / len(e[0])


def _accuracy(params: Params, data: dict[str, Array]) -> Float[Array, ""]:
    scores = _guess(params, data["test_images"])[-1]
    return accuracy(scores, data["test_labels"])
