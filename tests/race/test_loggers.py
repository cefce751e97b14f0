"""Runs of a race in wandb, trackio and TensorBoard; the packages are fakes."""

import math
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import ClassVar

import pytest

from steepest.race import log_to_tensorboard, log_to_trackio, log_to_wandb
from steepest.race.terminal import _run
from steepest.race.terminal._command import main
from steepest.race.terminal._config import read

from .outcomes import digits, outcome, sweep

RACE = outcome(
    sweep("adamw(b1=0.9)", rates=(1e-3, 10.0), seeds=(0, 7), times=4),
    sweep("dadapt", rates=(None,), seeds=(0, 7), times=4),
    problem="my digits/2",
)


def _tracker(monkeypatch, name):
    """A fake of wandb or trackio, and the runs that it was told of."""
    runs, current = [], []

    def init(**options):
        assert not current, "the run before is not finished"
        print("a run begins")
        current.append(options | {"logged": []})
        runs.append(current[0])
        log = lambda values, step: current[0]["logged"].append((step, values))
        return SimpleNamespace(log=log)

    module = SimpleNamespace(init=init, finish=current.clear)
    monkeypatch.setitem(sys.modules, name, module)
    return runs, current


@pytest.mark.parametrize(
    ("name", "log"), [("wandb", log_to_wandb), ("trackio", log_to_trackio)]
)
def test_every_run_is_logged(monkeypatch, name, log):
    runs, current = _tracker(monkeypatch, name)
    log(RACE, entity="us")
    assert [run["name"] for run in runs] == [
        "adamw(b1=0.9) at 1e-3, seed 0",
        "adamw(b1=0.9) at 1e-3, seed 7",
        "adamw(b1=0.9) at 10, seed 0",
        "adamw(b1=0.9) at 10, seed 7",
        "dadapt, seed 0",
        "dadapt, seed 7",
    ]
    assert not current
    first, bad = runs[1], runs[2]
    assert (first["project"], first["entity"]) == ("my-digits-2", "us")
    assert first["group"] == "adamw(b1=0.9) at 1e-3"
    wanted = {"optimizer": "adamw(b1=0.9)", "learning_rate": 1e-3, "seed": 7}
    assert wanted.items() <= first["config"].items()
    s = RACE.sweeps[0]
    assert [step for step, _ in first["logged"]] == list(s.steps)
    last = first["logged"][-1][1]
    assert last["loss"] == s.loss[0, 1, -1]
    assert last["metric"] == last["final_metric"] == s.metric[0, 1, -1]
    assert last["seconds"] == s.seconds[-1] / s.runs and last["diverged"] == 0
    values = [x for _, some in bad["logged"] for x in some.values()]
    assert all(map(math.isfinite, values))
    assert bad["logged"][-1][1].keys() == {"seconds", "diverged"}
    log(RACE, project="mine")
    assert runs[-1]["project"] == "mine"


def test_an_error_ends_the_run(monkeypatch):
    told = []
    run = SimpleNamespace(log=lambda values, step: 1 / step)  # fails at step 0
    start = lambda **_: told.append("begun") or run
    module = SimpleNamespace(init=start, finish=lambda: told.append("finished"))
    monkeypatch.setitem(sys.modules, "wandb", module)
    with pytest.raises(ZeroDivisionError):
        log_to_wandb(RACE)
    assert told == ["begun", "finished"]


class _Writer:
    """A fake `SummaryWriter`."""

    made: ClassVar[dict] = {}

    def __init__(self, folder):
        self.told = self.made.setdefault(Path(folder), [])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.told.append("closed")

    def add_scalar(self, *args):
        self.told.append(args)

    def add_hparams(self, settings, final, **place):
        self.told.append((settings, final, place))


@pytest.mark.parametrize(
    ("module", "place"),
    [("tensorboardX", "name"), ("torch.utils.tensorboard", "run_name")],
)
def test_tensorboard(monkeypatch, module, place):
    for name in ("tensorboardX", "torch", "torch.utils"):
        monkeypatch.setitem(sys.modules, name, None)
    fake = SimpleNamespace(SummaryWriter=_Writer, __name__=module)
    monkeypatch.setitem(sys.modules, module, fake)
    if module.startswith("torch"):  # parents come first
        for name in ("torch", "torch.utils"):
            monkeypatch.setitem(sys.modules, name, SimpleNamespace(__path__=[]))
    monkeypatch.setattr(_Writer, "made", {})
    log_to_tensorboard(RACE, "here")
    assert len(_Writer.made) == 6
    told = _Writer.made[Path("here/1-adamw-b1-0.9/0.001/seed-7")]
    s = RACE.sweeps[0]
    assert ("loss", s.loss[0, 1, 2], s.steps[2]) in told
    assert ("metric", s.metric[0, 1, -1], s.steps[-1]) in told
    settings, final, where = told[-2]
    assert settings["learning_rate"] == 1e-3 and None not in settings.values()
    assert final == {"diverged": 0, "final_metric": s.metric[0, 1, -1]}
    assert where == {place: "settings"} and told[-1] == "closed"


@pytest.mark.parametrize("name", ["wandb", "trackio", "tensorboard"])
def test_a_logger_must_be_installed(monkeypatch, tmp_path, capsys, name):
    for module in ("wandb", "trackio", "tensorboardX", "torch"):
        monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.chdir(tmp_path)
    assert main(["race", "--log", name]) == 2
    package = "tensorboardX" if name == "tensorboard" else name
    wanted = f"{package} is not installed. Run `pip install {package}`."
    assert wanted in " ".join(capsys.readouterr().err.split())
    assert not list(tmp_path.iterdir())  # no race has begun


def test_the_command_logs_at_the_end(monkeypatch, tmp_path, capsys):
    runs, _ = _tracker(monkeypatch, "wandb")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(_run, "race", lambda *_, **__: digits())
    monkeypatch.setattr(_run, "write_report", lambda *_: "report.html")
    assert main(["race", "rosenbrock", "--log", "wandb"]) == 0
    assert len(runs) == sum(s.runs for s in digits().sweeps)
    out, err = capsys.readouterr()
    assert "a run begins" not in out and "a run begins" in err
    assert main(["race", "rosenbrock", "--log", "paper"]) == 2
    assert "wandb, trackio, tensorboard" in " ".join(capsys.readouterr().err.split())
    path = tmp_path / "race.toml"
    path.write_text("log = 'paper'")
    with pytest.raises(ValueError, match="'paper' is not a logger"):
        read(path)
