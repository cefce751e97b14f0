"""The map that ours are compared with is that of bitsandbytes."""

import jax.numpy as jnp
import numpy as np

from steepest.numerics import encode

from .. import dynamic8
from ._bitsandbytes import STORED


def closed_form():
    """The levels of bitsandbytes' unsigned dynamic map, built as it builds them."""
    levels = [0.0, 1.0]
    for i in range(7):
        edges = np.linspace(0.1, 1, 2 ** (i + 1) + 1)
        levels += list(10.0 ** (i - 6) * (edges[:-1] + edges[1:]) / 2)
    return np.sort(levels)


def test_levels():
    """A wrong table made losses NaN there for eight months, unseen."""
    stored = np.load(STORED)["levels"]
    assert len(set(stored)) == 256
    np.testing.assert_allclose(stored, closed_form(), 1e-6)
    levels = dynamic8.level(jnp.arange(1.0, 256))
    np.testing.assert_allclose(levels, stored[1:], 1e-6)


def test_codes_are_those_of_bitsandbytes(monkeypatch):
    """Except that code 0 is only for zero. There it stands for tiny numbers, too."""
    dynamic8.register(monkeypatch)
    theirs = np.load(STORED)
    x = theirs["x"]
    q = encode(jnp.asarray(x), "dynamic8")
    np.testing.assert_array_equal(q.scales, theirs["scales"])
    codes = np.where(x > 0, np.maximum(theirs["codes"], 1), 0)
    np.testing.assert_array_equal(q.codes, codes)
    assert np.sum(codes != theirs["codes"]) > 200
    scales = np.repeat(theirs["scales"], 256)[: len(x)]
    np.testing.assert_allclose(q.decode(), theirs["levels"][codes] * scales, 1e-6)
