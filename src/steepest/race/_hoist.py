"""Hoists the arrays that functions close over out of a traced program.

Such an array is a constant of the jaxpr, and inner `jit`s have constants of their own.
Compiled in, they would bloat the executable; otherwise they would be transferred at
every call. Here they all become constants of the outermost jaxpr, which can then be
turned into arguments.
"""

from collections.abc import Callable, Iterator, Sequence

import jax
from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn, Literal
from jax.typing import ArrayLike
from jaxtyping import PyTree

from steepest.core import evaluated

LARGE = 1 << 16  # bytes; XLA may fold smaller constants at compile time
Values = list[ArrayLike]


def traced(f: Callable[..., PyTree], *args: PyTree) -> ClosedJaxpr:
    """Trace a function, with every large constant at the top level.

    Args:
        f: a function of pytrees of arrays.
        args: arrays, or their shapes and dtypes.
    """
    closed = jax.make_jaxpr(f)(*args)
    if not any(map(_encloses, _inside(closed.jaxpr))):
        return closed
    again = lambda *xs: _evaluate(closed.jaxpr, closed.consts, list(xs))
    return jax.make_jaxpr(again)(*closed.in_avals)


def size(x: ArrayLike | jax.ShapeDtypeStruct) -> int:
    """The size of an array in bytes.

    Args:
        x: any array, which may hold keys, or its shape and dtype.
    """
    kind = jax.typeof(x)
    return kind.size * kind.dtype.itemsize


def inner_jaxprs(eqn: JaxprEqn) -> list[Jaxpr | ClosedJaxpr]:
    """The jaxprs in the parameters of an equation, such as the body of a loop.

    Args:
        eqn: an equation of a jaxpr.
    """
    each = lambda x: x if isinstance(x, tuple | list) else [x]
    values = [x for param in eqn.params.values() for x in each(param)]
    return [x for x in values if isinstance(x, Jaxpr | ClosedJaxpr)]


def _inside(jaxpr: Jaxpr) -> Iterator[Jaxpr | ClosedJaxpr]:
    for eqn in jaxpr.eqns:
        yield from inner_jaxprs(eqn)


def _encloses(inner: Jaxpr | ClosedJaxpr) -> bool:
    """Whether a jaxpr, or one inside it, has a large constant of its own."""
    own = getattr(inner, "consts", ())
    jaxpr = inner.jaxpr if isinstance(inner, ClosedJaxpr) else inner
    large = any(size(x) >= LARGE for x in own if hasattr(x, "dtype"))
    return large or any(map(_encloses, _inside(jaxpr)))


def _evaluate(jaxpr: Jaxpr, consts: Values, args: Values) -> Values:
    """Retrace a jaxpr: inline each `jit` with constants, and rebuild such loops."""
    values = dict(zip([*jaxpr.constvars, *jaxpr.invars], [*consts, *args], strict=True))
    read = lambda x: x.val if isinstance(x, Literal) else values[x]
    for eqn in jaxpr.eqns:
        rebuild = _REBUILT.get(eqn.primitive.name)
        inputs = [read(x) for x in eqn.invars]
        if rebuild is not None and any(map(_encloses, inner_jaxprs(eqn))):
            with eqn.ctx.manager:
                outputs = rebuild(inputs, **eqn.params)
        else:
            outputs = evaluated(eqn, inputs)
        values.update(zip(eqn.outvars, outputs, strict=True))
    return [read(x) for x in jaxpr.outvars]


def _called(closed: ClosedJaxpr, args: Values) -> Values:
    return _evaluate(closed.jaxpr, closed.consts, args)


def _jit(inputs: Values, *, jaxpr: ClosedJaxpr, **rest: object) -> Values:
    return _called(jaxpr, inputs)


def _while(
    inputs: Values,
    *,
    cond_jaxpr: ClosedJaxpr,
    body_jaxpr: ClosedJaxpr,
    cond_nconsts: int,
    body_nconsts: int,
    **rest: object,
) -> Values:
    for_cond, inputs = inputs[:cond_nconsts], inputs[cond_nconsts:]
    for_body, carry = inputs[:body_nconsts], inputs[body_nconsts:]
    return jax.lax.while_loop(
        lambda carry: _called(cond_jaxpr, [*for_cond, *carry])[0],
        lambda carry: _called(body_jaxpr, [*for_body, *carry]),
        carry,
    )


def _scan(
    inputs: Values,
    *,
    jaxpr: ClosedJaxpr,
    num_consts: int,
    num_carry: int,
    length: int,
    reverse: bool,
    unroll: int,
    **rest: object,
) -> Values:
    enclosed, inputs = inputs[:num_consts], inputs[num_consts:]
    carry, rows = inputs[:num_carry], inputs[num_carry:]

    def step(carry: Values, row: Values) -> tuple[Values, Values]:
        outputs = _called(jaxpr, [*enclosed, *carry, *row])
        return outputs[:num_carry], outputs[num_carry:]

    how = {"length": length, "reverse": reverse, "unroll": unroll}
    carry, rows = jax.lax.scan(step, carry, rows, **how)
    return [*carry, *rows]


def _cond(inputs: Values, *, branches: Sequence[ClosedJaxpr], **rest: object) -> Values:
    which, *operands = inputs
    functions = [lambda *xs, one=one: _called(one, list(xs)) for one in branches]
    return jax.lax.switch(which, functions, *operands)


_REBUILT: dict[str, Callable[..., Values]] = {
    "jit": _jit,
    "while": _while,
    "scan": _scan,
    "cond": _cond,
}
