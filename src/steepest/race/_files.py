"""Files that are whole or not there, and know whether they are damaged."""

import hashlib
import json
import os
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np

KIND, VERSION = "steepest race", 1
_WHO = "race"


def write_whole(path: Path, content: bytes) -> None:
    """Write a file so that a crash leaves the old one or the new one.

    Args:
        path: where to.
        content: all of it.
    """
    beside = path.with_name(f".{path.name}.new")
    with beside.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    beside.replace(path)


def write_sealed(path: Path, content: dict[str, Any]) -> None:
    """Write what `read_sealed` reads: JSON, with its digest.

    Args:
        path: where to.
        content: what JSON can say.
    """
    sealed = {
        "kind": KIND,
        "version": VERSION,
        "sha256": _digest(content),
        "content": content,
    }
    write_whole(path, json.dumps(sealed, indent=1, allow_nan=False).encode())


def read_sealed(path: Path) -> dict[str, Any]:
    """The content of a file of a race. Any other is refused.

    Args:
        path: where from.
    """
    try:
        sealed = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise refused(path, f"is damaged, or no file of a race ({error})") from None
    if not isinstance(sealed, dict) or sealed.get("kind") != KIND:
        raise refused(path, "is no file of a race")
    if sealed.get("version") != VERSION:
        found = sealed.get("version")
        raise refused(path, f"has version {found!r}, and {VERSION} is wanted")
    content = sealed.get("content")
    if not isinstance(content, dict) or _digest(content) != sealed.get("sha256"):
        raise refused(path, "is damaged: its digest does not fit")
    return content


def refused(path: Path, what: str) -> ValueError:
    """The error for a file that cannot be used.

    Args:
        path: which one.
        what: what is wrong with it.
    """
    return ValueError(
        f"{_WHO}: {path} {what}. It was left as it is: move it away, or race in "
        "another folder."
    )


def to_json(x: Any) -> Any:
    """What JSON can say, and each number so that it comes back to the last digit.

    Args:
        x: an array of any shape, a number, a text, or a dataclass of such. NaN becomes
            `None`, and infinity a text.
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


def from_json(x: Any) -> np.ndarray:
    """The array that `to_json` was given, in float64.

    Args:
        x: lists of numbers.
    """
    return np.asarray(x, dtype=object).astype(np.float64)


def _digest(content: dict[str, Any]) -> str:
    text = json.dumps(content, sort_keys=True, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()
