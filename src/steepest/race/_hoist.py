"""Arrays that functions enclose, taken out of a traced program.

A function that encloses an array leaves it in the program as a constant, and inner
`jit`s keep constants of their own. Compiled in, they would be a part of the executable;
sent along, they would travel at every call. Here they all become constants of the
outermost jaxpr, from where they can be made arguments.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
from jax.extend.core import ClosedJaxpr, Jaxpr, Literal

LARGE = 1 << 16  # bytes; XLA may compute with smaller constants while it compiles


def traced(f: Callable[..., Any], *args: Any) -> ClosedJaxpr:
    """The jaxpr of a function, with every large constant at the top.

    Args:
        f: takes and returns pytrees of arrays.
        args: arrays, or their shapes and dtypes.
    """
    found = jax.make_jaxpr(f)(*args)
    if not any(map(_encloses, _inside(found.jaxpr))):
        return found
    again = lambda *xs: _evaluate(found.jaxpr, found.consts, xs)
    return jax.make_jaxpr(again)(*found.in_avals)


def size(x: Any) -> int:
    """The bytes of an array.

    Args:
        x: an array of any kind, also one of keys, or its shape and dtype.
    """
    return x.size * x.dtype.itemsize


def inner_jaxprs(eqn: Any) -> list[Any]:
    """The jaxprs in the parameters of an equation: of a loop, its body.

    Args:
        eqn: an equation of a jaxpr.
    """
    each = lambda x: x if isinstance(x, tuple | list) else [x]
    found = [x for param in eqn.params.values() for x in each(param)]
    return [x for x in found if isinstance(x, Jaxpr | ClosedJaxpr)]


def _inside(jaxpr: Jaxpr) -> Iterator[Any]:
    for eqn in jaxpr.eqns:
        yield from inner_jaxprs(eqn)


def _encloses(inner: Any) -> bool:
    """Whether a jaxpr, or one inside it, has a large constant of its own."""
    own = getattr(inner, "consts", ())
    jaxpr = inner.jaxpr if isinstance(inner, ClosedJaxpr) else inner
    large = any(size(x) >= LARGE for x in own if hasattr(x, "dtype"))
    return large or any(map(_encloses, _inside(jaxpr)))


def _evaluate(jaxpr: Jaxpr, consts: Sequence[Any], args: Sequence[Any]) -> list[Any]:
    """Trace it anew: a `jit` that encloses something is dissolved, a loop rebuilt."""
    values = dict(zip([*jaxpr.constvars, *jaxpr.invars], [*consts, *args], strict=True))
    read = lambda x: x.val if isinstance(x, Literal) else values[x]
    for eqn in jaxpr.eqns:
        rebuild = _REBUILT.get(eqn.primitive.name)
        given = [read(x) for x in eqn.invars]
        with eqn.ctx.manager:
            if rebuild is not None and any(map(_encloses, inner_jaxprs(eqn))):
                found = rebuild(given, **eqn.params)
            else:
                params = eqn.primitive.get_bind_params(eqn.params)
                found = eqn.primitive.bind(*given, **params)
        found = found if eqn.primitive.multiple_results else [found]
        values.update(zip(eqn.outvars, found, strict=True))
    return [read(x) for x in jaxpr.outvars]


def _called(closed: ClosedJaxpr, args: Sequence[Any]) -> list[Any]:
    return _evaluate(closed.jaxpr, closed.consts, args)


def _jit(given: list[Any], *, jaxpr: ClosedJaxpr, **rest: Any) -> list[Any]:
    return _called(jaxpr, given)


def _while(
    given: list[Any],
    *,
    cond_jaxpr: ClosedJaxpr,
    body_jaxpr: ClosedJaxpr,
    cond_nconsts: int,
    body_nconsts: int,
    **rest: Any,
) -> list[Any]:
    for_cond, given = given[:cond_nconsts], given[cond_nconsts:]
    for_body, carry = given[:body_nconsts], given[body_nconsts:]
    return jax.lax.while_loop(
        lambda carry: _called(cond_jaxpr, [*for_cond, *carry])[0],
        lambda carry: _called(body_jaxpr, [*for_body, *carry]),
        carry,
    )


def _scan(
    given: list[Any],
    *,
    jaxpr: ClosedJaxpr,
    num_consts: int,
    num_carry: int,
    length: int,
    reverse: bool,
    unroll: int,
    **rest: Any,
) -> list[Any]:
    enclosed, given = given[:num_consts], given[num_consts:]
    carry, rows = given[:num_carry], given[num_carry:]

    def step(carry: list[Any], row: list[Any]) -> tuple[list[Any], list[Any]]:
        found = _called(jaxpr, [*enclosed, *carry, *row])
        return found[:num_carry], found[num_carry:]

    how = {"length": length, "reverse": reverse, "unroll": unroll}
    carry, rows = jax.lax.scan(step, carry, rows, **how)
    return [*carry, *rows]


def _cond(
    given: list[Any], *, branches: Sequence[ClosedJaxpr], **rest: Any
) -> list[Any]:
    which, *operands = given
    functions = [lambda *xs, one=one: _called(one, xs) for one in branches]
    return jax.lax.switch(which, functions, *operands)


_REBUILT: dict[str, Callable[..., list[Any]]] = {
    "jit": _jit,
    "while": _while,
    "scan": _scan,
    "cond": _cond,
}
