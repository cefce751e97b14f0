"""All file operations of the race.

No other module touches the files that a race writes, so a test can make every single
operation fail by replacing `os` here. Links are not followed, and nothing blocks on a
fifo or a device. Every error says what to do.
"""

import errno
import os
import re
import secrets
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

try:
    import fcntl
except ImportError:  # not on Windows
    fcntl = None

_TEMPORARY = re.compile(r"\.steepest-[0-9a-f]{16}\.new")
_flag = lambda name: getattr(os, name, 0)  # Windows lacks some of them
_CAREFUL = sum(map(_flag, ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_BINARY")))
_PIECE = 1 << 20  # bytes per read

_SPACE = "Free some space and resume; everything saved so far is intact."
_RIGHTS = "Change the permissions, or use another folder."
_OTHER = "Check the disk, or use another folder."
_ADVICE = {
    errno.ENOSPC: _SPACE,
    errno.EDQUOT: _SPACE,
    errno.EACCES: _RIGHTS,
    errno.EPERM: _RIGHTS,
    errno.EROFS: _RIGHTS,
}


def left_alone(path: Path, what: str) -> ValueError:
    """The error for a file that cannot be used.

    Args:
        path: of the file.
        what: what is wrong with it.
    """
    return ValueError(
        f"race: {path} {what}. It was not changed. Move it away, or use another folder."
    )


def is_temporary(name: str) -> bool:
    """Whether this is the name of a temporary file of `write`.

    Args:
        name: without its folder.
    """
    return _TEMPORARY.fullmatch(name) is not None


def exists(path: Path) -> bool:
    """Whether the path exists; a link counts, even a broken one.

    Args:
        path: the path.
    """
    return _kind(path) is not None


def is_file(path: Path) -> bool:
    """Whether the path is a regular file, not a link.

    Args:
        path: the path.
    """
    kind = _kind(path)
    return kind is not None and stat.S_ISREG(kind)


def is_folder(path: Path) -> bool:
    """Whether the path is a folder, not a link.

    Args:
        path: the path.
    """
    kind = _kind(path)
    return kind is not None and stat.S_ISDIR(kind)


def names(folder: Path) -> list[str]:
    """The sorted names in a folder; empty if it does not exist.

    Args:
        folder: its path.
    """
    with _with_advice("list", folder):
        try:
            return sorted(os.listdir(folder))
        except FileNotFoundError:
            return []


def make_folder(path: Path) -> bool:
    """Make a folder and its parents. Returns whether it is new.

    If several processes make the same folder at once, it is new to only one of them.

    Args:
        path: of the folder.
    """
    with _with_advice("make the folder", path):
        try:
            os.mkdir(path)
        except FileExistsError:
            return False
        except FileNotFoundError:
            if path.parent == path:
                raise
            make_folder(path.parent)
            with suppress(FileExistsError):
                os.mkdir(path)
                return True
            return False
    return True


def check_folder(path: Path) -> None:
    """Raise if the path is not a folder, or is a link to one.

    Args:
        path: the path.
    """
    if not is_folder(path):
        raise left_alone(path, f"is {_named(_kind(path))}, expected a folder")


def remove(path: Path) -> None:
    """Try to remove a file that is no longer needed.

    Args:
        path: of the file.
    """
    with suppress(OSError):
        os.unlink(path)


def remove_folder(path: Path) -> None:
    """Remove a folder if it is empty.

    Args:
        path: of the folder.
    """
    with suppress(OSError):
        os.rmdir(path)


def write(path: Path, parts: Iterable[bytes | memoryview]) -> None:
    """Write a file atomically: a crash leaves the old one or the new one.

    Args:
        path: of the file. Anything there that is not a regular file is an error.
        parts: its content, in order.
    """
    kind = _kind(path)
    if kind is not None and not stat.S_ISREG(kind):
        raise left_alone(path, f"is {_named(kind)}, expected a file")
    beside = path.with_name(f".steepest-{secrets.token_hex(8)}.new")
    with _with_advice("write", path):
        try:
            _write_new(beside, parts)
            os.replace(beside, path)
        except OSError:
            remove(beside)
            raise


def read(path: Path, most: int) -> bytes:
    """Read a regular file. A link, a fifo or a folder is an error.

    Args:
        path: of the file.
        most: maximum number of bytes.
    """
    file = _open("read", path, os.O_RDONLY)
    parts: list[bytes] = []
    try:
        with _with_advice("read", path):
            while most > 0 and (part := os.read(file, min(most, _PIECE))):
                parts.append(part)
                most -= len(part)
    finally:
        _close(file)
    return b"".join(parts)


@contextmanager
def locked(path: Path) -> Iterator[bool]:
    """Lock a file for this process. Yields whether that succeeded.

    Args:
        path: of the lock file.
    """
    file = _open("lock", path, os.O_RDWR | os.O_CREAT)
    try:
        yield _lock(file)
    finally:
        _close(file)


def _lock(file: int) -> bool:
    """Whether the lock is ours; true on a file system without locks."""
    if fcntl is None:
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True


def _open(verb: str, path: Path, flags: int) -> int:
    """Open a regular file without blocking."""
    with _with_advice(verb, path):
        try:
            file = os.open(path, flags | _CAREFUL, 0o666)
        except OSError as error:
            if error.errno not in (errno.ELOOP, errno.ENXIO, errno.EISDIR):
                raise
            kind = _kind(path)
            raise left_alone(path, f"is {_named(kind)}, expected a file") from None
        try:
            kind = os.fstat(file).st_mode
            if not stat.S_ISREG(kind):
                raise left_alone(path, f"is {_named(kind)}, expected a file")
        except (OSError, ValueError):
            _close(file)
            raise
    return file


def _close(file: int) -> None:
    """Close a file that was only read: errors do not matter."""
    with suppress(OSError):
        os.close(file)


def _write_new(path: Path, parts: Iterable[bytes | memoryview]) -> None:
    """Write a new file and flush it to the disk."""
    how = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _CAREFUL
    file = os.open(path, how, 0o666)
    try:
        for part in parts:
            rest = memoryview(part)
            while rest:
                rest = rest[os.write(file, rest) :]
        os.fsync(file)
    finally:
        os.close(file)  # a network disk may report that it is full only now


def _kind(path: Path) -> int | None:
    """The mode bits of a path; `None` if it does not exist."""
    with _with_advice("access", path):
        try:
            return os.lstat(path).st_mode
        except FileNotFoundError:
            return None


def _named(kind: int | None) -> str:
    """The file type, in words."""
    kinds = {
        None: "missing",
        stat.S_IFLNK: "a link",
        stat.S_IFDIR: "a folder",
        stat.S_IFREG: "a file",
        stat.S_IFIFO: "a fifo",
        stat.S_IFSOCK: "a socket",
    }
    return kinds.get(kind and stat.S_IFMT(kind), "a device")


@contextmanager
def _with_advice(verb: str, path: Path) -> Iterator[None]:
    """Add the operation, the path and some advice to errors of the disk."""
    try:
        yield
    except OSError as error:
        if error.errno is None:  # it is one of ours
            raise
        why = (error.strerror or type(error).__name__).lower()
        advice = _ADVICE.get(error.errno, _OTHER)
        raise OSError(f"race: cannot {verb} {path}: {why}. {advice}") from error
