"""Division by a number as a product with its inverse, in kernels.

XLA divides an array by a number in this way. A kernel of Triton would divide each
element, which takes three operations more, and the results would differ in the last
digit (JAX 0.10.2).
"""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend.core import ClosedJaxpr, Literal
from jax.typing import ArrayLike
from jaxtyping import Array, PyTree

from ..core import evaluated

# The primitives that call a program, and the name of it. A kernel has no derivative.
_CALLS = {
    "jit": "jaxpr",
    "pjit": "jaxpr",
    "custom_jvp_call": "call_jaxpr",
    "custom_vjp_call": "call_jaxpr",
}


def with_inverses(function: Callable[..., PyTree]) -> Callable[..., PyTree]:
    """`function`, in which arrays are multiplied by the inverse of a number.

    Args:
        function: a function of arrays.
    """

    def multiplying(*arguments: PyTree) -> PyTree:
        program, shapes = jax.make_jaxpr(function, return_shape=True)(*arguments)
        results = _run(program, jax.tree.leaves(arguments))
        return jax.tree.unflatten(jax.tree.structure(shapes), results)

    return multiplying


def _run(program: ClosedJaxpr, arguments: Sequence[ArrayLike]) -> list[Any]:
    """The results of a program."""
    jaxpr = program.jaxpr
    values: dict[Any, Any] = dict(zip(jaxpr.constvars, program.consts, strict=True))
    values |= zip(jaxpr.invars, arguments, strict=True)
    numbers: dict[Any, Any] = {}  # what was broadcast, where it was a number
    read = lambda x: x.val if isinstance(x, Literal) else values[x]
    for line in jaxpr.eqns:
        inputs = [read(x) for x in line.invars]
        name = line.primitive.name
        if name == "broadcast_in_dim" and jnp.ndim(inputs[0]) == 0:
            numbers[line.outvars[0]] = inputs[0]
        if name in _CALLS:
            outputs = _run(line.params[_CALLS[name]], inputs)
        elif name == "div" and (by := _divisor(line, inputs[1], numbers)) is not None:
            outputs = [inputs[0] * by]
        else:
            outputs = evaluated(line, inputs)
        values |= zip(line.outvars, outputs, strict=True)
    return [read(x) for x in jaxpr.outvars]


def _divisor(line: Any, divisor: Any, numbers: dict[Any, Any]) -> Array | None:
    """The inverse of a number that an array is divided by; `None` for other divisions.

    Args:
        line: the division.
        divisor: the value of what it divides by.
        numbers: the numbers behind arrays of equal elements.
    """
    result = line.outvars[0].aval
    if result.ndim == 0 or not jnp.issubdtype(result.dtype, jnp.floating):
        return None
    if jnp.ndim(divisor):
        if isinstance(line.invars[1], Literal) or line.invars[1] not in numbers:
            return None
        divisor = numbers[line.invars[1]]
    divisor = jnp.asarray(divisor, result.dtype)
    return jnp.ones_like(divisor) / divisor
