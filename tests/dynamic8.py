"""The map of bitsandbytes for nonnegative numbers, to compare ours with.

Dettmers, Lewis, Shleifer and Zettlemoyer, 8-bit optimizers via block-wise quantization,
2021, arXiv:2110.02861
"""

import jax.numpy as jnp

from steepest.numerics import Coded
from steepest.numerics._codes import CLASSES, MAPS

DECADES = 7


def level(code):
    """The levels of codes from 0 to 255.

        10^(j - 7) (0.1 + 0.9 (r + 1/2) / 2^j)      code = 2^j - 1 + r,  0 <= r < 2^j

    for j = 1 ... 7, 0 for code 0, and 1 for code 255. From decade to decade there are
    twice as many levels.
    """
    k = code + 1
    powers, parts = jnp.full_like(k, 1e-6), jnp.full_like(k, 2.0)
    for j in range(2, DECADES + 1):
        powers = jnp.where(k >= 2**j, 10.0 ** (j - DECADES), powers)
        parts = jnp.where(k >= 2**j, 2.0**j, parts)
    found = powers * (0.1 + 0.9 * ((k - parts + 0.5) / parts))
    return jnp.where(code >= 255, 1.0, jnp.where(code > 0, found, 0.0))


def nearest(z):
    """The code of the nearest level of numbers in [0, 1]; 1 or higher."""
    powers, parts = jnp.full_like(z, 1e6), jnp.full_like(z, 2.0)
    for j in range(1, DECADES):
        # Halfway between the last level of a decade and the first of the next.
        above = z > 10.0 ** (j - DECADES) * (1 + 0.9 / 2**j)
        powers = jnp.where(above, 10.0 ** (DECADES - 1 - j), powers)
        parts = jnp.where(above, 2.0 ** (j + 1), parts)
    r = jnp.clip(jnp.floor((z * powers - 0.1) / 0.9 * parts), 0, parts - 1)
    return jnp.where(z > 1 - 0.225 / 2**DECADES, 255.0, parts - 1 + r)


class Dynamic8(Coded):
    """Nonnegative numbers in this map."""

    kind = "dynamic8"


def register(monkeypatch):
    """Make `encode` take "dynamic8", in one test."""
    map_ = MAPS["unsigned8"]._replace(to_code=nearest, to_level=level)
    monkeypatch.setitem(MAPS, "dynamic8", map_)
    monkeypatch.setitem(CLASSES, "dynamic8", Dynamic8)
