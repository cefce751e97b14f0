"""Saved results can be loaded, and nothing on disk is lost."""

import os
from dataclasses import fields, replace
from types import SimpleNamespace

import numpy as np
import pytest

from steepest.race._model import Model
from steepest.race._settings import settings_of
from steepest.race._store import Nowhere, Store
from steepest.race._sweep import Begun, Evaluation
from steepest.race.entrants import entrant

from .outcomes import sweep
from .small import LINE

SETTINGS = settings_of("line", LINE, {}, {})
LONG = "chain(clip_by_global_norm(1.0), sgd)"


def _model(name):
    return Model(LINE, entrant(name, steps=12, schedule=None))


class _Evaluation(Evaluation):
    """An evaluation of runs that are saved as these bytes."""

    def __init__(self, sweep):
        object.__setattr__(self, "sweep", sweep)
        program = SimpleNamespace(model=_model(sweep.name))
        object.__setattr__(self, "program", program)

    def begun(self):
        saved = [np.arange(9, dtype=np.uint8), np.zeros(0, np.uint8)]
        return Begun(self.sweep, saved)


def _same(a, b):
    pairs = [(getattr(a, f.name), getattr(b, f.name)) for f in fields(a)]
    return all(
        np.array_equal(x, y, equal_nan=True) if isinstance(x, np.ndarray) else x == y
        for x, y in pairs
    )


@pytest.fixture
def store(tmp_path):
    store = Store(tmp_path / "a" / "race")
    with store.open(SETTINGS, LINE):
        yield store


@pytest.mark.parametrize("name", ["adamw", LONG, "lookahead(adamw)"])
def test_finished_runs_come_back_to_the_last_digit(store, name):
    result = sweep(name, rates=(0.1, 1.0), limit=0.5)
    assert result.diverged.any()
    store.keep(_Evaluation(result))
    assert _same(store.finished(_model(name)), result)
    assert store.finished(_model("adam")) is None


def test_an_optimizer_without_a_rate_comes_back(store):
    store.keep(_Evaluation(sweep("lbfgs", rates=(None,))))
    assert store.finished(_model("lbfgs")).rates == (None,)


def test_begun_runs_come_back_until_they_are_done(store):
    part = sweep(LONG, done=0.5)
    store.keep_begun(_Evaluation(part))
    result = store.begun(_model(LONG))
    assert _same(result.sweep, part)
    assert [x.tolist() for x in result.saved] == [list(range(9)), []]
    store.keep(_Evaluation(sweep(LONG)))
    assert store.begun(_model(LONG)) is None


def test_saving_is_seldom_but_for_the_last(store):
    store.keep_begun(_Evaluation(sweep("adam", done=0.2)))
    store.keep_begun(_Evaluation(sweep("adam", done=0.5)))
    assert _same(store.begun(_model("adam")).sweep, sweep("adam", done=0.2))
    store.keep_begun(_Evaluation(sweep("adam", done=0.6)), now=True)
    assert _same(store.begun(_model("adam")).sweep, sweep("adam", done=0.6))


def test_settings_of_a_race_that_goes_on(store):
    before = Store(store.folder).settings(resume=True)
    assert settings_of("line", LINE, {}, before) == SETTINGS
    with pytest.raises(
        ValueError, match=r"race: .* already contains a race.*\(--resume\)"
    ):
        Store(store.folder).settings(resume=False)


def test_there_must_be_something_to_go_on_with(tmp_path):
    with pytest.raises(
        ValueError, match=r"does not exist, .* no race to resume.*--resume"
    ):
        Store(tmp_path / "new").settings(resume=True)


def test_a_new_folder_has_none(tmp_path):
    assert Store(tmp_path / "new").settings(resume=False) == {}
    assert Store(tmp_path).settings(resume=True) == {}  # killed before it began


@pytest.mark.parametrize("resume", [False, True])
def test_a_folder_of_somebody_else_is_left_alone(tmp_path, resume):
    (tmp_path / "thesis.tex").write_text("precious")
    with pytest.raises(ValueError, match="files that are not of a race"):
        Store(tmp_path).settings(resume)
    assert [p.name for p in tmp_path.iterdir()] == ["thesis.tex"]


def test_a_damaged_file_is_refused_and_left(store):
    """Before anything runs; `test_faults.py` covers every kind of damage."""
    store.keep(_Evaluation(sweep("sgd")))
    path = store.folder / "runs/sgd.json"
    content = path.read_bytes()[:-2]
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"sgd\.json .*shorter.*not changed"):
        store.finished(_model("sgd"))
    assert path.read_bytes() == content


def test_a_file_of_another_optimizer_is_refused(store):
    store.keep(_Evaluation(sweep("adam")))
    os.rename(store.folder / "runs/adam.json", store.folder / "runs/lion.json")
    message = "lion.json contains all runs of adam, expected all runs of lion"
    with pytest.raises(ValueError, match=message):
        store.finished(_model("lion"))


def test_a_file_of_another_race_is_refused(store, tmp_path):
    """Also from one that is identical in every respect."""
    store.keep(_Evaluation(sweep("adam")))
    other = Store(tmp_path / "other")
    with other.open(SETTINGS, LINE):
        os.rename(store.folder / "runs/adam.json", other.folder / "runs/adam.json")
        with pytest.raises(
            ValueError, match=r"other/runs/adam\.json belongs to another race"
        ):
            other.finished(_model("adam"))


def _again(folder, settings, problem):
    """Open a race to resume it."""
    store = Store(folder)
    store.settings(resume=True)
    with store.open(settings, problem):
        pass


def test_other_code_or_data_is_refused_by_name(tmp_path):
    with Store(tmp_path).open(SETTINGS, LINE):
        pass
    _again(tmp_path, SETTINGS, LINE)
    before = (tmp_path / "race.json").read_bytes()
    other = replace(
        LINE, loss=lambda p, batch: 2 * LINE.loss(p, batch), data=LINE.data + 1
    )
    message = r"race: cannot resume. Changed since .*race\.json was written: "
    with pytest.raises(
        ValueError, match=message + "`loss`, `data`. Results from before"
    ):
        _again(tmp_path, SETTINGS, other)
    longer = replace(SETTINGS, steps=13, seeds=(0, 1))
    with pytest.raises(
        ValueError, match=r"seeds \(0, 1, 2 then, 0, 1 now\), steps \(12 then, 13 now"
    ):
        _again(tmp_path, longer, LINE)
    assert (tmp_path / "race.json").read_bytes() == before


def test_a_file_that_others_wrote_is_refused_before_anything_runs(tmp_path):
    """`race.json` may be correct, but a run file may be of a race with other rates."""
    store = Store(tmp_path)
    with store.open(SETTINGS, LINE):
        store._common["learning rates"] = "0.5"
        store.keep(_Evaluation(sweep("adam")))
    message = r"since .*runs/adam\.json was written.*learning rates \(0\.5 then, 0\.001"
    with pytest.raises(ValueError, match=message):
        _again(tmp_path, SETTINGS, LINE)


def test_another_program_of_the_optimizer_is_refused(store):
    store.keep(_Evaluation(sweep("adam")))
    store._own["adam"] = "0" * 32
    with pytest.raises(ValueError, match="was written: the optimizer's program"):
        store.finished(_model("adam"))


def test_a_race_that_came_between_is_not_overwritten(tmp_path):
    """Both found an empty folder; the second does not wait, and gets an error."""
    first, second = Store(tmp_path), Store(tmp_path)
    assert first.settings(resume=False) == second.settings(resume=False) == {}
    with first.open(SETTINGS, LINE):
        pass
    before = (tmp_path / "race.json").read_bytes()
    with pytest.raises(ValueError, match="another process has started a race in"):
        with second.open(SETTINGS, LINE):
            pass
    assert (tmp_path / "race.json").read_bytes() == before


TEMPORARY = ".steepest-0123456789abcdef.new"


@pytest.mark.parametrize("resume", [False, True])
def test_what_a_killed_race_leaves_does_not_block_the_folder(tmp_path, resume):
    (tmp_path / "runs").mkdir()
    for name in (TEMPORARY, f"runs/{TEMPORARY}", "runs/.lock"):
        (tmp_path / name).write_text("half")
    store = Store(tmp_path)
    assert store.settings(resume) == {}
    with store.open(SETTINGS, LINE):
        pass
    result = sorted(p.name for p in tmp_path.rglob("*"))
    assert result == [".lock", "race.json", "runs"]


@pytest.mark.parametrize("name", ["runs/adam.json", "runs/thesis.tex", ".cache"])
def test_other_files_are_an_error(tmp_path, name):
    (tmp_path / "runs").mkdir()
    (tmp_path / name).write_text("precious")
    with pytest.raises(ValueError, match="files that are not of a race"):
        Store(tmp_path).settings(resume=False)


def test_runs_in_another_place_are_refused(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "race").mkdir()
    (tmp_path / "race/runs").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ValueError, match="race/runs is a link, expected a folder"):
        with Store(tmp_path / "race").open(SETTINGS, LINE):
            pass
    assert not any((tmp_path / "elsewhere").iterdir())


def test_one_race_at_a_time(store):
    with pytest.raises(ValueError, match="another process is using"):
        with Store(store.folder).open(SETTINGS, LINE):
            pass


def test_without_a_folder_nothing_is_saved():
    with pytest.raises(ValueError, match="`resume` needs a `folder`"):
        Nowhere().settings(resume=True)
    assert Nowhere().settings(resume=False) == {}
