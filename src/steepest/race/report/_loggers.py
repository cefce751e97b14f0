"""The runs of a race in wandb, trackio or TensorBoard, which are optional packages."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

import numpy as np

from .._outcome import Outcome, Sweep
from ._numbers import at_rate

Logger = Literal["wandb", "trackio", "tensorboard"]
Values = dict[str, Any]
# The modules with a `SummaryWriter`, and how each calls the folder of `add_hparams`.
_WRITERS = {"tensorboardX": "name", "torch.utils.tensorboard": "run_name"}


def log_to_wandb(outcome: Outcome, project: str | None = None, **options: Any) -> None:
    """Log each run of a race as a run of wandb: settings, curves and final metric.

    The runs of an optimizer at one learning rate are a group. Needs wandb.

    Args:
        outcome: of a race.
        project: by default the name of the problem.
        options: passed on to `wandb.init`.
    """
    _log_to("wandb", outcome, project, options)


def log_to_trackio(
    outcome: Outcome, project: str | None = None, **options: Any
) -> None:
    """Log each run of a race as a run of trackio: settings, curves and final metric.

    The runs of an optimizer at one learning rate are a group. Needs trackio.

    Args:
        outcome: of a race.
        project: by default the name of the problem.
        options: passed on to `trackio.init`.
    """
    _log_to("trackio", outcome, project, options)


def log_to_tensorboard(outcome: Outcome, folder: str | Path) -> None:
    """Write each run of a race for TensorBoard: settings, curves and final metric.

    Needs tensorboardX or PyTorch.

    Args:
        outcome: of a race.
        folder: for `tensorboard --logdir`. Each run has a folder in it.
    """
    module = _tensorboard()
    for run in _runs(outcome):
        with module.SummaryWriter(str(Path(folder) / run.folder)) as writer:
            for step, values in run.points:
                for name, x in values.items():
                    writer.add_scalar(name, x, step)
            settings = {name: x for name, x in run.settings.items() if x is not None}
            # A folder of its own: two writers in one folder can overwrite each other.
            below = {_WRITERS[module.__name__]: "settings"}
            writer.add_hparams(settings, run.final, **below)


@dataclass(frozen=True)
class LoggedRun:
    """One run of a race, as loggers take it.

    Attributes:
        group: the optimizer and its learning rate, in words.
        seed: of the run.
        folder: a unique path for its files.
        settings: of the run and the race.
        points: the steps with an evaluation, and the finite values there.
        final: whether it diverged, the step at which halving has stopped it, if it has,
            and its final metric, if there is one.
    """

    group: str
    seed: int
    folder: Path
    settings: Values
    points: list[tuple[int, Values]]
    final: Values


def _log_to(
    package: Logger, outcome: Outcome, project: str | None, options: Mapping[str, Any]
) -> None:
    """Log to wandb, or to trackio, which has the same functions."""
    module = import_logger(package)
    project = re.sub(r"[^\w.-]+", "-", outcome.problem) if project is None else project
    for run in _runs(outcome):
        named = {"group": run.group, "name": f"{run.group}, seed {run.seed}"}
        settings = {"project": project, **named, "config": run.settings, **options}
        logged = module.init(**settings)
        try:
            for step, values in run.points[:-1]:
                logged.log(values, step=step)
            step, values = run.points[-1]
            logged.log(values | run.final, step=step)
        finally:
            module.finish()


def _runs(outcome: Outcome) -> Iterator[LoggedRun]:
    for k, sweep in enumerate(outcome.sweeps):
        for r, rate in enumerate(sweep.rates):
            for s, seed in enumerate(sweep.seeds):
                slug = re.sub(r"[^\w.]+", "-", sweep.name).strip("-")[:60]
                metric = float(sweep.metric[r, s, -1])  # NaN if it was stopped
                last = {"final_metric": metric} if np.isfinite(metric) else {}
                if r not in sweep.running:
                    last = {"stopped_at": sweep.stopped[r]}
                yield LoggedRun(
                    group=f"{sweep.name}{at_rate(rate)}",
                    seed=seed,
                    folder=Path(f"{k + 1}-{slug}", str(rate), f"seed-{seed}"),
                    settings=_settings(outcome, sweep)
                    | {"learning_rate": rate, "seed": seed},
                    points=_points(sweep, r, s),
                    final={"diverged": int(sweep.diverged[r, s]), **last},
                )


def _settings(outcome: Outcome, sweep: Sweep) -> Values:
    return {
        "problem": outcome.source or outcome.problem,
        "optimizer": sweep.name,
        "schedule": outcome.schedule,
        "steps": sweep.planned,
        "measure": outcome.measure,
        "better": outcome.better,
        "target": outcome.target,
        "parameters": sweep.parameters,
        "bytes_per_param": sweep.bytes_per_param,
        "machine": outcome.machine,
    }


def _points(sweep: Sweep, r: int, s: int) -> list[tuple[int, Values]]:
    points: list[tuple[int, Values]] = []
    for t, step in enumerate(sweep.steps[: sweep.last[r] + 1]):
        values = {
            "loss": float(sweep.loss[r, s, t]),
            "metric": float(sweep.metric[r, s, t]),
            "seconds": float(sweep.run_seconds[t]),
        }
        points.append((step, {n: x for n, x in values.items() if np.isfinite(x)}))
    return points


def import_logger(name: Logger) -> Any:
    """Import the package of a logger, or raise an error that says how to install it.

    Args:
        name: `wandb`, `trackio` or `tensorboard`.
    """
    return _tensorboard() if name == "tensorboard" else _imported(name)


def _tensorboard() -> Any:
    try:
        return _imported("tensorboardX")
    except ModuleNotFoundError as missing:
        try:
            return import_module("torch.utils.tensorboard")
        except ModuleNotFoundError:
            raise missing from None


def _imported(package: str) -> Any:
    try:
        return import_module(package)
    except ModuleNotFoundError as error:
        if error.name != package:
            raise
        raise ModuleNotFoundError(
            f"race: {package} is not installed. Run `pip install {package}`.",
            name=package,
        ) from error


def log_to(name: Logger, outcome: Outcome, folder: Path) -> None:
    """Log a race to the logger with this name, with its default options.

    Args:
        name: `wandb`, `trackio` or `tensorboard`.
        outcome: of the race.
        folder: of the race; TensorBoard's files go to `tensorboard` in it.
    """
    loggers: dict[Logger, Callable[[], None]] = {
        "wandb": lambda: log_to_wandb(outcome),
        "trackio": lambda: log_to_trackio(outcome),
        "tensorboard": lambda: log_to_tensorboard(outcome, folder / "tensorboard"),
    }
    loggers[name]()
