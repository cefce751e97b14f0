"""Expressions as data: a name and its arguments, which may be expressions.

An expression can be built with either library, and prints as code that creates it.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

# "user.name" -> a function of the library and the arguments: see `_user.py`.
USER: dict[str, Callable[..., Any]] = {}


@dataclass(frozen=True, eq=False, init=False)
class Call:
    """`name(*args, **kwargs)`, of Optax, of steepest, or of `_user.py`."""

    name: str
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]

    def __init__(self, name: str, /, *args: Any, **kwargs: Any):
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "args", args)
        object.__setattr__(self, "kwargs", kwargs)

    def __repr__(self) -> str:
        parts = [repr(self.name), *map(repr, self.args)]
        parts += [f"{name}={x!r}" for name, x in self.kwargs.items()]
        return f"Call({', '.join(parts)})"


@dataclass(frozen=True)
class Name:
    """A function that is passed and not called, such as `skip_not_finite`."""

    name: str

    def __repr__(self) -> str:
        return f"Name({self.name!r})"


def build(m: Any, x: Any) -> Any:
    """The value of `x` with library `m`."""
    if isinstance(x, Name):
        return _found(m, x.name)
    if isinstance(x, Call):
        args = [build(m, part) for part in x.args]
        kwargs = {name: build(m, part) for name, part in x.kwargs.items()}
        return _found(m, x.name)(*args, **kwargs)
    if isinstance(x, tuple | list):
        return type(x)(build(m, part) for part in x)
    if isinstance(x, dict):
        return {name: build(m, part) for name, part in x.items()}
    return x


def _found(m: Any, name: str) -> Any:
    if name in USER:
        return USER[name](m)
    for part in name.split("."):
        m = getattr(m, part)
    return m


def names(x: Any) -> Iterator[str]:
    """All names in an expression."""
    if isinstance(x, Call | Name):
        yield x.name
    for _, part in parts(x):
        yield from names(part)


def parts(x: Any) -> Iterator[tuple[Any, Any]]:
    """The direct parts of `x`, with their positions."""
    if isinstance(x, Call):
        yield from enumerate(x.args)
        yield from x.kwargs.items()
    elif isinstance(x, tuple | list):
        yield from enumerate(x)
    elif isinstance(x, dict):
        yield from x.items()


def smaller(x: Any) -> Iterator[Any]:
    """Simpler expressions of the same kind, simplest first."""
    if not isinstance(x, Call):
        return
    yield from (part for part in _calls(x) if _is_schedule(part) == _is_schedule(x))
    if _is_schedule(x):
        yield 0.1
        return
    for name in x.kwargs:
        rest = {k: v for k, v in x.kwargs.items() if k != name}
        yield Call(x.name, *x.args, **rest)
    if x.name in ("chain", "named_chain") and len(x.args) > 1:
        for k in range(len(x.args)):
            yield Call(x.name, *x.args[:k], *x.args[k + 1 :])
    yield from _inside(x)


def _inside(x: Any) -> Iterator[Any]:
    """The same expression with one part simplified."""
    for place, part in parts(x):
        found = smaller(part) if isinstance(part, Call) else _inside(part)
        for less in found:
            if isinstance(x, Call) and isinstance(place, int):
                yield Call(
                    x.name, *x.args[:place], less, *x.args[place + 1 :], **x.kwargs
                )
            elif isinstance(x, Call):
                yield Call(x.name, *x.args, **{**x.kwargs, place: less})
            elif isinstance(x, dict):
                yield {**x, place: less}
            else:
                yield type(x)([*x[:place], less, *x[place + 1 :]])


def _calls(x: Any) -> Iterator[Call]:
    """The calls directly below `x`, including those in lists and dicts."""
    for _, part in parts(x):
        if isinstance(part, Call):
            yield part
        else:
            yield from _calls(part)


def _is_schedule(x: Call) -> bool:
    return "schedule" in x.name or x.name == "exponential_decay"
