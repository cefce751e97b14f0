"""Loops and branches that run in Python if nothing is traced.

`jax.lax.while_loop` compiles its body. A line search has a new body in every step,
since the body contains the user's function. Outside `jit`, that would be a second of
compilation for a millisecond of work.
"""

from collections.abc import Callable
from typing import TypeVar

import jax
from jax.core import Tracer
from jaxtyping import Array, ArrayLike, PyTree

T = TypeVar("T")


def loop(goes_on: Callable[[T], Array], body: Callable[[T], T], start: T) -> T:
    """`jax.lax.while_loop`; a Python loop if nothing is traced.

    Args:
        goes_on: a function of the state: whether to call `body` again.
        body: a function from one state to the next.
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
    """`jax.lax.cond`; a Python `if` when the condition is not traced.

    Args:
        condition: whether to call `yes`.
        yes: called if it is true.
        no: called if it is false.
    """
    if _traced(condition):
        return jax.lax.cond(condition, yes, no)
    return yes() if condition else no()


def _traced(tree: PyTree) -> bool:
    return any(isinstance(x, Tracer) for x in jax.tree.leaves(tree))
