"""A problem from its name."""

import importlib
import importlib.util
import sys
import sysconfig
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from types import ModuleType
from typing import Any

import steepest

from .._problem import Problem
from ..entrants import brief
from ._known import EMBEDDED

_WHO = "race"
_NOT_THEIRS = {Path(sysconfig.get_paths()[kind]) for kind in ("stdlib", "purelib")}
_NOT_THEIRS |= {Path(steepest.__file__).parent}
_UNNAMED = Problem.__dataclass_fields__["name"].default


def load(text: str) -> Problem:
    """An embedded problem, or one of your own.

    Args:
        text: a name: `digits`; or `module:attribute`, or `folder/file.py:attribute`,
            where the attribute is a `Problem`, or a function that returns one without
            being told anything. Modules are also looked for in the current folder.

    >>> load("rosenbrock").measure
    'f'
    """
    if not isinstance(text, str):
        raise TypeError(
            f"{_WHO}: the problem is a {type(text).__name__}, expected a text: "
            f"{_listed()}, or `module:attribute`."
        )
    if text in EMBEDDED:
        return replace(EMBEDDED[text](), source=text)
    source, colon, attribute = text.rpartition(":")
    if not colon:
        raise ValueError(_unknown(text))
    if not source or not all(part.isidentifier() for part in attribute.split(".")):
        raise ValueError(
            f"{_WHO}: the problem is {brief(text)}, expected `module:attribute`: where "
            "to look, and the name of a problem there."
        )
    module = _file(source) if source.endswith(".py") else _module(source)
    found = _attribute(module, source, attribute)
    if callable(found) and not isinstance(found, Problem | type):
        found = _called(found, text)
    if not isinstance(found, Problem):
        raise TypeError(
            f"{_WHO}: {text} is {_article(type(found).__name__)}, expected a "
            "`steepest.race.Problem`, or a function that returns one."
        )
    name = attribute if found.name == _UNNAMED else found.name
    return replace(found, name=name, source=text)


def _listed() -> str:
    return ", ".join(f"`{name}`" for name in EMBEDDED)


def _unknown(text: str) -> str:
    near = get_close_matches(text.lower().replace("-", "_")[:99], EMBEDDED)
    meant = f" Did you mean `{near[0]}`?" if near else ""
    if Path(text).suffix == ".py" or "." in text:
        meant = f" Of which name in it? Say `{brief(text)[1:-1]}:problem`."
    return (
        f"{_WHO}: there is no problem {brief(text)}.{meant} There are {_listed()}; one "
        f"of your own is `module:attribute`."
    )


def _module(name: str) -> ModuleType:
    here = Path.cwd()
    _importable(here)
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise _failed(f"module `{name}`", error) from error
        raise ModuleNotFoundError(
            f"{_WHO}: there is no module `{error.name}` in {here}, nor among what is "
            f"installed. Start in the folder where it is, or give its file: "
            f"`path/to/file.py:attribute`."
        ) from error
    except Exception as error:
        raise _failed(f"module `{name}`", error) from error


def _importable(folder: Path) -> None:
    """From now on: what is imported may import something later."""
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    importlib.invalidate_caches()


def _file(name: str) -> ModuleType:
    path = Path(name).expanduser().resolve()
    if not path.is_file():
        raise FileNotFoundError(f"{_WHO}: there is no file {name}.")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None  # as the name ends in .py
    module = importlib.util.module_from_spec(spec)
    _importable(Path.cwd())
    _importable(path.parent)  # as if it had been started there
    known = sys.modules.get(path.stem)
    sys.modules[path.stem] = module  # dataclasses look there for their module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        if known is None:
            del sys.modules[path.stem]
        raise _failed(f"file {name}", error) from error
    finally:
        if known is not None:
            sys.modules[path.stem] = known
    return module


def _failed(what: str, error: Exception) -> ImportError:
    return ImportError(
        f"{_WHO}: the {what} cannot be imported. {_place(error)}"
        f"{type(error).__name__}: {error}"
    )


def _place(error: BaseException) -> str:
    """The last line of the user's own where it went wrong."""
    found, place = "", error.__traceback__
    while place is not None:
        file = Path(place.tb_frame.f_code.co_filename)
        if file.is_file() and not _NOT_THEIRS & {*file.parents}:
            found = f"{file}, line {place.tb_lineno}: "
        place = place.tb_next
    return found


def _attribute(module: ModuleType, source: str, attribute: str) -> Any:
    found: Any = module
    for part in attribute.split("."):
        if not hasattr(found, part):
            near = get_close_matches(part, [x for x in dir(found) if x[0] != "_"])
            meant = f" Did you mean `{near[0]}`?" if near else ""
            problems = [k for k, x in vars(module).items() if isinstance(x, Problem)]
            there = f" Its problems are {', '.join(problems)}." if problems else ""
            raise AttributeError(
                f"{_WHO}: {source} has no `{attribute}`.{meant}{there}"
            )
        found = getattr(found, part)
    return found


def _called(f: Any, text: str) -> Any:
    try:
        return f()
    except Exception as error:
        raise TypeError(
            f"{_WHO}: {text} is a function, called without arguments for its problem, "
            f"and it fails. {_place(error)}{type(error).__name__}: {error}"
        ) from error


def _article(name: str) -> str:
    return f"an {name}" if name[0].lower() in "aeiou" else f"a {name}"
