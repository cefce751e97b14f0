"""The text: source files of Python's standard library and of installed packages."""

import hashlib
import re
import sysconfig
from collections.abc import Collection, Iterable, Sequence
from functools import cache
from math import inf
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import UInt8

_HELD_OUT = 20  # every 20th file is for validation
_LONG = 20  # characters: shorter lines are too common to show that text is copied
_LARGE = 200_000  # bytes: such files of packages are often tables, not code
_LICENCE = re.compile(rb"copyright|licen[cs]e", re.IGNORECASE)
_INSTALLED = {"site-packages", "dist-packages"}  # folders inside the standard library


class Text(NamedTuple):
    """Bytes to learn from, and others to measure with."""

    train: UInt8[np.ndarray, " bytes"]
    held_out: UInt8[np.ndarray, " more"]


@cache
def sources(needed: int = 0) -> Text:
    """The files of the standard library, in the order of the hashes of their paths.

    If they have less text than needed, files of installed packages follow, until there
    is enough: optimizers that fit repeated text best are not the best with new text.
    Every 20th file is held out, unless most of its lines are in the other files.
    Licences at the top of files are left out.

    Args:
        needed: the number of bytes to learn from.
    """
    paths = sysconfig.get_paths()
    folder = Path(paths["stdlib"])
    library = files_of(folder, without=_INSTALLED)
    texts = [without_licence(path.read_bytes()) for path in library]
    many = sum(map(len, _learned(texts)))
    packages = dict.fromkeys(Path(paths[name]) for name in ("purelib", "platlib"))
    for path in files_of(*packages, most=_LARGE) if many < needed else ():
        texts.append(without_licence(path.read_bytes()))
        many += len(texts[-1]) if (len(texts) - 1) % _HELD_OUT else 0
        if many >= needed:
            break
    train = _learned(texts)
    known = {line for text in train for line in long_lines(text)}
    held_out = [x for x in texts[::_HELD_OUT] if not is_copied(x, known)]
    if not library or not train or not held_out:
        raise FileNotFoundError(
            "suite: the suite reads the source of Python's standard library, but "
            f"{folder} has {len(library)} Python files. Use a Python that includes its "
            "source."
        )
    return Text(_joined(train), _joined(held_out))


def files_of(
    *folders: Path, without: Collection[str] = (), most: int | float = inf
) -> list[Path]:
    """The Python files in some folders, in the order of the hashes of their paths.

    Args:
        folders: where to look.
        without: names of folders to leave out.
        most: the number of bytes of a file.
    """
    left_out = {*without, "__pycache__"}
    known = {}
    for folder in folders:
        for path in folder.rglob("*.py"):
            name = path.relative_to(folder)
            if left_out & {*name.parts} or not path.is_file():
                continue
            if path.stat().st_size <= most:
                known[hashlib.sha256(name.as_posix().encode()).digest()] = path
    return [known[key] for key in sorted(known)]


def _learned(texts: Sequence[bytes]) -> list[bytes]:
    """The texts that are not held out."""
    return [x for k, x in enumerate(texts) if k % _HELD_OUT]


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
