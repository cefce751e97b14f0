"""Everything the race asks of a disk, one function each.

Nothing else in the race touches a file that it writes, so that a test can fail or kill
every single operation by putting something else in the place of `os` here. No link is
followed, and nothing waits for a fifo or a device. Whatever the disk refuses is said in
a sentence, with what to do.
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
except ImportError:  # Windows has no such locks
    fcntl = None

_TEMPORARY = re.compile(r"\.steepest-[0-9a-f]{16}\.new")
_flag = lambda name: getattr(os, name, 0)  # Windows does not have all of them
_CAREFUL = sum(map(_flag, ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_BINARY")))
_PIECE = 1 << 20  # bytes to read at once

_SPACE = "Free some space, and resume: what was saved before is intact."
_RIGHTS = "Change who may write there, or race in another folder."
_OTHER = "Check the disk, or race in another folder."
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
        path: which one.
        what: what is wrong with it.
    """
    return ValueError(
        f"race: {path} {what}. It was left as it is: move it away, or race in another "
        "folder."
    )


def is_temporary(name: str) -> bool:
    """Whether this is a file that `write` had not finished.

    Args:
        name: without its folder.
    """
    return _TEMPORARY.fullmatch(name) is not None


def exists(path: Path) -> bool:
    """Whether anything is there; a link counts, wherever it leads.

    Args:
        path: where.
    """
    return _kind(path) is not None


def is_file(path: Path) -> bool:
    """Whether a file is there, and not a link to one.

    Args:
        path: where.
    """
    kind = _kind(path)
    return kind is not None and stat.S_ISREG(kind)


def is_folder(path: Path) -> bool:
    """Whether a folder is there, and not a link to one.

    Args:
        path: where.
    """
    kind = _kind(path)
    return kind is not None and stat.S_ISDIR(kind)


def names(folder: Path) -> list[str]:
    """What is in a folder, in order; nothing if there is no such folder.

    Args:
        folder: which one.
    """
    with _said("look into", folder):
        try:
            return sorted(os.listdir(folder))
        except FileNotFoundError:
            return []


def make_folder(path: Path) -> bool:
    """Make a folder, and those it is in. Returns whether it is new.

    Of several processes that ask for one folder at the same time, one is told yes.

    Args:
        path: where.
    """
    with _said("make the folder", path):
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
    """Refuse what is no folder, or a link to one.

    Args:
        path: where.
    """
    if not is_folder(path):
        raise left_alone(path, f"is {_named(_kind(path))}, expected a folder")


def remove(path: Path) -> None:
    """Remove a file that nobody needs; if it stays, it does no harm.

    Args:
        path: which one.
    """
    with suppress(OSError):
        os.unlink(path)


def remove_folder(path: Path) -> None:
    """Remove a folder, if it is empty.

    Args:
        path: which one.
    """
    with suppress(OSError):
        os.rmdir(path)


def write(path: Path, parts: Iterable[bytes | memoryview]) -> None:
    """Write a file so that a crash leaves the old one or the new one.

    Args:
        path: where to. What is there and is no file is left alone.
        parts: its content, one after another.
    """
    kind = _kind(path)
    if kind is not None and not stat.S_ISREG(kind):
        raise left_alone(path, f"is {_named(kind)}, expected a file")
    beside = path.with_name(f".steepest-{secrets.token_hex(8)}.new")
    with _said("write", path):
        try:
            _write_new(beside, parts)
            os.replace(beside, path)
        except OSError:
            remove(beside)
            raise


def read(path: Path, most: int) -> bytes:
    """The content of a file. A link, a fifo or a folder is refused.

    Args:
        path: where from.
        most: how many bytes at most.
    """
    file = _open("read", path, os.O_RDONLY)
    parts: list[bytes] = []
    try:
        with _said("read", path):
            while most > 0 and (part := os.read(file, min(most, _PIECE))):
                parts.append(part)
                most -= len(part)
    finally:
        _close(file)
    return b"".join(parts)


@contextmanager
def locked(path: Path) -> Iterator[bool]:
    """While this is entered, no other process can enter; whether that is so.

    Args:
        path: a file that is there only to be locked.
    """
    file = _open("lock", path, os.O_RDWR | os.O_CREAT)
    try:
        yield _lock(file)
    finally:
        _close(file)


def _lock(file: int) -> bool:
    """Whether nobody else has it; a file system without locks is taken as it is."""
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
    """Open a file, if it is one, without waiting for anybody."""
    with _said(verb, path):
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
    """Close a file that was not written to: nothing can be lost."""
    with suppress(OSError):
        os.close(file)


def _write_new(path: Path, parts: Iterable[bytes | memoryview]) -> None:
    """Write a file that is not there yet, down to the disk."""
    how = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _CAREFUL
    file = os.open(path, how, 0o666)
    try:
        for part in parts:
            rest = memoryview(part)
            while rest:
                rest = rest[os.write(file, rest) :]
        os.fsync(file)
    finally:
        os.close(file)  # a disk over the network may be full only here


def _kind(path: Path) -> int | None:
    """Of what kind something is; `None` if it is not there."""
    with _said("look at", path):
        try:
            return os.lstat(path).st_mode
        except FileNotFoundError:
            return None


def _named(kind: int | None) -> str:
    """A kind, in words."""
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
def _said(verb: str, path: Path) -> Iterator[None]:
    """Say in a sentence what the disk has refused."""
    try:
        yield
    except OSError as error:
        if error.errno is None:  # said already
            raise
        why = (error.strerror or type(error).__name__).lower()
        advice = _ADVICE.get(error.errno, _OTHER)
        raise OSError(f"race: cannot {verb} {path}: {why}. {advice}") from error
