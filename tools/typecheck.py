"""Run mypy and pyright on a user's script, with steepest and with Optax.

    python -m tools.typecheck

`tests/typing/correct.py` must be clean. Both checkers must find every mistake planted
in `tests/typing/mistakes.py`, and nothing else. The same files with `import optax` are
checked for comparison. The exit status is 1 unless steepest's part is perfect.
"""

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from .shell import ROOT

FOLDER = ROOT / "tests" / "typing"
Errors = dict[tuple[str, int], str]  # (file, line) -> message


def _python(*arguments: str, folder: Path) -> str:
    command = [sys.executable, "-m", *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if not done.stdout:
        raise SystemExit(f"{' '.join(arguments)}: {done.stderr}")
    return done.stdout


def mypy(folder: Path, *options: str) -> Errors:
    """The errors that mypy finds.

    Args:
        folder: the folder with the scripts.
        options: options of mypy besides its defaults.
    """
    options = ("--no-incremental", "--python-version", "3.11", *options)
    out = _python("mypy", *options, ".", folder=folder)
    found = re.findall(r"^(?:\./)?([\w.]+):(\d+): error: (.*)$", out, re.M)
    return {(file, int(line)): message for file, line, message in found}


def pyright(folder: Path) -> Errors:
    """The errors that pyright finds in its standard mode (basedpyright runs it).

    Args:
        folder: the folder with the scripts.
    """
    config = {"typeCheckingMode": "standard", "pythonVersion": "3.11"}
    (folder / "pyrightconfig.json").write_text(json.dumps(config))
    where = ["--pythonpath", sys.executable, "--outputjson"]
    out = json.loads(_python("basedpyright", *where, folder=folder))
    return {
        (Path(d["file"]).name, d["range"]["start"]["line"] + 1): d["message"]
        for d in out["generalDiagnostics"]
        if d["severity"] == "error"
    }


def mypy_untyped(folder: Path) -> Errors:
    """The errors that mypy finds if it also reads packages without `py.typed`.

    Args:
        folder: the folder with the scripts.
    """
    return mypy(folder, "--follow-untyped-imports")


CHECKERS: dict[str, Callable[[Path], Errors]] = {
    "mypy": mypy,
    "mypy --follow-untyped-imports": mypy_untyped,
    "pyright": pyright,
}


def planted(text: str) -> dict[int, str]:
    """The lines of the planted mistakes, with the name of the function around each.

    Args:
        text: a script.
    """
    result, name = {}, ""
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("def "):
            name = line.split("(")[0].removeprefix("def ")
        if line.endswith("# mistake"):
            result[number] = name.replace("_", " ")
    return result


def main() -> int:
    """Check, and print a table."""
    texts = {
        name: (FOLDER / f"{name}.py").read_text() for name in ("correct", "mistakes")
    }
    libraries = ("steepest", "optax")
    with tempfile.TemporaryDirectory(prefix="steepest-typing-") as temporary:
        folder = Path(temporary)
        for library in libraries:
            for name, text in texts.items():
                new = text.replace("import steepest as lib", f"import {library} as lib")
                (folder / f"{library}_{name}.py").write_text(new)
        found = {name: check(folder) for name, check in CHECKERS.items()}

    mistakes = planted(texts["mistakes"])
    columns = [(library, checker) for library in libraries for checker in CHECKERS]
    print("| | " + " | ".join(f"{a}, {b}" for a, b in columns) + " |")
    print("|---|" + "---|" * len(columns))
    for line, name in mistakes.items():
        hit = [(f"{a}_mistakes.py", line) in found[b] for a, b in columns]
        print(f"| {name} | " + " | ".join("found" if h else "-" for h in hit) + " |")

    perfect, counts, others, notes = True, [], [], []
    for library, checker in columns:
        ours = [key for key in found[checker] if key[0].startswith(f"{library}_")]
        hits = [
            key
            for key in ours
            if key[0].endswith("_mistakes.py") and key[1] in mistakes
        ]
        false = sorted(set(ours) - set(hits))
        counts.append(f"{len(hits)} of {len(mistakes)}")
        others.append(str(len(false)))
        if library == "steepest":
            perfect &= len(hits) == len(mistakes) and not false
        for file, line in false:
            notes.append(f"{checker}: {file}:{line}: {found[checker][file, line]}")
    print("| planted mistakes found | " + " | ".join(counts) + " |")
    print("| errors in correct lines | " + " | ".join(others) + " |", *notes, sep="\n")
    return int(not perfect)


if __name__ == "__main__":
    raise SystemExit(main())
