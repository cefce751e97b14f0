"""A file of a race is complete, valid and undamaged, or rejected and not modified."""

import json

import numpy as np
import pytest

from steepest.race._files import from_json, read_sealed, to_json, write_sealed

CONTENT = {"x": [1.5, None], "y": "ü"}
BYTES = [np.arange(7, dtype=np.uint8), np.zeros(0, np.uint8), np.ones(2, np.uint8)]


@pytest.mark.parametrize("arrays", [[], BYTES], ids=["json", "bytes"])
def test_what_is_sealed_comes_back(tmp_path, arrays):
    path = tmp_path / "a.json"
    write_sealed(path, CONTENT, arrays)
    content, data = read_sealed(path)
    assert content == CONTENT and bytes(data) == b"".join(x.tobytes() for x in arrays)
    assert [p.name for p in tmp_path.iterdir()] == ["a.json"]


def test_without_bytes_a_file_is_json(tmp_path):
    """So that other programs can read it."""
    path = tmp_path / "a.json"
    write_sealed(path, CONTENT)
    assert json.loads(path.read_text())["content"] == CONTENT


BAD = {
    "empty": b"",
    "half": b'{"kind": "steepest race", "version": 2, "conte',
    "binary": b"\xff\xfe\x00",
    "a list": b"[1, 2]",
    "foreign": b'{"name": "somebody else\'s"}',
    "format 1": b'{\n "kind": "steepest race",\n "version": 1,\n "content": {}}',
    "format 99": b'{"kind": "steepest race", "version": 99, "content": {}}',
    "digest": b'{"kind": "steepest race", "version": 2, "bytes":  64, "sha256": "0"}',
    "deep": b"[" * 100_000,
}


@pytest.mark.parametrize("name", BAD)
def test_other_files_are_refused_and_not_modified(tmp_path, name):
    path = tmp_path / "a.json"
    path.write_bytes(BAD[name])
    with pytest.raises(ValueError, match=r"race: .*a\.json .*not changed"):
        read_sealed(path)
    assert path.read_bytes() == BAD[name]


def _refused(path, content):
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"race: .*a\.json .*not changed") as error:
        read_sealed(path)
    assert "\n" not in str(error.value)


def test_every_bit_counts(tmp_path):
    path = tmp_path / "a.json"
    write_sealed(path, CONTENT, BYTES)
    whole = path.read_bytes()
    for place in range(8 * len(whole)):
        changed = bytearray(whole)
        changed[place // 8] ^= 1 << place % 8
        _refused(path, bytes(changed))


def test_nothing_may_be_cut_or_added(tmp_path):
    path = tmp_path / "a.json"
    write_sealed(path, CONTENT, BYTES)
    whole = path.read_bytes()
    for end in range(len(whole)):
        _refused(path, whole[:end])
    for more in (b"\0", b"\n", b" ", whole):
        _refused(path, whole + more)


def test_the_digest_is_checked_before_anything_is_parsed(tmp_path, monkeypatch):
    path = tmp_path / "a.json"
    write_sealed(path, CONTENT)
    path.write_text(path.read_text().replace("1.5", "1.6"))
    monkeypatch.setattr(json, "loads", lambda text: pytest.fail("parsed"))
    with pytest.raises(ValueError, match="digest does not match"):
        read_sealed(path)


def test_numbers_come_back_to_the_last_digit():
    x = np.array([[0.1, np.nan], [np.inf, -np.inf], [1e-320, np.float32(0.1)]])
    told = json.loads(json.dumps(to_json(x), allow_nan=False))
    np.testing.assert_array_equal(from_json(told), x)
