"""Run commands and make environments, and print what is done."""

import os
import subprocess
import time
import venv
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parent.parent


def run(
    name: str, command: Sequence[str | Path], folder: Path, *, show: int = 0
) -> str:
    """Run a command, print one line about it, and return its output.

    A failure prints the output and ends the program.

    Args:
        name: what the command does.
        command: the command and its arguments.
        folder: where it runs.
        show: how many of the last lines of output to print.
    """
    start = time.perf_counter()
    done = attempt(command, folder)
    seconds = time.perf_counter() - start
    if done.returncode:
        print(done.stdout)
        raise SystemExit(f"FAILED {name}: exit status {done.returncode}")
    print(f"ok  {name}  ({seconds:.1f} s)", flush=True)
    for line in done.stdout.strip().splitlines()[-show:] if show else ():
        print(f"      {line}", flush=True)
    return done.stdout


def attempt(
    command: Sequence[str | Path], folder: Path
) -> subprocess.CompletedProcess[str]:
    """Run a command; return its exit status, and stdout and stderr together.

    The command does not see `PYTHONPATH`, so it imports what is installed.

    Args:
        command: the command and its arguments.
        folder: where it runs.
    """
    hidden = {"PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV"}
    env = {key: value for key, value in os.environ.items() if key not in hidden}
    return subprocess.run(
        [str(part) for part in command],
        cwd=folder,
        env={**env, "JAX_PLATFORMS": "cpu"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def environment(folder: Path) -> Path:
    """A new virtual environment with pip. Returns its folder of programs.

    Args:
        folder: where to put it.
    """
    venv.create(folder, with_pip=True, clear=True)
    return folder / ("Scripts" if os.name == "nt" else "bin")


def pip(programs: Path) -> list[str]:
    """The start of a `pip install` in an environment.

    Args:
        programs: what `environment` returned.
    """
    quiet = ["--quiet", "--disable-pip-version-check"]
    return [str(programs / "python"), "-m", "pip", "install", *quiet]
