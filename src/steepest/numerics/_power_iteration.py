"""Power iteration: the largest eigenvalue, and its direction.

von Mises and Pollaczek-Geiringer, Praktische Verfahren der Gleichungsauflosung, 1929
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, PyTree

from .. import check
from ._half import at_least_float32, promoted
from ._products import inner, quotient

_WHO = "power_iteration"


def power_iteration(
    matrix: Any,
    *,
    v0: PyTree = None,
    num_iters: Any = 100,
    error_tolerance: Any = 1e-6,
    precision: jax.lax.Precision = jax.lax.Precision.HIGHEST,
    key: Any = None,
) -> tuple[Array, PyTree]:
    """The eigenvalue of largest modulus of a symmetric matrix, and its eigenvector.

        v <- A v / |A v|        s = <v, A v>        until |A v / s - v| <= tolerance

    Args:
        matrix: `A`, a square matrix; or a function `v -> A v` of a tree of arrays.
        v0: where to begin, for a function it is needed; by default random.
        num_iters: how many steps at most.
        error_tolerance: the error of the eigenvector at which it stops.
        precision: of the products, on devices that have a choice.
        key: for the random beginning; by default `jax.random.key(0)`.

    Returns:
        The eigenvalue, and its eigenvector, of length 1. Where `A v` is 0, they are 0
        and `v`.

    >>> value, vector = power_iteration(jnp.diag(jnp.array([1.0, 3.0])))
    >>> round(float(value), 4)
    3.0
    """
    check.whole(_WHO, num_iters=num_iters)
    check.real(_WHO, error_tolerance=error_tolerance)
    if key is not None:
        check.key(_WHO, key=key)
    if callable(matrix):
        if v0 is None:
            raise ValueError(
                "power_iteration: matrix is a function and v0 is missing, from which "
                "it would begin. Pass `v0`, a tree like the argument of the function."
            )
        for path, x in jax.tree_util.tree_leaves_with_path(v0):
            if not check.is_number(x):
                where = jax.tree_util.keystr(path) or "(the tree itself)"
                raise check.WrongArgument(
                    f"{_WHO}: leaf {where} of v0 {check.said_of(x)}, expected an array."
                )
        start = jax.tree.map(lambda x: jnp.asarray(x, promoted(x, 1.0)), v0)
        return _iterate(matrix, start, start, num_iters, error_tolerance)
    (matrix,) = check.array(_WHO, matrix=matrix)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ValueError(
            f"power_iteration: matrix has shape {matrix.shape}, expected a square "
            "matrix. Map over more of them with `jax.vmap`."
        )
    if v0 is None:
        if not jnp.issubdtype(matrix.dtype, jnp.inexact):
            raise ValueError(
                f"{_WHO}: matrix has dtype {matrix.dtype}, expected real numbers. "
                "Convert it with `.astype(float)`, or pass `v0`."
            )
        key = jax.random.key(0) if key is None else key
        v0 = jax.random.uniform(key, matrix.shape[-1:], matrix.dtype, -1, 1)
    (v0,) = check.array(_WHO, v0=v0)
    if v0.shape != matrix.shape[1:]:
        raise check.WrongArgument(
            f"{_WHO}: v0 has shape {v0.shape} and matrix {matrix.shape}, expected "
            f"shape {matrix.shape[1:]}."
        )
    like = jnp.zeros_like(v0, dtype=promoted(matrix, v0, 1.0))
    wide = at_least_float32(like).dtype
    a = matrix.astype(wide)
    times = lambda v: jnp.matmul(a, v, precision=precision)
    return _iterate(times, v0.astype(wide), like, num_iters, error_tolerance)


def _check_like(v: PyTree, found: PyTree) -> None:
    """That a function gives back what it takes."""
    shapes = lambda tree: [jnp.shape(x) for x in jax.tree.leaves(tree)]
    same = jax.tree.structure(v) == jax.tree.structure(found)
    if not same or shapes(v) != shapes(found):
        raise check.WrongArgument(
            f"{_WHO}: of v0, {jax.tree.structure(v)} with the shapes {shapes(v)}, the "
            f"function makes {jax.tree.structure(found)} with the shapes "
            f"{shapes(found)}, expected a tree like v0."
        )


def _iterate(
    times: Callable[[PyTree], PyTree],
    v0: PyTree,
    like: PyTree,
    num_iters: Any,
    tolerance: Any,
) -> tuple[Array, PyTree]:
    """The eigenvalue and its vector, each in the dtype of `like`."""
    leaves = jax.tree.leaves

    def dot(x: PyTree, y: PyTree) -> Array:
        wide = lambda tree: map(at_least_float32, leaves(tree))
        parts = [inner(a, b) for a, b in zip(wide(x), wide(y), strict=True)]
        dtype = promoted(*parts) if parts else float
        return sum((part.astype(dtype) for part in parts), jnp.zeros((), dtype))

    def unit(x: PyTree, else_: PyTree) -> PyTree:
        """`x / |x|`, and where `x` is 0 the other."""
        # Divided by the largest element first: its square may be too large or small.
        tops = [jnp.max(jnp.abs(a), initial=0) for a in leaves(x)]
        top = jnp.max(jnp.stack([t.astype(promoted(*tops)) for t in tops]))
        scaled = jax.tree.map(lambda a: quotient(a, top.astype(a.real.dtype)), x)
        size = jnp.sqrt(dot(scaled, scaled))
        return jax.tree.map(
            lambda a, b: jnp.where(
                top == 0, b, quotient(a, size.astype(a.real.dtype)).astype(b.dtype)
            ),
            scaled,
            else_,
        )

    def step(state: Any) -> Any:
        i, v, z, *_ = state
        v = unit(z, v)
        z = jax.tree.map(lambda a, b: a.astype(b.dtype), times(v), v)
        s = dot(v, z)
        off = jax.tree.map(lambda a, b: quotient(a, s.astype(a.real.dtype)) - b, z, v)
        return i + 1, v, z, s, jnp.sqrt(dot(off, off)) <= tolerance

    def going(state: Any) -> Array:
        i, *_, done = state
        return (i < num_iters) & ~done

    if sum(a.size for a in leaves(v0)) == 0:
        return jnp.zeros((), promoted(*leaves(like), 0.0)), v0
    v0 = unit(v0, v0)
    z0 = times(v0)
    _check_like(v0, z0)
    z0 = jax.tree.map(lambda a, b: a.astype(b.dtype), z0, v0)
    s0 = jnp.zeros_like(dot(v0, v0))
    start = (jnp.zeros((), jnp.int32), v0, z0, s0, jnp.asarray(False))
    _, v, z, s, _ = jax.lax.while_loop(going, step, start)
    vector = jax.tree.map(lambda a, b: a.astype(b.dtype), unit(z, v), like)
    return s.astype(promoted(*(a.real for a in leaves(like)))), vector
