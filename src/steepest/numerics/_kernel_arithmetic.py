"""Arithmetic of kernels in fewer instructions, with the same bits.

A kernel for memory in 8 bits waits for its instructions as long as for its memory:
with AdamW, a warp executed 833 of them for a block of 256 elements (an H200, JAX
0.11.2). Triton compiles a formula as it is written. Some steps can be cheaper:

    x / c         a product with 1 / c, if c is a number. XLA does the same.
    x + 0         nothing. XLA removes it, too: -0 + 0 is then -0 (JAX 0.10.2).
    sqrt(x)       1 instruction instead of 4, if no x is subnormal.
    x / y         2 instructions instead of 8, if no y is subnormal or huge.

For the last two, Triton tests for such numbers, and scales them before and after. The
bounds of a formula's values can show that there are none: Adam divides by
`sqrt(max(x, tiny)) + eps`. Then the instructions without scaling have the same bits.
They are written in assembly. It cannot be interpreted, so interpreted kernels keep the
plain operations.
"""

from collections.abc import Callable, Sequence
from math import sqrt
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jax.extend.core import ClosedJaxpr, Literal
from jax.typing import ArrayLike
from jaxtyping import Array, Float, Integer, PyTree

from ..core import evaluated
from ._kernels import triton

# The primitives that call a program, and the name of it. A kernel has no derivative.
_CALLS = {
    "jit": "jaxpr",
    "pjit": "jaxpr",
    "custom_jvp_call": "call_jaxpr",
    "custom_vjp_call": "call_jaxpr",
}
# Triton scales arguments of `sqrt` below the first, and divisors below the first or
# above the second.
_TINY, _HUGE = 2.0**-126, 2.0**126
_MAX = float(np.finfo(np.float32).max)
_ROUNDING = 2.0**-20  # above the relative error of a sum or a root


class _Bounds(NamedTuple):
    """Numbers in [low, high], infinity and NaN; `low` is not negative."""

    low: float
    high: float


class _Value(NamedTuple):
    """The value of a variable, and what is known about it."""

    array: Any
    number: Any = None  # what all its elements are; `None` if they may differ
    bounds: _Bounds | None = None


def for_kernel(
    function: Callable[..., PyTree], *, interpret: bool
) -> Callable[..., PyTree]:
    """`function`, to be called in a kernel: in fewer instructions.

    Args:
        function: a function of arrays.
        interpret: whether the kernel is interpreted, without a GPU.
    """

    def shorter(*arguments: PyTree) -> PyTree:
        program, shapes = jax.make_jaxpr(function, return_shape=True)(*arguments)
        inputs = [_value(x) for x in jax.tree.leaves(arguments)]
        results = [x.array for x in _run(program, inputs, interpret)]
        return jax.tree.unflatten(jax.tree.structure(shapes), results)

    return shorter


def number_of_code(code: Integer[Array, "... n"]) -> Float[Array, "... n"]:
    """Codes of 8 bits as numbers in float32. This cannot be interpreted.

    A register holds four codes. One instruction puts a code below the bits of
    1.5 * 2^23, and another subtracts this number. Without assembly the first would be
    two: it extracts the code, and then adds the bits.

    Args:
        code: in int8 or uint8; `n` must be a multiple of 4.
    """
    signed = code.dtype == jnp.int8
    # From -128 ... 127 to 0 ... 255, all four at once.
    lines = ["xor.b32 four, $4, 0x80808080;" if signed else "mov.b32 four, $4;"]
    lines += [f"prmt.b32 ${k}, four, 0x4b400000, 0x765{k};" for k in range(4)]
    (bits,) = triton().elementwise_inline_asm(
        "{ .reg .b32 four; " + " ".join(lines) + " }",
        args=[code],
        constraints="=r,=r,=r,=r,r",
        pack=4,
        result_shape_dtypes=[jax.ShapeDtypeStruct(code.shape, jnp.int32)],
    )
    zero = np.float32(1.5 * 2**23 + (128 if signed else 0))
    return jax.lax.bitcast_convert_type(bits, jnp.float32) - zero


def _run(
    program: ClosedJaxpr, arguments: Sequence[_Value], interpret: bool
) -> list[_Value]:
    """The results of a program."""
    jaxpr = program.jaxpr
    constants = [_value(x) for x in program.consts]
    values: dict[Any, _Value] = dict(zip(jaxpr.constvars, constants, strict=True))
    values |= zip(jaxpr.invars, arguments, strict=True)
    read = lambda x: _value(x.val) if isinstance(x, Literal) else values[x]
    for line in jaxpr.eqns:
        inputs = [read(x) for x in line.invars]
        name = line.primitive.name
        if name in _CALLS:
            outputs = _run(line.params[_CALLS[name]], inputs, interpret)
        elif (short := _shorter(line, inputs, interpret)) is not None:
            outputs = [_known(line, inputs, short)]
        else:
            arrays = evaluated(line, [x.array for x in inputs])
            outputs = [_known(line, inputs, x) for x in arrays]
        values |= zip(line.outvars, outputs, strict=True)
    return [read(x) for x in jaxpr.outvars]


def _shorter(line: Any, inputs: Sequence[_Value], interpret: bool) -> ArrayLike | None:
    """The result of an operation in fewer instructions; `None` if it stays as it is.

    Args:
        line: the operation.
        inputs: what it is applied to.
        interpret: whether to do without assembly.
    """
    name = line.primitive.name
    if name not in ("add", "div", "sqrt"):
        return None
    result = line.outvars[0].aval
    if result.ndim == 0 or not jnp.issubdtype(result.dtype, jnp.floating):
        return None
    if name == "add":
        for x, other in (inputs, inputs[::-1]):
            if _constant(other) == 0 and jnp.shape(x.array) == result.shape:
                return x.array
        return None
    if name == "div" and inputs[1].number is not None:
        by = jnp.asarray(inputs[1].number, result.dtype)
        return inputs[0].array * (jnp.ones_like(by) / by)
    bounds = inputs[-1].bounds
    if interpret or bounds is None or bounds.low < _TINY:
        return None
    if name == "sqrt":
        return _instruction("sqrt.approx.ftz.f32", inputs[0].array)
    if bounds.high > _HUGE:
        return None
    # Triton has the same product for such divisors. It also scales infinity, which
    # changes nothing: the inverse is 0.
    return inputs[0].array * _instruction("rcp.approx.ftz.f32", inputs[1].array)


def _known(line: Any, inputs: Sequence[_Value], result: ArrayLike) -> _Value:
    """The result of an operation, and what is known about it."""
    if _keeps_numbers(line):
        return inputs[0]._replace(array=result)
    return _value(result)._replace(bounds=_bounds_of(line, inputs))


def _keeps_numbers(line: Any) -> bool:
    """Whether the elements of a result are those of what it is made from."""
    if line.primitive.name == "convert_element_type":  # a literal loses its weak type
        return line.invars[0].aval.dtype == line.outvars[0].aval.dtype
    return line.primitive.name == "broadcast_in_dim"


def _bounds_of(line: Any, inputs: Sequence[_Value]) -> _Bounds | None:
    """The bounds of a result; `None` if they are not known.

    A kernel's maximum of NaN and a number is the number, and XLA's is NaN. These bounds
    hold for both.

    Args:
        line: the operation.
        inputs: what it is applied to.
    """
    if line.outvars[0].aval.dtype != jnp.float32:
        return None
    name = line.primitive.name
    bounds = [x.bounds for x in inputs[1 if name == "select_n" else 0 :]]
    known = [x for x in bounds if x is not None]
    lows, highs = [x.low for x in known], [x.high for x in known]
    constants = [c for x in inputs if (c := _constant(x)) is not None]
    if name == "max" and constants:
        # Not the larger `low` where both are arrays: one may be NaN.
        return _Bounds(max(constants), max(highs) if known == bounds else _MAX)
    if name == "sqrt":  # of a negative number, NaN
        low, high = bounds[0] or (0.0, _MAX)
        return _rounded(sqrt(low), sqrt(high))
    if known != bounds:
        return None
    if name == "add":
        return _rounded(sum(lows), sum(highs))
    if name == "min":
        return _Bounds(min(lows), min([max(highs), *constants]))
    if name in ("select_n", "max"):
        return _Bounds(min(lows), max(highs))
    return None


def _rounded(low: float, high: float) -> _Bounds:
    """Bounds of the rounded numbers; above `_MAX`, they are infinity."""
    return _Bounds(low * (1 - _ROUNDING), min(high * (1 + _ROUNDING), _MAX))


def _value(x: ArrayLike) -> _Value:
    """An argument or a constant."""
    value = _Value(x, x if jnp.ndim(x) == 0 else None)
    c = _constant(value)
    return value if c is None else value._replace(bounds=_Bounds(c, c))


def _constant(x: _Value) -> float | None:
    """A number that is known while tracing, finite and not negative; or `None`."""
    if x.number is None or isinstance(x.number, Tracer):
        return None
    if not jnp.issubdtype(jnp.result_type(x.number), jnp.floating):
        return None
    c = float(x.number)
    return c if 0 <= c <= _MAX else None


def _instruction(name: str, x: ArrayLike) -> Array:
    """An instruction of one number, for each element."""
    (result,) = triton().elementwise_inline_asm(
        f"{name} $0, $1;",
        args=[x],
        constraints="=f,f",
        pack=1,
        result_shape_dtypes=[jax.ShapeDtypeStruct(jnp.shape(x), jnp.float32)],
    )
    return result
