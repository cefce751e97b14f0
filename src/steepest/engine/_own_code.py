"""Whether a function runs nothing but code of steepest and JAX.

Such code is pure, so it can be compiled once and called many times. A schedule,
condition or mask of the user's may read an object that changes, or use `if` on a
number. Outside `jit` it must run in every step and on concrete values, as in Optax.
"""

import functools
from collections.abc import Mapping
from enum import Enum
from inspect import Signature
from re import Pattern
from types import FunctionType, MethodType
from typing import Any

import jax
import numpy as np
from jaxtyping import Array

from ..core import Recent

_PURE = {__name__.partition(".")[0], "jax", "jaxlib"}
# These wrap functions of ours to check their types: what counts is what they wrap.
_CHECKERS = {"jaxtyping", "beartype"}
_CLASSES = {*_PURE, "numpy", "ml_dtypes", "builtins", "collections"}
_CASTS = (bool, int, float, complex)  # a user's condition may be called `bool`
_DATA = (bool, int, float, complex, str, bytes, type(None), Enum, Pattern, Signature)
_ARRAYS = (Array, np.ndarray, np.generic, np.dtype, jax.ShapeDtypeStruct)


def only_own_code(x: Any) -> bool:
    """Whether no code but that of steepest and JAX can be reached from `x`.

    Args:
        x: a function. What it captures, its defaults, and the attributes of the objects
            among them are followed; what cannot be followed is taken for a user's.
    """
    return _is_own(x, set())


def _is_own(x: Any, seen: set[int]) -> bool:
    if isinstance(x, (*_DATA, *_ARRAYS)) or id(x) in seen:
        return True
    seen.add(id(x))
    parts = _parts(x)
    return parts is not None and all(_is_own(part, seen) for part in parts)


def _parts(x: Any) -> list[Any] | None:
    """What `x` can call or hold; `None` if `x` itself is somebody else's."""
    if isinstance(x, type):
        return [] if x not in _CASTS and _root(x.__module__) in _CLASSES else None
    if isinstance(x, FunctionType):
        # Not `x.__module__`, which `functools.wraps` copies from what is wrapped.
        home = _root(x.__globals__.get("__name__"))
        if home in _CHECKERS:
            return [getattr(x, "__wrapped__", None)]
        return captured(x) if home in _PURE else None
    if isinstance(x, MethodType):
        return [x.__self__, x.__func__]
    if isinstance(x, functools.partial):
        return [x.func, *x.args, *x.keywords.values()]
    if isinstance(x, Mapping):
        return [*x.keys(), *x.values()]
    if isinstance(x, list | tuple | set | frozenset):
        return list(x)
    if hasattr(x, "__wrapped__"):  # a function under `jax.jit`
        return [x.__wrapped__]
    if isinstance(x, Recent):  # made of the rest, and can be made again
        return []
    if _root(type(x).__module__) in _PURE:
        return list(getattr(x, "__dict__", {}).values())
    if not callable(x) and not jax.tree_util.all_leaves([x]):
        return jax.tree.leaves(x)  # a tree of labels or booleans in the user's classes
    return None


def captured(f: FunctionType) -> list[Any]:
    """What a function holds besides its code: variables and defaults."""
    cells = [cell.cell_contents for cell in f.__closure__ or ()]
    return [*cells, *(f.__defaults__ or ()), *(f.__kwdefaults__ or {}).values()]


def _root(module: Any) -> str:
    return str(module).partition(".")[0]
