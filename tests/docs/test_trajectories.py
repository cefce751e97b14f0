"""Every optimizer has a picture of its path, and the command makes the same again."""

import re
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

import steepest
from docs.pictures import _trajectories as pictures

from ..zoo import ZOO

FOLDER = Path(pictures.__file__).parent / "trajectories"
FILES = sorted(FOLDER.glob("*.svg"))


def _public_name(maker) -> str:
    name = maker.__name__
    return name if getattr(steepest, name, maker) is maker else f"contrib.{name}"


def _paths(svg: str) -> list[np.ndarray]:
    """The points of both paths, in pixels."""
    written = re.findall(r'class="path" d="M([^"]*)"', svg)
    moves = [np.array(re.findall(r"-?[\d.]+", d), float) for d in written]
    return [np.cumsum(x.reshape(-1, 2), axis=0) for x in moves]


def test_every_public_optimizer_has_a_picture():
    public = {_public_name(row.maker) for row in ZOO if row.maker.__name__[0] != "_"}
    assert public <= set(pictures.OPTIMIZERS)
    assert [path.stem for path in FILES] == sorted(pictures.OPTIMIZERS)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_picture_is_small_and_complete(path: Path):
    svg = path.read_text()
    assert len(svg.encode()) <= 12_000
    ElementTree.fromstring(svg)
    assert "prefers-color-scheme: dark" in svg
    paths = _paths(svg)
    assert [p.shape for p in paths] == 2 * [(pictures.STEPS + 1, 2)]
    for p, surface in zip(paths, pictures.SURFACES, strict=True):
        assert np.any(p[0] != p[-1]), surface.title


@pytest.mark.parametrize("name", ["adam", "sgd"])
def test_the_command_reproduces_it(name):
    """To a pixel: compilers round differently."""
    old, new = (FOLDER / f"{name}.svg").read_text(), pictures.picture(name)
    captions = [re.findall(r"learning rate [^,]+", svg) for svg in (old, new)]
    assert captions[0] == captions[1]
    for x, y in zip(_paths(old), _paths(new), strict=True):
        np.testing.assert_allclose(x, y, atol=1.0)


@pytest.mark.parametrize("surface", pictures.SURFACES, ids=lambda s: s.title)
def test_levels_are_where_the_function_has_their_value(surface):
    for height in surface.levels:
        values = [pictures._value(surface.numbers, p) for p in surface.level(height)]
        np.testing.assert_allclose(values, height, rtol=1e-3)
    assert all(low < high for low, high in pairwise(surface.levels))
    lowest = pictures._value(surface.numbers, np.array(surface.minimum, np.float32))
    np.testing.assert_allclose(lowest, 0.0, atol=1e-10)
