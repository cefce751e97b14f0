"""steepest under the name `optax`, for programs that cannot be edited."""

import importlib
import sys
from collections.abc import Callable
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

# steepest has all public names of this version of Optax.
_VERSION = "0.2.8"
_SUBMODULES = (
    "assignment",
    "contrib",
    "experimental",
    "experimental.aggregating",
    "losses",
    "microbatching",
    "perturbations",
    "projections",
    "schedules",
    "second_order",
    "transforms",
    "tree",
    "tree_utils",
)


class _StandIn(ModuleType):
    """A module `optax` with the names of steepest."""

    def __init__(self, steepest: ModuleType) -> None:
        super().__init__("optax", f"steepest {steepest.__version__}, as optax.")
        self.__version__ = _VERSION
        self.__path__ = []  # a package: all its submodules are in `sys.modules`
        self.__spec__ = ModuleSpec("optax", None, is_package=True)
        self.__file__ = steepest.__file__
        self.__all__ = [name for name in dir(steepest) if name[0] != "_"]
        self._steepest = steepest

    def __getattr__(self, name: str) -> Any:
        return getattr(self._steepest, name)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self.__all__]


def install_as_optax() -> Callable[[], None]:
    """Make `import optax` import steepest, here and in all libraries imported later.

    Call it first, before anything imports Optax:

        import steepest
        steepest.install_as_optax()
        import flax.nnx             # imports steepest where it imports optax

    `optax` and its public submodules are then those of steepest. For libraries that
    check the version, `optax.__version__` is "0.2.8", whose public names steepest has.
    There is no `optax._src`: a library that imports from there needs Optax itself.
    Without this function, both libraries work side by side, and `isinstance` holds
    between them.

    Returns:
        A function that undoes it: the next `import optax` finds Optax again.
    """
    steepest = importlib.import_module(__name__.partition(".")[0])
    optax = sys.modules.get("optax")
    if optax is not None and not isinstance(optax, _StandIn):
        version = getattr(optax, "__version__", "")
        raise RuntimeError(
            f"install_as_optax: Optax {version} is already imported, and modules that "
            "imported it would keep it. Call `install_as_optax` first, before "
            "importing libraries that use Optax."
        )
    names: dict[str, ModuleType] = {"optax": optax or _StandIn(steepest)}
    for name in _SUBMODULES:
        names[f"optax.{name}"] = importlib.import_module(f"{steepest.__name__}.{name}")
    sys.modules.update(names)

    def undo() -> None:
        for name, module in names.items():
            if sys.modules.get(name) is module:
                del sys.modules[name]

    return undo
