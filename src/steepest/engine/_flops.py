"""The number of floating-point operations of a traced program, without running it.

A product of matrices of m x k and k x n counts as 2 m n k, an elementwise operation as
the number of elements, and moving or converting data as nothing.
"""

from collections.abc import Callable, Iterator
from math import prod
from typing import Any

from jax.extend.core import JaxprEqn

# Operations that move or convert data.
_FREE = {
    *("broadcast_in_dim", "concatenate", "convert_element_type", "copy", "copy_p"),
    *("dynamic_slice", "dynamic_update_slice", "expand_dims", "gather", "iota"),
    *("optimization_barrier", "pad", "pvary", "real", "imag", "complex", "reshape"),
    *("rev", "select_n", "slice", "split", "squeeze", "stop_gradient", "transpose"),
}
# Decompositions of square matrices of side n: multiples of n^3.
_CUBIC = {"cholesky": 1 / 3, "lu": 2 / 3, "geqrf": 4 / 3, "eigh": 9.0, "svd": 20.0}


def flops_of(jaxpr: Any) -> float:
    """The number of floating-point operations of a program.

    Of the branches of `cond` and `switch`, the most expensive one counts. The body of a
    `while` counts once.

    Args:
        jaxpr: the result of `jax.make_jaxpr(f)(*arguments)`, or a part of it.
    """
    return float(sum(map(_of_equation, jaxpr.eqns)))


def _of_equation(equation: JaxprEqn) -> int | float:
    name = equation.primitive.name
    if name in _FREE:
        return 0
    if name == "cond":
        return max(map(flops_of, equation.params["branches"]))
    inner = list(_programs(equation))
    if inner:
        times = equation.params["length"] if name == "scan" else 1
        return times * sum(map(flops_of, inner))
    if name.startswith(("reduce_", "argm", "cum", "sort")):
        return _size(equation.invars[0])
    of = _MATRICES.get(name)
    if of is not None:
        return of(equation)
    return max(map(_size, equation.outvars), default=0)


def _programs(equation: JaxprEqn) -> Iterator[Any]:
    """The programs that an equation calls."""
    # What a custom rule for derivatives would call instead is a function, not a jaxpr.
    for x in equation.params.values():
        for one in x if isinstance(x, tuple) else (x,):
            if hasattr(one, "eqns"):
                yield one


def _product(equation: JaxprEqn) -> int | float:
    (summed, _), _ = equation.params["dimension_numbers"]
    shape = _shape(equation.invars[0])
    return 2 * _size(equation.outvars[0]) * prod(shape[axis] for axis in summed)


def _solve(equation: JaxprEqn) -> int | float:
    """One triangle of n x n for each of m columns: n^2 m."""
    a, b = equation.invars
    return _shape(a)[-1] * _size(b)


def _cubic(equation: JaxprEqn) -> int | float:
    """`9 n^3` and so on; `m n^2` in place of `n^3` if the matrices are longer."""
    *stack, m, n = _shape(equation.invars[0])
    return _CUBIC[equation.primitive.name] * prod(stack) * max(m, n) * min(m, n) ** 2


_MATRICES: dict[str, Callable[[JaxprEqn], int | float]] = {
    "dot_general": _product,
    "triangular_solve": _solve,
    **dict.fromkeys(_CUBIC, _cubic),
}


def _size(x: Any) -> int:
    return prod(_shape(x))


def _shape(x: Any) -> tuple[int, ...]:
    return x.aval.shape
