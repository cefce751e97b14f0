"""Functions apart from the arrays they capture.

A formula may capture a number that is an array: `sgd(jnp.array(0.1))`, or any number
under `inject_hyperparams`. Compiled as it is, it would be compiled again for every such
array. Here the arrays are taken out and become arguments. What is left, the template,
is equal for all functions of the same code over the same Python numbers.
"""

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache, partial
from types import CellType, FunctionType
from typing import Any

import jax

from ..core import Known
from ._own_code import captured


@dataclass(frozen=True)
class Template:
    """A function, or something it captures, without its arrays."""

    key: Hashable  # templates of the same key and parts are equal
    make: Callable[..., Any] = field(compare=False)  # (arrays, *parts) -> the function
    parts: tuple["Template", ...] = ()  # what it captures
    loops: bool = field(default=False, compare=False)  # whether it captures itself

    def with_arrays(self, arrays: Iterator[Any]) -> Any:
        """The function with these arrays, in the order `take_apart` has found them."""
        return self.make(arrays, *(part.with_arrays(arrays) for part in self.parts))


def take_apart(x: Any, arrays: list[Any], inside: tuple[Any, ...] = ()) -> Template:
    """The template of `x`. Its arrays are appended to `arrays`.

    Args:
        x: a function, or something it captures.
        arrays: the list to append to.
        inside: the functions that `x` was found in.
    """
    same = lambda arrays, *parts: x
    if isinstance(x, jax.Array):
        arrays.append(x)
        return Template("array", lambda arrays: next(arrays))
    if isinstance(x, Known):
        arrays += [x.now, x.same]
        return Template(("known", repr(x.was)), partial(_known, x.was))
    if any(x is f for f in inside):
        return Template(_Itself(x), same, loops=True)
    if isinstance(x, FunctionType):
        before = len(arrays)
        parts = tuple(take_apart(part, arrays, (*inside, x)) for part in captured(x))
        make = same if len(arrays) == before else _maker(x)
        loops = any(part.loops for part in parts)
        return Template(_Itself(x.__code__), make, parts, loops)
    if isinstance(x, bool | int | float | str | None):
        return Template((type(x), repr(x)), same)  # repr tells -0.0 from 0.0
    return Template(_Itself(x), same)


def shared(build: Callable[..., Any], layout: Hashable, *functions: Any) -> Any:
    """`build(layout, *functions)`, compiled, or what was compiled for equal ones.

    Args:
        build: a function of module level that makes the function to compile.
        layout: what it needs to know besides, the same for equal results.
        functions: what it makes it of.
    """
    arrays: list[Any] = []
    templates = tuple(take_apart(f, arrays) for f in functions)
    if arrays and any(template.loops for template in templates):
        return jax.jit(build(layout, *functions))
    return partial(_compiled(build, layout, templates), arrays)


# A compiled formula of two small leaves takes about 3.5 MB, so 128 of them take 450.
@lru_cache(maxsize=128)
def _compiled(
    build: Callable[..., Any], layout: Hashable, templates: tuple[Template, ...]
) -> Callable[..., Any]:
    """Made once for equal arguments; of more than `maxsize` the oldest is dropped."""

    def run(arrays: list[Any], *args: Any) -> Any:
        rest = iter(arrays)
        functions = [template.with_arrays(rest) for template in templates]
        return build(layout, *functions)(*args)

    return jax.jit(run)


def _known(was: Any, arrays: Iterator[Any]) -> Known:
    return Known(was, next(arrays), next(arrays))


def _maker(f: FunctionType) -> Callable[..., FunctionType]:
    """A maker of functions with the code of `f`, without what `f` captures."""
    code, scope, name = f.__code__, f.__globals__, f.__name__
    cells, defaults = len(f.__closure__ or ()), len(f.__defaults__ or ())
    keywords = tuple(f.__kwdefaults__ or ())

    def make(arrays: Iterator[Any], *parts: Any) -> FunctionType:
        del arrays
        closure = tuple(map(CellType, parts[:cells]))
        rest = parts[cells:]
        made = FunctionType(code, scope, name, rest[:defaults], closure)
        made.__kwdefaults__ = dict(zip(keywords, rest[defaults:], strict=True))
        return made

    return make


class _Itself:
    """A thing, equal to itself alone, which it keeps alive."""

    def __init__(self, thing: Any):
        self.thing = thing

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Itself) and self.thing is other.thing

    def __hash__(self) -> int:
        return id(self.thing)
