"""Files with a checksum: anything damaged or foreign is rejected.

A file is one line of JSON, followed by binary data if there is any:

    {"kind": "steepest race", "version": 2, "bytes": 1234, "sha256": "...", "content":
    {...}}

The digest covers everything after it; everything before it is compared byte by byte. So
every changed bit is detected, and nothing is parsed before it is verified.
"""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np

from . import _disk

File = tuple[dict[str, Any], memoryview]  # JSON and binary data
VERSION = 2
_HEAD = '{"kind": "steepest race", "version": %d, "bytes": %20d, "sha256": "%s", '
_LENGTH = len(_HEAD % (VERSION, 0, 64 * "0"))
_BEGINS = re.compile(
    rb'\{\s*"kind": "steepest race",\s*"version": ([0-9]{1,9})'
    rb'(?:, "bytes": +([0-9]+), )?'
)


def write_sealed(
    path: Path, content: Mapping[str, object], arrays: Sequence[np.ndarray] = ()
) -> None:
    """Write JSON and binary data with their digest, for `read_sealed`.

    Args:
        path: of the file.
        content: JSON values.
        arrays: the binary data.
    """
    line = f'"content": {json.dumps(content, allow_nan=False)}}}\n'.encode()
    body = [line, *(x.reshape(-1).view(np.uint8).data for x in arrays)]
    _disk.write(path, [_head(body), *body])


def read_sealed(path: Path) -> File:
    """Read and verify a file of a race. Returns its JSON and its binary data.

    Args:
        path: of the file.
    """
    begins = _BEGINS.match(_disk.read(path, _LENGTH))
    if begins is None:
        raise _disk.left_alone(path, "is damaged, or is not a file of a race")
    version, size = begins.groups()
    if int(version) != VERSION:
        raise _disk.left_alone(
            path,
            f"has format {int(version)}, but this version of steepest reads format "
            f"{VERSION}",
        )
    if size is None:
        raise _disk.left_alone(path, "is damaged: its first line was changed")
    whole = _disk.read(path, int(size) + 1)
    if len(whole) != int(size):
        more = "longer" if len(whole) > int(size) else "shorter"
        raise _disk.left_alone(path, f"is damaged: it is {more} than when written")
    body = memoryview(whole)[_LENGTH:]
    if whole[:_LENGTH] != _head([body]):
        raise _disk.left_alone(path, "is damaged: its digest does not match")
    end = whole.index(b"\n")
    return json.loads(whole[:end])["content"], memoryview(whole)[end + 1 :]


def to_json(x: object) -> object:
    """Convert a value to JSON without losing any digits.

    Args:
        x: an array of any shape, a number, a string, or a dataclass of these. NaN
            becomes `None`, and infinity a string.
    """
    if is_dataclass(x):
        return {f.name: to_json(getattr(x, f.name)) for f in fields(x)}
    if isinstance(x, np.ndarray):
        x = x.tolist()
    if isinstance(x, list | tuple):
        return [to_json(y) for y in x]
    if isinstance(x, float) and not np.isfinite(x):
        return None if np.isnan(x) else str(x)
    return x


def from_json(x: object) -> np.ndarray:
    """The array that `to_json` was given, in float64.

    Args:
        x: lists of numbers.
    """
    return np.asarray(x, dtype=object).astype(np.float64)


def _head(body: Sequence[bytes | memoryview]) -> bytes:
    """The head of a file: its length, and the digest of the rest."""
    digest = hashlib.sha256()
    for part in body:
        digest.update(part)
    size = _LENGTH + sum(len(part) for part in body)
    return (_HEAD % (VERSION, size, digest.hexdigest())).encode()
