"""Modules that import what they re-export on first use (PEP 562).

`import steepest` then costs nothing until a name is used, and `steepest --help` works
without JAX. A door, a module of re-exports, is written so:

    import typing as _typing

    from .core import lazy as _lazy

    if _typing.TYPE_CHECKING or not _lazy(globals()):
        from .optimizers import adam as adam, adamw as adamw

Type checkers and editors read these imports as usual. At run time `lazy` reads them
from the source as a table, so every name is listed once. `from .room import *` stands
for all names of another lazy door.

A name may first be used while JAX traces a function. No module may therefore compute an
array when it is imported: the array would belong to that trace. A test imports all
modules without a backend.
"""

import ast
import importlib
import sys
from importlib.util import resolve_name
from types import ModuleType
from typing import Any, NamedTuple

from ._deprecated import no_attribute


class Place(NamedTuple):
    """Where a re-exported object is defined."""

    module: str
    name: str | None  # `None` for the module itself


def lazy(
    door: dict[str, Any],
    deprecated: str | None = None,
    first: str | None = None,
    call: str | None = None,
) -> bool:
    """Make a module import its names on first use; they are then ordinary attributes.

    Returns whether it succeeded. It does not without source code, as in some bundled
    programs; then the door runs its imports.

    Args:
        door: the `globals()` of the module. The names are those imported in the block
            `if ... _lazy(...):` in its source.
        deprecated: a module whose `__getattr__` knows further names, and warns.
        first: a module to import before any other.
        call: a function of the module that runs when the module itself is called.
    """
    title = door["__name__"]
    if call is not None:
        sys.modules[title].__class__ = _callable_module(call)
    places = _places(door)

    def __getattr__(name: str) -> Any:
        """Import and keep a name of this module."""
        if name in places:
            place = places[name]
            if first is not None:
                importlib.import_module(first)
            value = importlib.import_module(place.module)
            if place.name is not None:
                value = getattr(value, place.name)
            # Two threads may both get here; both then store the same object.
            door[name] = value
            return value
        if deprecated is not None and not name.startswith("_"):
            return importlib.import_module(deprecated).__getattr__(name)
        raise no_attribute(title, name)

    def __dir__() -> list[str]:
        """All names, whether imported already or not."""
        return sorted({*door, *places})

    door["__getattr__"] = __getattr__
    if not places:
        return False
    door["__dir__"] = __dir__
    door["__all__"] = sorted(places)  # for `from steepest import *`
    return True


def _callable_module(function: str) -> type[ModuleType]:
    """The class of a module that can be called: `steepest.race(problem)`.

    `import steepest.race` sets `steepest.race` to the module, so a function of the same
    name could not be reached there.
    """

    class CallableModule(ModuleType):
        def __call__(self, *args: Any, **kwargs: Any) -> Any:
            return getattr(self, function)(*args, **kwargs)

        def __reduce__(self) -> tuple[Any, ...]:
            return importlib.import_module, (self.__name__,)

    return CallableModule


def _places(door: dict[str, Any]) -> dict[str, Place]:
    """Where each name of a door is defined; empty if the source is not available."""
    try:
        source = door["__loader__"].get_source(door["__name__"])
    except (AttributeError, ImportError, OSError):
        source = None
    blocks = [x for x in ast.parse(source or "").body if isinstance(x, ast.If)]
    lines = [x for block in blocks if _is_lazy(block.test) for x in block.body]
    places: dict[str, Place] = {}
    for line in lines:
        assert isinstance(line, ast.ImportFrom), "expected only imports"
        relative = "." * line.level + (line.module or "")
        module = resolve_name(relative, door["__package__"])
        names = line.names
        if names[0].name == "*":
            all_names = importlib.import_module(module).__all__
            names = [ast.alias(name) for name in all_names]
        for x in names:
            place = (module, x.name) if line.module else (f"{module}.{x.name}", None)
            places[x.asname or x.name] = Place(*place)
    return places


def _is_lazy(test: ast.expr) -> bool:
    """Whether the condition of a block contains a call of `_lazy`."""
    return any(isinstance(x, ast.Name) and x.id == "_lazy" for x in ast.walk(test))
