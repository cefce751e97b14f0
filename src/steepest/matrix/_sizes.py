"""Sizes and norms of the matrices in a leaf, by the words for its axes."""

from math import prod
from typing import Literal

import jax.numpy as jnp
from jaxtyping import Array, Float, Inexact

from ..core import Real
from ..numerics import abs_sq, norms_along, quotient, root
from ._groups import Words

Scale = Literal["rms", "original", "spectral"]
SCALES = ("rms", "original", "spectral")

Leaf = Inexact[Array, "..."]
Norms = Float[Array, "..."]  # one for each matrix, with axes of size 1 for its own


def axes_of(words: Words, *chosen: str) -> tuple[int, ...]:
    """The axes with one of the chosen words, counted from the end of the shape.

    Args:
        words: `in` or `out` for each of the last axes.
        chosen: words; by default all.
    """
    kinds = chosen or ("in", "out")
    return tuple(k - len(words) for k, word in enumerate(words) if word in kinds)


def fans(shape: tuple[int, ...], words: Words) -> tuple[int, int]:
    """The sizes of the "in" and of the "out" side of a matrix.

    Args:
        shape: shape of the leaf.
        words: `in` or `out` for each of its last axes.
    """
    fan_in, fan_out = (
        prod(shape[k] for k in axes_of(words, word)) for word in ("in", "out")
    )
    return fan_in, fan_out


def shape_factor(
    shape: tuple[int, ...], words: Words, scale: str | None, rms: Real
) -> Real:
    """The factor `c` of `muon`, for matrices with singular values of about 1.

    Args:
        shape: shape of the leaf.
        words: `in` or `out` for each of its last axes.
        scale: `rms`, `original` or `spectral`; `None` for 1.
        rms: root mean square of the result, for `scale="rms"`.
    """
    fan_in, fan_out = fans(shape, words)
    if scale is None:
        return 1.0
    if scale == "rms":
        return rms * max(fan_in, fan_out) ** 0.5
    c = (fan_out / max(fan_in, 1)) ** 0.5
    return max(1, c) if scale == "original" else c


def norm_of(x: Leaf, words: Words) -> Norms:
    """The Frobenius norm of each matrix. It is 1e-19 for zeros."""
    return root(jnp.sum(abs_sq(x), axes_of(words), keepdims=True))


def resized(
    x: Leaf, like: Leaf, *, words: Words, scale: str | None, rms: Real, eps: Real
) -> Leaf:
    """`x` with another norm.

        rms sqrt(in out) x / |x|        for `scale="rms"`: its root mean square is `rms`
        c |like| x / |x|                otherwise, with `c` of `muon`

    Args:
        x: a leaf.
        like: the same leaf before it was rescaled.
        words: `in` or `out` for each of its last axes.
        scale: `rms`, `original` or `spectral`; `None` to only restore the norm.
        rms: root mean square of the result, for `scale="rms"`.
        eps: added to `|x|`.
    """
    size = norm_of(x, words) + eps
    if scale == "rms":
        fan_in, fan_out = fans(x.shape, words)
        return x * (rms * (fan_in * fan_out) ** 0.5 / size)
    c = shape_factor(x.shape, words, scale, rms)
    return x * (c * norm_of(like, words) / size)


def over_rms(x: Leaf, axes: tuple[int, ...], eps: Real) -> Leaf:
    """`x / (rms(x) + eps)`, with the root mean square over these axes.

    Args:
        x: an array.
        axes: the axes to average over; without any, each element is its own mean.
        eps: added to the root mean square.
    """
    if x.size == 0:
        return x
    count = prod(x.shape[k] for k in axes)
    return quotient(x, norms_along(x, axes) / count**0.5 + eps)
