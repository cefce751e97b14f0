"""Build the package, check it, and run it in clean environments. Uploads nothing.

    python -m tools.release

Writes `dist/`. Everything else happens in a temporary folder. Needs pip and an index.
"""

import shutil
import tarfile
import tempfile
import zipfile
from email import message_from_bytes
from pathlib import Path

from . import changelog
from .shell import environment, pip, ROOT, run

SMOKE = Path(__file__).with_name("smoke.py")
RACE = "digits --optimizers sgd,adam --learning-rates 0.1,0.01 --seeds 2 --steps 20"


def build(folder: Path) -> tuple[Path, Path]:
    """The wheel and the sdist, in `dist/`, checked by twine.

    Args:
        folder: a temporary folder.
    """
    programs = environment(folder / "build")
    run("install build and twine", [*pip(programs), "build", "twine"], folder)
    dist = ROOT / "dist"
    shutil.rmtree(dist, ignore_errors=True)
    # The wheel is built from the sdist, so the sdist is complete.
    run("build", [programs / "python", "-m", "build", "--outdir", dist, ROOT], folder)
    (wheel,), (sdist,) = dist.glob("*.whl"), dist.glob("*.tar.gz")
    twine = [programs / "python", "-m", "twine", "check", "--strict", wheel, sdist]
    run("twine check", twine, folder)
    return wheel, sdist


def check_wheel(wheel: Path) -> str:
    """Check what is in the wheel. Returns its version.

    Args:
        wheel: the file.
    """
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        (metadata,) = (name for name in names if name.endswith("dist-info/METADATA"))
        fields = message_from_bytes(archive.read(metadata))
    version = str(fields["Version"])
    folders = {name.split("/")[0] for name in names}
    if folders != {"steepest", f"steepest-{version}.dist-info"}:
        raise SystemExit(f"{wheel.name} has {sorted(folders)}, expected only steepest.")
    missing = {"steepest/py.typed", "steepest/__main__.py"} - set(names)
    if missing or any("/tests/" in name for name in names):
        raise SystemExit(f"{wheel.name} lacks {missing}, or contains tests.")
    for field in ("Summary", "License-Expression", "Requires-Python", "Project-URL"):
        if not fields[field]:
            raise SystemExit(f"{wheel.name} has no {field} in its metadata.")
    print(f"ok  {wheel.name}: {len(names)} files, py.typed, no tests")
    return version


def check_sdist(sdist: Path) -> None:
    """Check what is in the sdist.

    Args:
        sdist: the file.
    """
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    wanted = {"LICENSE", "README.md", "CHANGELOG.md", "pyproject.toml", "Makefile"}
    wanted |= {"tests/conftest.py", "examples/flax_nnx.py", "src/steepest/py.typed"}
    if wanted - names:
        raise SystemExit(f"{sdist.name} lacks {sorted(wanted - names)}.")
    print(f"ok  {sdist.name}: {len(names)} files, with tests, examples and docs")


def try_wheel(wheel: Path, version: str, folder: Path) -> None:
    """Install the wheel as a user does, and use it.

    Args:
        wheel: the file.
        version: its version.
        folder: a temporary folder, which does not see the repository.
    """
    programs = environment(folder / "user")
    python, steepest = programs / "python", programs / "steepest"
    install = pip(programs)
    run("install the wheel alone", [*install, wheel], folder)
    run("smoke script", [python, "-I", SMOKE], folder, show=1)
    run("steepest --help", [steepest, "--help"], folder)
    said = run(
        "python -m steepest --version", [python, "-m", "steepest", "--version"], folder
    )
    if said.strip() != version:
        raise SystemExit(f"--version printed {said.strip()}, expected {version}.")
    run("install the extra `race`", [*install, f"{wheel}[race]"], folder)
    run(f"steepest race {RACE}", [steepest, "race", *RACE.split()], folder, show=3)
    run("install the extra `examples`", [*install, f"{wheel}[examples]"], folder)
    examples = folder / "examples"
    shutil.copytree(ROOT / "examples", examples)
    for path in sorted(examples.glob("[!_]*.py")):
        run(f"examples/{path.name}", [python, "-I", path], folder, show=1)


def main() -> None:
    """Do all of it, and say so."""
    if changelog.main(["--check"]):
        raise SystemExit(1)
    print("ok  CHANGELOG.md is current")
    with tempfile.TemporaryDirectory(prefix="steepest-release-") as name:
        folder = Path(name)
        wheel, sdist = build(folder)
        version = check_wheel(wheel)
        check_sdist(sdist)
        try_wheel(wheel, version, folder)
    print(f"Version {version} is in dist/ and works. Nothing was uploaded.")


if __name__ == "__main__":
    main()
