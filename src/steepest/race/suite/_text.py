"""The text: all source files of Python's standard library."""

import hashlib
import re
import sysconfig
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import UInt8

_HELD_OUT = 20  # every 20th file is for validation
_LONG = 20  # characters: shorter lines are too common to show that text is copied
_LICENCE = re.compile(rb"copyright|licen[cs]e", re.IGNORECASE)
_INSTALLED = {"site-packages", "dist-packages", "__pycache__"}


class Text(NamedTuple):
    """Bytes to learn from, and others to measure with."""

    train: UInt8[np.ndarray, " bytes"]
    held_out: UInt8[np.ndarray, " more"]


@cache
def standard_library() -> Text:
    """The files of the standard library, in the order of the hashes of their paths.

    Every 20th file is held out, unless most of its lines are in the other files.
    Licences at the top of files are left out.
    """
    folder = Path(sysconfig.get_paths()["stdlib"])
    found = [p for p in folder.rglob("*.py") if not _INSTALLED & set(p.parts)]
    name = lambda path: path.relative_to(folder).as_posix()
    found.sort(key=lambda path: hashlib.sha256(name(path).encode()).digest())
    texts = [without_licence(path.read_bytes()) for path in found]
    train = [x for k, x in enumerate(texts) if k % _HELD_OUT]
    known = {line for text in train for line in long_lines(text)}
    held_out = [x for x in texts[::_HELD_OUT] if not is_copied(x, known)]
    if not train or not held_out:
        raise FileNotFoundError(
            "suite: the suite reads the source of Python's standard library, but "
            f"{folder} has {len(found)} Python files. Use a Python that includes its "
            "source."
        )
    return Text(_joined(train), _joined(held_out))


def windows(
    text: UInt8[np.ndarray, " bytes"], many: int, places: int
) -> UInt8[np.ndarray, "many places"]:
    """Evenly spaced windows of a text, with one extra byte for the last target.

    Args:
        text: the bytes.
        many: number of windows.
        places: length of the context.
    """
    starts = np.linspace(0, len(text) - places - 1, many).astype(int)
    return text[starts[:, None] + np.arange(places + 1)]


def without_licence(text: bytes) -> bytes:
    """A file without the comments at its top, if they mention a licence.

    Args:
        text: of the file.
    """
    lines = text.splitlines(keepends=True)
    is_head = lambda line: line.startswith(b"#") or not line.strip()
    head = next((k for k, line in enumerate(lines) if not is_head(line)), len(lines))
    licensed = _LICENCE.search(b"".join(lines[:head]))
    return b"".join(lines[head:]) if licensed else text


def long_lines(text: bytes) -> list[int]:
    """Hashes of the lines that are long enough to tell where they come from.

    Args:
        text: of a file.
    """
    lines = (line.strip() for line in text.splitlines())
    return [hash(line) for line in lines if len(line) >= _LONG]


def is_copied(text: bytes, known: set[int]) -> bool:
    """Whether more than half of the long lines are known; true if there are none.

    Args:
        text: of a file.
        known: hashes of the lines of other files.
    """
    lines = long_lines(text)
    return 2 * sum(line in known for line in lines) >= len(lines)


def _joined(texts: Iterable[bytes]) -> UInt8[np.ndarray, " bytes"]:
    return np.frombuffer(b"".join(texts), np.uint8)
