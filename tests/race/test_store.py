"""What is on disk comes back, and nothing on disk is lost."""

from dataclasses import fields

import numpy as np
import pytest

from steepest.race._store import Nowhere, Store
from steepest.race._sweep import Begun, Look

from .outcomes import sweep

SETTINGS = {"problem": "digits", "steps": 7}
LONG = "chain(clip_by_global_norm(1.0), sgd)"


class _Look(Look):
    """A look at runs that are saved as these bytes."""

    def __init__(self, sweep):
        object.__setattr__(self, "sweep", sweep)

    def begun(self):
        return Begun(self.sweep, "f00d", [np.arange(9, dtype=np.uint8)])


def _same(a, b):
    pairs = [(getattr(a, f.name), getattr(b, f.name)) for f in fields(a)]
    return all(
        np.array_equal(x, y, equal_nan=True) if isinstance(x, np.ndarray) else x == y
        for x, y in pairs
    )


@pytest.fixture
def store(tmp_path):
    store = Store(tmp_path / "a" / "race")
    with store.open(SETTINGS):
        yield store


@pytest.mark.parametrize("name", ["adamw", LONG, "lookahead(adamw)"])
def test_finished_runs_come_back_to_the_last_digit(store, name):
    found = sweep(name, rates=(0.1, 1.0), limit=0.5)
    assert found.diverged.any()
    store.keep(found)
    assert _same(store.finished(name), found)
    assert store.finished("adam") is None


def test_an_optimizer_without_a_rate_comes_back(store):
    store.keep(sweep("lbfgs", rates=(None,)))
    assert store.finished("lbfgs").rates == (None,)


def test_begun_runs_come_back_until_they_are_done(store):
    part = sweep(LONG, done=0.5)
    store.keep_begun(_Look(part))
    found = store.begun(LONG)
    assert _same(found.sweep, part) and found.fingerprint == "f00d"
    np.testing.assert_array_equal(found.saved[0], np.arange(9))
    store.keep(sweep(LONG))
    assert store.begun(LONG) is None


def test_saving_is_seldom_but_for_the_last(store):
    store.keep_begun(_Look(sweep("adam", done=0.2)))
    store.keep_begun(_Look(sweep("adam", done=0.5)))
    assert _same(store.begun("adam").sweep, sweep("adam", done=0.2))
    store.keep_begun(_Look(sweep("adam", done=0.6)), now=True)
    assert _same(store.begun("adam").sweep, sweep("adam", done=0.6))


def test_settings_of_a_race_that_goes_on(store):
    assert Store(store.folder).settings(resume=True) == SETTINGS
    with pytest.raises(ValueError, match=r"race: there is a race in .* already"):
        Store(store.folder).settings(resume=False)


def test_there_must_be_something_to_go_on_with(tmp_path):
    with pytest.raises(ValueError, match=r"there is no folder .* no race to go on"):
        Store(tmp_path / "new").settings(resume=True)


def test_a_new_folder_has_none(tmp_path):
    assert Store(tmp_path / "new").settings(resume=False) == {}
    assert Store(tmp_path).settings(resume=True) == {}  # killed before it began


@pytest.mark.parametrize("resume", [False, True])
def test_a_folder_of_somebody_else_is_left_alone(tmp_path, resume):
    (tmp_path / "thesis.tex").write_text("precious")
    with pytest.raises(ValueError, match="something else than a race in it"):
        Store(tmp_path).settings(resume)
    assert [p.name for p in tmp_path.iterdir()] == ["thesis.tex"]


def _damage(path):
    content = path.read_bytes()
    middle = len(content) // 2
    path.write_bytes(content[:middle] + b"?!" + content[middle + 2 :])
    return path.read_bytes()


def _empty(path):
    path.write_bytes(b"")
    return b""


@pytest.mark.parametrize("ending", ["json", "begun"])
@pytest.mark.parametrize("damage", [_damage, _empty])
def test_a_damaged_file_is_refused_and_left(store, ending, damage):
    store.keep(sweep("adam"))
    store.keep_begun(_Look(sweep("adam")), now=True)
    (path,) = store.folder.glob(f"runs/adam.{ending}")
    content = damage(path)
    read = store.finished if ending == "json" else store.begun
    with pytest.raises(ValueError, match=rf"adam\.{ending} .*left as it is"):
        read("adam")
    assert path.read_bytes() == content


def test_a_file_of_another_optimizer_is_refused(store):
    store.keep(sweep("adam"))
    (store.folder / "runs/adam.json").rename(store.folder / "runs/lion.json")
    with pytest.raises(ValueError, match="is of adam, and not of lion"):
        store.finished("lion")


def test_one_race_at_a_time(store):
    with pytest.raises(ValueError, match="another process is racing"):
        with Store(store.folder).open(SETTINGS):
            pass


def test_nowhere_keeps_nothing():
    with pytest.raises(ValueError, match="no `folder` is given"):
        Nowhere().settings(resume=True)
    assert Nowhere().settings(resume=False) == {}
