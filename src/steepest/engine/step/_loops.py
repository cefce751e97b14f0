"""Loops and branches that need no compiler where everything is known.

`jax.lax.while_loop` compiles its body, and a line search has a new body in every step,
since it holds the function that is searched. Outside `jit` that would be a second of
compiling for a millisecond of work.
"""

from collections.abc import Callable
from typing import Any, TypeVar

import jax
from jax.core import Tracer
from jaxtyping import Array, ArrayLike

T = TypeVar("T")


def loop(goes_on: Callable[[T], Array], body: Callable[[T], T], start: T) -> T:
    """`jax.lax.while_loop`, and a loop of Python until something is traced.

    Args:
        goes_on: whether to call `body` once more.
        body: one state -> the next.
        start: the first state.
    """
    state = start
    while True:
        more = goes_on(state)
        if _traced((more, state)):
            return jax.lax.while_loop(goes_on, body, start)
        if not more:
            return state
        state = body(state)


def branch(condition: ArrayLike, yes: Callable[[], T], no: Callable[[], T]) -> T:
    """`jax.lax.cond`, and a condition of Python if it is not traced.

    Args:
        condition: which of the two to call.
        yes: called where it holds.
        no: called where it does not.
    """
    if _traced(condition):
        return jax.lax.cond(condition, yes, no)
    return yes() if condition else no()


def _traced(tree: Any) -> bool:
    return any(isinstance(x, Tracer) for x in jax.tree.leaves(tree))
