"""Whether a transformation runs only code of steepest and JAX.

Such code is pure, so it can be compiled once and called many times. A user's schedule,
condition or mask may read an object that changes, or use `if` on a number. Outside
`jit` it must run in every step, with concrete values, as in Optax.
"""

import functools
import re
from collections.abc import Collection, Mapping
from enum import Enum
from types import FunctionType

import jax
import numpy as np

from ...core import Call, call_of

_HOME = __name__.partition(".")[0]
_PURE = {_HOME, "jax", "jaxlib"}
_CLASSES = {*_PURE, "numpy", "ml_dtypes"}
# These wrap our functions to check types. The wrapped function decides.
_CHECKERS = {"jaxtyping", "beartype"}
_DATA = (bool, int, float, complex, str, bytes, type(None), Enum, re.Pattern)
_ARRAYS = (jax.Array, np.ndarray, np.generic, np.dtype, jax.ShapeDtypeStruct)


def only_own_code(call: Call, apart_from: Collection[str] = ()) -> bool:
    """Whether `call` uses only code of steepest and JAX.

    Args:
        call: the call that made a transformation or a schedule.
        apart_from: the names of arguments to ignore.
    """
    others = (x for name, x in call.arguments.items() if name not in apart_from)
    return _is_own(call.function) and all(map(_is_own, others))


def _is_own(x: object) -> bool:
    if isinstance(x, (*_DATA, *_ARRAYS)):
        return True
    call = call_of(x)
    if call is not None:
        return only_own_code(call)
    if isinstance(x, type):
        return _root(x.__module__) in _CLASSES
    if isinstance(x, FunctionType):
        return _is_own_function(x)
    if isinstance(x, functools.partial):
        return all(map(_is_own, (x.func, *x.args, *x.keywords.values())))
    if isinstance(x, Mapping):
        return all(map(_is_own, (*x.keys(), *x.values())))
    if isinstance(x, list | tuple | set | frozenset):
        return all(map(_is_own, x))
    inner = getattr(x, "__wrapped__", None)
    if inner is not None:  # a function under `jax.jit`
        return _root(type(x).__module__) in _PURE and _is_own(inner)
    if _root(type(x).__module__) in _PURE:
        return all(map(_is_own, getattr(x, "__dict__", {}).values()))
    if not callable(x) and not jax.tree_util.all_leaves([x]):
        return all(map(_is_own, jax.tree.leaves(x)))  # a tree of labels or booleans
    return False


def _is_own_function(f: FunctionType) -> bool:
    """Whether a function is ours and of module level, perhaps decorated."""
    # Not `f.__module__`, which `functools.wraps` copies from the wrapped function.
    home, inner = _root(f.__globals__.get("__name__")), getattr(f, "__wrapped__", None)
    if home in _CHECKERS or (home in _PURE and f.__closure__ is not None):
        return inner is not None and _is_own(inner)
    return home in _PURE


def _root(module: object) -> str:
    return str(module).partition(".")[0]
