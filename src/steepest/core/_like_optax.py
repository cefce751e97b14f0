"""Classes whose objects pass `isinstance` checks for Optax's class of the same name.

Other libraries ask `isinstance(tx, optax.GradientTransformation)`. `isinstance` looks
at `type(x)` and then at `x.__class__`. The type of our objects never changes: JAX
compares types when it compares tree structures, so a state made before Optax was
imported still matches one made after. Only `x.__class__` changes: once Optax is
imported, it is a class that inherits from both. That class has no instances; calling it
makes one of ours.
"""

import sys
from typing import Any, TypeVar

from ._recent import Recent

T = TypeVar("T")

# The modules of Optax 0.2.8 that define these classes, most of them in the first two.
# `import optax` loads them all. A module that another version lacks is skipped.
_MODULES = (
    "optax",
    "optax.contrib",
    "optax._src.transform",
    "optax._src.linesearch",
    "optax.schedules._inject",
    "optax.transforms._adding",
    "optax.contrib._complex_valued",
    "optax.experimental._aggregating",
)
_JOINT: Recent[type] = Recent(1024)  # by our class and Optax's


def like_optax(cls: type[T]) -> type[T]:
    """Make `isinstance` hold between a named tuple and Optax's class, both ways.

    The class of Optax is looked up when `isinstance` needs it, so Optax may be imported
    earlier, later or never. steepest does not import it.

    Args:
        cls: a NamedTuple with the name and the fields of Optax's.
    """
    body = {k: x for k, x in vars(cls).items() if k not in ("__dict__", "__weakref__")}
    # A class whose instances have no `__dict__` can be a base together with any other.
    body |= {"__slots__": (), "__class__": property(_class_of), "__reduce__": _reduce}
    return _LikeOptax(cls.__name__, cls.__bases__, body)  # pyright: ignore


class _LikeOptax(type):
    """The metaclass: objects of Optax's class are instances of ours."""

    def __instancecheck__(cls, instance: object) -> bool:
        if type.__instancecheck__(cls, instance):
            return True
        theirs = _theirs(cls)
        return theirs is not None and isinstance(instance, theirs)


def _class_of(x: object) -> type:
    """The value of `x.__class__`: its type, or that joined with Optax's class."""
    ours = type(x)
    for cls in ours.__mro__:
        theirs = _theirs(cls)
        if theirs is not None:
            return _joint(ours, cls, theirs)
    return ours


def _reduce(x: tuple[object, ...]) -> tuple[type, tuple[object, ...]]:
    """For pickle, whose default way requires that `x.__class__` is `type(x)`."""
    return type(x), tuple(x)


def _theirs(cls: type) -> type | None:
    """Optax's class for one of ours, if it is loaded and has the same fields."""
    if "optax" not in sys.modules or type(cls) is not _LikeOptax:
        return None
    if "__class__" not in cls.__dict__:
        return None  # a user's subclass, which may have a name that Optax uses
    for module in _MODULES:
        # `__dict__`, since reading a deprecated attribute would warn.
        names = getattr(sys.modules.get(module), "__dict__", {})
        theirs = names.get(cls.__name__)
        if theirs is cls:
            return None  # steepest stands in for Optax
        if getattr(theirs, "_fields", None) == cls._fields:  # pyright: ignore
            return theirs
    return None


def _joint(ours: Any, cls: type, theirs: type) -> type:
    """A class that inherits from both. Only `isinstance` uses it.

    Args:
        ours: the type of an object.
        cls: `ours`, or the base of it that Optax has too.
        theirs: Optax's class.
    """

    def make() -> type:
        body = {
            "__slots__": (),
            "__module__": ours.__module__,
            "__qualname__": ours.__qualname__,
            "__doc__": ours.__doc__,
            "__new__": lambda cls, *args, **kwargs: ours(*args, **kwargs),
            "_make": ours._make,
        }
        try:
            return type(ours)(ours.__name__, (ours, theirs), body)
        except TypeError:  # two bases whose instances both have a `__dict__` conflict
            return type(ours)(ours.__name__, (cls, theirs), body)

    return _JOINT((ours, theirs), make)
