"""Classes that count as Optax's class of the same name, in a program that has both.

Libraries ask `isinstance(tx, optax.GradientTransformation)`. `isinstance` looks at
`type(x)`, and then at `x.__class__`. The type of our objects never changes: JAX
compares types when it compares tree structures, so a state made before Optax was
imported still fits one made after. Only `x.__class__` answers, once Optax is imported,
with a class that inherits from both. That class has no instances: called, it makes one
of ours.
"""

import sys
from collections.abc import Callable
from typing import Any, TypeVar

from ._recent import Recent

T = TypeVar("T")

# Where Optax 0.2.8 keeps its classes: most in the first two. Importing `optax` loads
# them all, and a module that another version does not have is passed over.
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
    """A named tuple whose instances count as instances of Optax's class, and back.

    It asks which modules are loaded whenever `isinstance` does not find the class at
    once, so Optax may be imported before, after, or never; steepest does not import it.

    Args:
        cls: a NamedTuple with the name and the fields of Optax's.
    """
    body = {k: x for k, x in vars(cls).items() if k not in ("__dict__", "__weakref__")}
    # A class whose instances have no `__dict__` can stand beside any other as a base.
    body |= {"__slots__": (), "__class__": property(_class_of), "__reduce__": _reduce}
    return _LikeOptax(cls.__name__, cls.__bases__, body)  # pyright: ignore


class _LikeOptax(type):
    """The class of such classes: an instance of Optax's is an instance of ours."""

    def __instancecheck__(cls, instance: Any) -> bool:
        if type.__instancecheck__(cls, instance):
            return True
        theirs = _theirs(cls)
        return theirs is not None and isinstance(instance, theirs)


def _class_of(x: Any) -> type:
    """What `x.__class__` is: its type, joined with Optax's where there is one."""
    ours = type(x)
    for cls in ours.__mro__:
        theirs = _theirs(cls)
        if theirs is not None:
            return _joint(ours, cls, theirs)
    return ours


def _reduce(x: Any) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """How to pickle: the usual way insists that `x.__class__` is `type(x)`."""
    return type(x), tuple(x)


def _theirs(cls: type) -> type | None:
    """Optax's class for one of ours, if it is loaded and has the same fields."""
    if "optax" not in sys.modules or type(cls) is not _LikeOptax:
        return None
    if "__class__" not in cls.__dict__:
        return None  # somebody's subclass, perhaps of a name that Optax has too
    for module in _MODULES:
        # Its dictionary: an attribute could be deprecated, and warn.
        names = getattr(sys.modules.get(module), "__dict__", {})
        found = names.get(cls.__name__)
        if found is cls:
            return None  # steepest stands in for Optax
        if getattr(found, "_fields", None) == cls._fields:  # pyright: ignore
            return found
    return None


def _joint(ours: Any, cls: type, theirs: type) -> type:
    """A class that inherits from both, for `isinstance` alone.

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
        except TypeError:  # two bases whose instances have a `__dict__` do not fit
            return type(ours)(ours.__name__, (cls, theirs), body)

    return _JOINT((ours, theirs), make)
