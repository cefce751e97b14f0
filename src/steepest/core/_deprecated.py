"""Names that Optax has deprecated but still provides."""

import sys
import warnings
from collections.abc import Callable, Mapping
from typing import Any


def deprecated(
    module: str, names: Mapping[str, tuple[object, str]]
) -> Callable[[str], Any]:
    """A module's `__getattr__` that finds deprecated names and warns.

    Args:
        module: the module's `__name__`.
        names: by old name, what it stands for, and how to write that instead.
    """

    def __getattr__(name: str) -> Any:
        """The replacement of the deprecated `name`."""
        if name not in names:
            # With these two attributes, Python suggests a similar name.
            where = {"name": name, "obj": sys.modules.get(module)}
            raise AttributeError(
                f"module {module!r} has no attribute {name!r}", **where
            )
        value, instead = names[name]
        warnings.warn(
            f"{module}.{name} is deprecated. Use {instead}.",
            DeprecationWarning,
            stacklevel=2,
        )
        return value

    return __getattr__
