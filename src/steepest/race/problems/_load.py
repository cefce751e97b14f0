"""Loads a problem by name."""

import importlib
import importlib.util
import sys
import sysconfig
from collections.abc import Callable
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from types import ModuleType

import steepest

from .._problem import Problem
from ..entrants import brief
from ._known import EMBEDDED

_NOT_THEIRS = {Path(sysconfig.get_paths()[kind]) for kind in ("stdlib", "purelib")}
_NOT_THEIRS |= {Path(steepest.__file__).parent}
_UNNAMED = Problem.__dataclass_fields__["name"].default


def load(text: str) -> Problem:
    """Load a built-in problem, or one of your own.

    Args:
        text: a name such as `digits`; or `module:attribute`, or
            `folder/file.py:attribute`, where the attribute is a `Problem` or a function
            without arguments that returns one. Modules are also searched for in the
            current folder.

    >>> load("rosenbrock").measure
    'f'
    """
    if not isinstance(text, str):
        raise TypeError(
            f"race: the problem is a {type(text).__name__}, expected one of: "
            f"{_listed()}, or `module:attribute`."
        )
    if text in EMBEDDED:
        return replace(EMBEDDED[text](), source=text)
    source, colon, attribute = text.rpartition(":")
    if not colon:
        raise ValueError(_unknown(text))
    if not source or not all(part.isidentifier() for part in attribute.split(".")):
        raise ValueError(
            f"race: the problem is {brief(text)}, expected `module:attribute`: a "
            "module or file, and the name of a problem in it."
        )
    module = _file(source) if source.endswith(".py") else _module(source)
    problem = _attribute(module, source, attribute)
    if callable(problem) and not isinstance(problem, Problem | type):
        problem = _called(problem, text)
    if not isinstance(problem, Problem):
        raise TypeError(
            f"race: {text} is {_article(type(problem).__name__)}, expected a "
            "`steepest.race.Problem` or a function that returns one."
        )
    name = attribute if problem.name == _UNNAMED else problem.name
    return replace(problem, name=name, source=text)


def _listed() -> str:
    return ", ".join(f"`{name}`" for name in EMBEDDED)


def _unknown(text: str) -> str:
    near = get_close_matches(text.lower().replace("-", "_")[:99], EMBEDDED)
    meant = f" Did you mean `{near[0]}`?" if near else ""
    if Path(text).suffix == ".py" or "." in text:
        meant = f" Add the name of the problem in it: `{brief(text)[1:-1]}:problem`."
    return (
        f"race: there is no problem {brief(text)}.{meant} Built-in problems: "
        f"{_listed()}. Your own: `module:attribute`."
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
            f"race: there is no module `{error.name}` in {here} or among the installed "
            "packages. Start in its folder, or pass its file: "
            "`path/to/file.py:attribute`."
        ) from error
    except Exception as error:
        raise _failed(f"module `{name}`", error) from error


def _importable(folder: Path) -> None:
    """Add a folder to `sys.path` for good: modules may import others later."""
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    importlib.invalidate_caches()


def _file(name: str) -> ModuleType:
    path = Path(name).expanduser().resolve()
    if not path.is_file():
        raise FileNotFoundError(f"race: there is no file {name}.")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None  # because the name ends in .py
    module = importlib.util.module_from_spec(spec)
    _importable(Path.cwd())
    _importable(path.parent)  # as for a script
    known = sys.modules.get(path.stem)
    sys.modules[path.stem] = module  # needed by dataclasses
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
        f"race: cannot import the {what}. {_place(error)}"
        f"{type(error).__name__}: {error}"
    )


def _place(error: BaseException) -> str:
    """The innermost line of the user's own code in the traceback."""
    text, place = "", error.__traceback__
    while place is not None:
        file = Path(place.tb_frame.f_code.co_filename)
        if file.is_file() and not _NOT_THEIRS & {*file.parents}:
            text = f"{file}, line {place.tb_lineno}: "
        place = place.tb_next
    return text


def _attribute(module: ModuleType, source: str, attribute: str) -> object:
    value: object = module
    for part in attribute.split("."):
        if not hasattr(value, part):
            near = get_close_matches(part, [x for x in dir(value) if x[0] != "_"])
            meant = f" Did you mean `{near[0]}`?" if near else ""
            problems = [k for k, x in vars(module).items() if isinstance(x, Problem)]
            there = f" Its problems are {', '.join(problems)}." if problems else ""
            raise AttributeError(f"race: {source} has no `{attribute}`.{meant}{there}")
        value = getattr(value, part)
    return value


def _called(f: Callable[..., object], text: str) -> object:
    try:
        return f()
    except Exception as error:
        raise TypeError(
            f"race: {text} is a function, and calling it without arguments fails. "
            f"{_place(error)}{type(error).__name__}: {error}"
        ) from error


def _article(name: str) -> str:
    return f"an {name}" if name[0].lower() in "aeiou" else f"a {name}"
