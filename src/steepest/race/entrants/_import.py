"""Imports the user's own code by name: `module:attribute`."""

import importlib
import importlib.util
import sys
import sysconfig
from collections.abc import Callable
from difflib import get_close_matches
from functools import lru_cache
from pathlib import Path
from types import ModuleType

import steepest

from ._line import brief

_NOT_THEIRS = {Path(sysconfig.get_paths()[kind]) for kind in ("stdlib", "purelib")}
_NOT_THEIRS |= {Path(steepest.__file__).parent}


def imported(text: str, kind: str, fits: Callable[[object], bool]) -> object:
    """Import a module or run a file, and return one of its attributes.

    Modules are also searched for in the current folder.

    Args:
        text: `module:attribute`, or `folder/file.py:attribute`.
        kind: what the attribute should be, used in error messages: `problem`.
        fits: whether an attribute is one; error messages list those that fit.
    """
    source, _, attribute = text.rpartition(":")
    if not source or not all(part.isidentifier() for part in attribute.split(".")):
        raise ValueError(
            f"race: the {kind} is {brief(text)}, expected `module:attribute`: a "
            f"module or file, and the name of {_article(kind)} in it."
        )
    module = _file(source) if source.endswith(".py") else _module(source)
    return _attribute(module, source, attribute, kind, fits)


def described(x: object) -> str:
    """The type of a value with an article, for error messages.

    Args:
        x: any value.

    >>> described(3)
    'an int'
    """
    return _article(type(x).__name__)


def place_of(error: BaseException) -> str:
    """The innermost line of the user's own code in a traceback, with a colon after it.

    Args:
        error: an error that was caught.
    """
    text, place = "", error.__traceback__
    while place is not None:
        file = Path(place.tb_frame.f_code.co_filename)
        if file.is_file() and not _NOT_THEIRS & {*file.parents}:
            text = f"{file}, line {place.tb_lineno}: "
        place = place.tb_next
    return text


def reason_of(error: Exception | SystemExit) -> str:
    """Where the user's own code failed, and why.

    Args:
        error: an error that was caught.
    """
    place = place_of(error)
    if isinstance(error, SystemExit):
        return (
            f"{place}{error!r} ended the program, as argparse does with arguments that "
            "it does not know. Put what is for a script under "
            '`if __name__ == "__main__":`.'
        )
    return f"{place}{type(error).__name__}: {error}"


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
    except (Exception, SystemExit) as error:
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
    _importable(Path.cwd())
    _importable(path.parent)  # as for a script
    about = path.stat()
    return _run(name, path, about.st_mtime_ns, about.st_size)


@lru_cache  # a file may have the problem and optimizers: it runs once until it changes
def _run(name: str, path: Path, mtime: int, size: int) -> ModuleType:
    del mtime, size
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None  # because the name ends in .py
    module = importlib.util.module_from_spec(spec)
    known = sys.modules.get(path.stem)
    sys.modules[path.stem] = module  # needed by dataclasses
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        if known is None:
            del sys.modules[path.stem]
        raise _failed(f"file {name}", error) from error
    finally:
        if known is not None:
            sys.modules[path.stem] = known
    return module


def _failed(what: str, error: Exception | SystemExit) -> ImportError:
    return ImportError(f"race: cannot import the {what}. {reason_of(error)}")


def _attribute(
    module: ModuleType,
    source: str,
    attribute: str,
    kind: str,
    fits: Callable[[object], bool],
) -> object:
    value: object = module
    for part in attribute.split("."):
        if not hasattr(value, part):
            near = get_close_matches(part, [x for x in dir(value) if x[0] != "_"])
            meant = f" Did you mean `{near[0]}`?" if near else ""
            those = [name for name, x in vars(module).items() if fits(x)]
            there = f" Its {kind}s are {', '.join(those)}." if those else ""
            raise AttributeError(f"race: {source} has no `{attribute}`.{meant}{there}")
        value = getattr(value, part)
    return value


def _article(name: str) -> str:
    return f"an {name}" if name[0].lower() in "aeiou" else f"a {name}"
