"""The content of a jaxpr, without names and addresses.

Two jaxprs with the same content compute the same values.
"""

import re
from collections.abc import Iterator

import jax
import numpy as np
from jax.extend.core import ClosedJaxpr, Jaxpr, Literal, Var
from jax.typing import ArrayLike

from ._arrays import digest

Item = str | list[ArrayLike]  # a line of text, or the constants of a jaxpr

_ADDRESS = re.compile("0x[0-9a-f]+")  # in the `repr` of a function
# Parameters of primitives that hold debug information only.
_NAMES = {"name", "name_and_src_info", "debug_info"}


def content(program: ClosedJaxpr | Jaxpr) -> Iterator[Item]:
    """Everything that a program computes, with its variables numbered in order.

    Constants are yielded as arrays, since computing their digests may be slow.

    Args:
        program: a jaxpr.
    """
    jaxpr = program.jaxpr if isinstance(program, ClosedJaxpr) else program
    numbers: dict[Var, str] = {}

    def known(x: Var | Literal) -> str:
        if isinstance(x, Literal):
            return f"{x.aval} {digest(x.val)}"
        return numbers.setdefault(x, f"v{len(numbers)}:{x.aval}")

    joined = lambda xs: " ".join(known(x) for x in xs)
    if isinstance(program, ClosedJaxpr):
        yield list(program.consts)
    yield f"given {joined(jaxpr.constvars)} and {joined(jaxpr.invars)}"
    for eqn in jaxpr.eqns:
        # Unused outputs have no name.
        outputs = " ".join(str(x.aval) for x in eqn.outvars)
        yield f"{eqn.primitive.name} {joined(eqn.invars)} -> {outputs}"
        for x in eqn.outvars:
            known(x)
        for key in sorted(eqn.params.keys() - _NAMES):
            yield f"with {key}"
            yield from _parameter(eqn.params[key])
    yield f"returns {joined(jaxpr.outvars)}"


def text_of(item: Item) -> str:
    """An item as one line: digests in place of arrays.

    Args:
        item: of `content`.
    """
    return item if isinstance(item, str) else "enclosed " + " ".join(map(digest, item))


def _parameter(x: object) -> Iterator[Item]:
    """The content of a parameter of a primitive."""
    if isinstance(x, ClosedJaxpr | Jaxpr):
        yield from content(x)
    elif isinstance(x, tuple | list):
        yield f"{len(x)} of"
        for one in x:
            yield from _parameter(one)
    elif isinstance(x, dict):
        yield from _parameter(sorted(x.items(), key=str))
    elif isinstance(x, set | frozenset):
        yield str(sorted(map(repr, x)))
    elif isinstance(x, np.ndarray | jax.Array):
        yield digest(x)
    elif callable(x) and not isinstance(x, type):
        yield "a function"  # its program appears in the gradient, if there is one
    else:
        yield _ADDRESS.sub("", repr(x))
