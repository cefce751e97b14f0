"""Names that Optax has deprecated but still provides."""

import sys
import warnings
from collections.abc import Callable, Mapping
from typing import Any


def deprecated(
    module: str, names: Mapping[str, tuple[object, str]]
) -> Callable[[str], Any]:
    """The `__getattr__` of a file that a `lazy` module asks for deprecated names.

    Args:
        module: the `__name__` of the lazy module.
        names: by old name, what it stands for, and how to write that instead.
    """

    def __getattr__(name: str) -> Any:
        """The replacement of the deprecated `name`."""
        if name not in names:
            raise no_attribute(module, name)
        value, instead = names[name]
        warnings.warn(
            f"{module}.{name} is deprecated. Use {instead}.",
            DeprecationWarning,
            stacklevel=3,  # the frames of this function and of the lazy module
        )
        return value

    return __getattr__


def no_attribute(module: str, name: str) -> AttributeError:
    """The error for a name that a module does not have.

    Args:
        module: its `__name__`.
        name: the name.
    """
    # With these two attributes, Python suggests a similar name.
    where = {"name": name, "obj": sys.modules.get(module)}
    return AttributeError(f"module {module!r} has no attribute {name!r}", **where)
