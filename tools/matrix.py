"""Test the oldest and the newest Python and JAX.

    python -m tools.matrix              # the oldest and newest Python found here
    python -m tools.matrix --all        # every Python found here
    python -m tools.matrix --keep DIR   # keep the environments, for the next time

For each Python, one environment with the oldest versions of the runtime dependencies
that `pyproject.toml` allows, and one with the newest that pip finds. Each runs a part
of the tests on the installed package. Only Pythons present here are tested: `python3.X`
on the PATH, and those of pyenv.
"""

import argparse
import re
import shutil
import subprocess
import tempfile
import time
import tomllib
from pathlib import Path
from typing import NamedTuple

from .shell import attempt, ROOT

# The foundation, and some optimizers against the laws and against Optax.
TESTS = [
    "tests/core",
    "--ignore=tests/core/test_like_optax.py",  # needs Flax
    "tests/exchange/test_config.py",
    "tests/laws/test_types.py",
    "tests/optimizers/test_adam.py",
    "tests/oracles/test_optax.py",
    "-k=core or exchange or test_adam or adamw or lion or sgd",
]
NEEDED = ["beartype>=0.22", "hypothesis>=6", "optax==0.2.8", "pytest>=9"]
NEEDED += ["threadpoolctl>=3"]


class Outcome(NamedTuple):
    """What one environment had, and how its tests ended."""

    python: str
    dependencies: str  # "oldest" or "newest"
    versions: str
    result: str
    passed: bool


def pythons(least: tuple[int, int]) -> dict[tuple[int, int], Path]:
    """The Pythons present here, by version.

    Args:
        least: the oldest version to use.
    """
    found: dict[tuple[int, int], Path] = {}
    pyenv = shutil.which("pyenv")
    roots = []
    if pyenv:
        asked = subprocess.run([pyenv, "root"], capture_output=True, text=True)
        roots = sorted(Path(asked.stdout.strip()).glob("versions/*/bin"))
    for minor in range(least[1], least[1] + 10):
        name = f"python{least[0]}.{minor}"
        places = [shutil.which(name), *(shutil.which(name, path=str(r)) for r in roots)]
        for place in filter(None, places):
            test = [place, "-c", "import venv, ensurepip"]
            works = subprocess.run(test, capture_output=True)
            if works.returncode == 0:  # a shim of pyenv may not
                found[least[0], minor] = Path(place)
    return found


def oldest(requirements: list[str]) -> list[str]:
    """The lowest versions that `>=` requirements allow, as `==` requirements.

    Args:
        requirements: such as `jax>=0.10`.
    """
    return [requirement.replace(">=", "==") for requirement in requirements]


def try_pair(python: Path, name: str, needed: list[str], folder: Path) -> Outcome:
    """Install the package and run the tests.

    Args:
        python: the interpreter.
        name: "oldest" or "newest".
        needed: the requirements to install with the package.
        folder: where the environment is, or will be.
    """
    version = attempt([python, "-V"], ROOT).stdout.split()[-1]
    inside = folder / f"python{version}-{name}"
    programs = inside / "bin"
    start = time.perf_counter()
    steps: list[list[str | Path]] = []
    if not programs.exists():
        steps.append([python, "-m", "venv", inside])
    quiet = ["--quiet", "--disable-pip-version-check", "--upgrade"]
    install = [programs / "python", "-m", "pip", "install", *quiet]
    steps.append([*install, ROOT, *needed, *NEEDED])
    for step in steps:
        done = attempt(step, ROOT)
        if done.returncode:
            last = (done.stdout.strip().splitlines() or [""])[-1]
            return Outcome(version, name, "", f"not installed: {last}", False)
    listed = attempt([programs / "python", "-m", "pip", "freeze"], ROOT).stdout
    wanted = r"^(jax|jaxlib|jaxtyping|numpy)==(.*)$"
    versions = ", ".join(f"{n} {v}" for n, v in re.findall(wanted, listed, re.M))
    # Away from the repository, where `src` is not seen.
    tests = folder / "tree"
    if not tests.exists():
        tests.mkdir()
        for part in ("tests", "examples", "benchmarks", "tools", "docs", "changes"):
            shutil.copytree(ROOT / part, tests / part)
        for part in ("pyproject.toml", "README.md", "CHANGELOG.md"):
            shutil.copy(ROOT / part, tests / part)
    done = attempt([programs / "python", "-m", "pytest", "-q", *TESTS], tests)
    last = (done.stdout.strip().splitlines() or ["no output"])[-1]
    if done.returncode:
        last = f"exit status {done.returncode}: {last}"
        print("\n".join(done.stdout.splitlines()[-60:]))
    print(f"{version} {name}: {time.perf_counter() - start:.0f} s", flush=True)
    return Outcome(version, name, versions, last, not done.returncode)


def main() -> int:
    """Try all pairs and print a table."""
    parser = argparse.ArgumentParser(prog="tools.matrix", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--all", action="store_true", help="every Python, not only two")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="where to put them")
    options = parser.parse_args()

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    major, minor = map(int, re.findall(r"\d+", project["requires-python"])[:2])
    found = pythons((major, minor))
    if not found:
        raise SystemExit(f"There is no Python {project['requires-python']} here.")
    versions = sorted(found)
    chosen = versions if options.all else sorted({versions[0], versions[-1]})
    written = ", ".join(".".join(map(str, version)) for version in versions)
    print(f"requires-python {project['requires-python']}; present here: {written}")

    needed = project["dependencies"]
    with tempfile.TemporaryDirectory(prefix="steepest-matrix-") as temporary:
        folder = options.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(folder / "tree", ignore_errors=True)
        rows = [
            try_pair(found[version], name, wanted, folder.resolve())
            for version in chosen
            for name, wanted in (("oldest", oldest(needed)), ("newest", needed))
        ]
    print("\n| Python | dependencies | versions | tests |\n|---|---|---|---|")
    for row in rows:
        print(f"| {row.python} | {row.dependencies} | {row.versions} | {row.result} |")
    return int(not all(row.passed for row in rows))


if __name__ == "__main__":
    raise SystemExit(main())
