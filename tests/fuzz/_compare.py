"""Whether two runs are equal, up to the rounding of their dtypes."""

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from ._differences import expected, is_expected, Known
from ._problems import Problem
from ._run import ours, Refused, Row, theirs, theirs_at_once

# Tolerances, relative to the largest number of the array.
ROUNDING = {"float64": 1e-6, "float32": 1e-4, "float16": 2e-2, "bfloat16": 8e-2}


def difference(expression: Any, problem: Problem) -> str | None:
    """The difference between the two libraries; `None` if there is none.

    A difference in float32 counts only if it also occurs in float64, where rounding
    does not explain it. For half precision the reference is Optax in float32.

    Raises:
        Refused: if Optax raises an error, so that there is nothing to compare.
    """
    want = theirs_at_once(expression, problem)
    known = expected(expression, problem)
    if any(one.path is None for one in known):
        return None
    half = problem.is_half
    try:
        found = ours(expression, problem, "" if half else "float32")
    except Refused as refused:
        theirs(expression, problem)  # not a difference if Optax raises an error too
        return f"steepest raises {refused}"
    tolerance = ROUNDING[problem.dtype if half else "float32"]
    what = first_difference(found, want, tolerance, known, types=not half)
    if what is None:
        return None
    if half:
        theirs(expression, problem)
        return what
    found, want = (run(expression, problem, "float64") for run in (ours, theirs))
    return first_difference(found, want, ROUNDING["float64"], known, types=False)


def first_difference(
    found: list[Row],
    want: list[Row],
    tolerance: float,
    known: Sequence[Known] = (),
    *,
    types: bool = True,
) -> str | None:
    """The first step and path where two runs differ.

    Args:
        found, want: results of steepest and of Optax.
        tolerance: relative to the largest number of the array.
        known: intended differences.
        types: whether dtypes and classes must be equal too.
    """
    largest: dict[str, float] = {}
    for t, (here, there) in enumerate(zip(found, want, strict=True)):
        if here.keys() != there.keys():
            odd = sorted(here.keys() ^ there.keys())
            return f"step {t}: only one has {', '.join(odd)}"
        if types and str(here["classes"]) != str(there["classes"]):
            return f"step {t}: {here['classes']}, in Optax {there['classes']}"
        pairs = [(path, here[path], there[path]) for path in here if path != "classes"]
        for path, x, y in pairs:
            if x.shape != y.shape and not is_expected(known, path):
                return f"step {t}, {path}: shape {x.shape}, in Optax {y.shape}"
            if types and not _same_type(x.dtype, y.dtype):
                return f"step {t}, {path}: {x.dtype}, in Optax {y.dtype}"
        if any(_is_better(x, y) for _, x, y in pairs):
            return None  # we are finite and Optax is not: they differ from here on
        for path, x, y in pairs:
            if is_expected(known, path):
                continue
            # Half precision is stored between steps, so rounding errors remain.
            before = 0.0 if types else largest.get(path, 0.0)
            largest[path] = max(before, _largest(y))
            least = 1e-12 if types else tolerance * 1e-2  # digits lost near 1
            if not _is_same(x, y, tolerance * largest[path] + least):
                return f"step {t}, {path}: {_short(x)}, in Optax {_short(y)}"
    return None


def _same_type(x: np.dtype, y: np.dtype) -> bool:
    """The same dtype; nonnegative numbers may be real where Optax's are complex."""
    return x == y or (y.kind == "c" and x.kind == "f" and 2 * x.itemsize == y.itemsize)


def _is_better(x: np.ndarray, y: np.ndarray) -> bool:
    return bool(
        np.any(_finite(x) & ~_finite(y)) and not np.any(~_finite(x) & _finite(y))
    )


def _is_same(x: np.ndarray, y: np.ndarray, tolerance: float) -> bool:
    if not any(jnp.issubdtype(z.dtype, jnp.inexact) for z in (x, y)):
        return np.array_equal(x, y)
    good = _finite(y)
    if np.any(_finite(x) != good):
        return False
    a, b = (z[good].astype(complex if z.dtype.kind == "c" else float) for z in (x, y))
    if x.dtype == np.float16:  # it has no larger numbers
        b = np.clip(b, -65504, 65504)
    return bool(np.all(np.abs(a - b) <= tolerance))


def _largest(x: np.ndarray) -> float:
    if not jnp.issubdtype(x.dtype, jnp.inexact):
        return 0.0
    return float(np.max(np.abs(x[_finite(x)]), initial=0.0))


def _finite(x: np.ndarray) -> np.ndarray:
    return (
        np.isfinite(x)
        if jnp.issubdtype(x.dtype, jnp.inexact)
        else np.full(x.shape, True)
    )


def _short(x: np.ndarray) -> str:
    return np.array2string(x, precision=6, threshold=6).replace("\n", "")
