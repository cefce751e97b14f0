"""Links are not followed, nothing blocks, and errors say what to do."""

import errno
import os
import socket
from concurrent.futures import ThreadPoolExecutor

import pytest

from steepest.race import _disk

NAMES = [".race.json.new", ".a.new", ".steepest.new"]


def test_a_file_is_replaced_whole(tmp_path):
    path = tmp_path / "a"
    _disk.write(path, [b"old"])
    _disk.write(path, [b"ne", memoryview(b"w")])
    assert _disk.read(path, 10) == b"new" and _disk.read(path, 2) == b"ne"
    large = os.urandom(3_000_001)
    _disk.write(path, [large])
    assert _disk.read(path, 3_000_002) == large
    assert _disk.names(tmp_path) == ["a"]


def test_temporary_names_are_unpredictable(tmp_path, monkeypatch):
    """A symbolic link at its old name is neither followed nor overwritten."""
    precious = tmp_path / "precious"
    precious.write_text("precious")
    for name in NAMES:
        (tmp_path / name).symlink_to(precious)
    seen = []
    opened = os.open
    monkeypatch.setattr(
        os, "open", lambda path, *how: seen.append((path, *how)) or opened(path, *how)
    )
    for _ in range(3):
        _disk.write(tmp_path / "a", [b"new"])
    assert len({path for path, *_ in seen}) == 3
    for path, flags, _ in seen:
        assert _disk.is_temporary(path.name)
        assert flags & os.O_EXCL and flags & os.O_NOFOLLOW
    assert precious.read_text() == "precious"


def _link(path):
    path.symlink_to(path.with_name("target"))


def _socket(path):
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(str(path))


KINDS = {
    "link": _link,
    "folder": lambda path: path.mkdir(),
    "fifo": os.mkfifo,
    "socket": _socket,
    "device": lambda path: os.mknod(path, 0o020666, os.makedev(1, 5)),  # /dev/zero
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("target", [True, False])
def test_special_files_are_refused_at_once(tmp_path, kind, target):
    """A fifo would block `open` forever, and a device never ends."""
    path = tmp_path / "a"
    if target:
        (tmp_path / "target").write_text("precious")
    try:
        KINDS[kind](path)
    except PermissionError:
        pytest.skip("only root makes devices")
    before = path.lstat()
    message = rf"race: .*/a is a {kind}, expected a file\. It was not changed"
    with pytest.raises(ValueError, match=message):
        _disk.write(path, [b"new"])
    if kind != "socket":
        with pytest.raises(ValueError, match=message):
            _disk.read(path, 10)
        with pytest.raises(ValueError, match=message), _disk.locked(path):
            pass
    else:
        with pytest.raises((ValueError, OSError), match="race: "):
            _disk.read(path, 10)
    assert path.lstat() == before and not _disk.is_file(path)
    if target:
        assert (tmp_path / "target").read_text() == "precious"
    else:
        assert not (tmp_path / "target").exists()


def test_a_lock_is_held_by_one(tmp_path):
    path = tmp_path / ".lock"
    path.write_text("somebody's")
    with _disk.locked(path) as first, _disk.locked(path) as second:
        assert first and not second
    with _disk.locked(path) as first:
        assert first
    assert path.read_text() == "somebody's"


def test_of_many_processes_one_gets_the_folder(tmp_path):
    path = tmp_path / "a" / "b" / "c"
    with ThreadPoolExecutor(16) as pool:
        result = list(pool.map(lambda _: _disk.make_folder(path), range(16)))
    assert sum(result) == 1 and path.is_dir()


def test_a_folder_that_is_a_link_to_nowhere(tmp_path):
    (tmp_path / "a").symlink_to(tmp_path / "gone")
    with pytest.raises(OSError, match=r"race: cannot make the folder .*a/b: no such"):
        _disk.make_folder(tmp_path / "a" / "b")


SAID = {
    errno.ENOSPC: "no space left on device. Free some space and resume",
    errno.EDQUOT: "quota exceeded. Free some space and resume",
    errno.EACCES: "permission denied. Change the permissions, or use another folder.",
    errno.EROFS: "read-only file system. Change the permissions, or use another",
    errno.EIO: "input/output error. Check the disk, or use another folder.",
}


@pytest.mark.parametrize("number", SAID, ids=errno.errorcode.get)
def test_what_the_disk_refuses_is_said_in_a_sentence(tmp_path, monkeypatch, number):
    path = tmp_path / "a"
    _disk.write(path, [b"old"])

    def refuse(*_):
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", refuse)
        with pytest.raises(OSError, match=r"race: cannot write .*a: ") as error:
            _disk.write(path, [b"new"])
    assert SAID[number] in str(error.value) and "\n" not in str(error.value)
    assert _disk.names(tmp_path) == ["a"] and path.read_text() == "old"
