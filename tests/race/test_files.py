"""A file of a race is whole, ours and undamaged, or it is refused and left alone."""

import json

import numpy as np
import pytest

from steepest.race._files import (
    from_json,
    read_sealed,
    to_json,
    write_sealed,
    write_whole,
)


def test_what_is_sealed_comes_back(tmp_path):
    path = tmp_path / "a.json"
    write_sealed(path, {"x": [1.5, None], "y": "ü"})
    assert read_sealed(path) == {"x": [1.5, None], "y": "ü"}
    assert [p.name for p in tmp_path.iterdir()] == ["a.json"]


BAD = {
    "empty": b"",
    "half": b'{"kind": "steepest race", "version": 1, "conte',
    "binary": b"\xff\xfe\x00",
    "a list": b"[1, 2]",
    "foreign": b'{"name": "somebody else\'s"}',
    "version": b'{"kind": "steepest race", "version": 99, "content": {}}',
    "digest": b'{"kind": "steepest race", "version": 1, "sha256": "0", "content": {}}',
    "deep": b"[" * 100_000,
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_not_is_refused_and_left(tmp_path, name):
    path = tmp_path / "a.json"
    path.write_bytes(BAD[name])
    with pytest.raises(ValueError, match=r"race: .*a\.json .*left as it is"):
        read_sealed(path)
    assert path.read_bytes() == BAD[name]


def test_a_changed_digit_is_seen(tmp_path):
    path = tmp_path / "a.json"
    write_sealed(path, {"loss": [0.125, 0.25]})
    path.write_text(path.read_text().replace("0.125", "0.126"))
    with pytest.raises(ValueError, match="digest does not fit"):
        read_sealed(path)


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "a"
    write_whole(path, b"old")
    monkeypatch.setattr("os.fsync", lambda _: (_ for _ in ()).throw(OSError("full")))
    with pytest.raises(OSError, match="full"):
        write_whole(path, b"new")
    assert path.read_bytes() == b"old"


def test_numbers_come_back_to_the_last_digit():
    x = np.array([[0.1, np.nan], [np.inf, -np.inf], [1e-320, np.float32(0.1)]])
    told = json.loads(json.dumps(to_json(x), allow_nan=False))
    np.testing.assert_array_equal(from_json(told), x)
