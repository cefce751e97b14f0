"""A function along a direction: what the line searches look at.

    phi(a) = value_fn(p + a u)        phi'(a) = <u, gradient at p + a u>

where `p` are the params and `u` the updates that come in.
"""

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..core import (
    EmptyState,
    missing,
    Params,
    Rule,
    Step,
    Updates,
)
from ..engine import apply_updates, lift
from ..numerics import at_least_float32, inner, promoted, wide_dtype
from ..tree import map_trees

ValueFn = Callable[..., Any]  # (params, **some of the extra arguments) -> a number


class Line:
    """The line through `params` along `updates`, and a function on it."""

    def __init__(
        self,
        who: str,
        updates: Updates,
        params: Params | None,
        value_fn: ValueFn,
        extra_args: Mapping[str, Any],
    ):
        """Look along a direction.

        Args:
            who: who speaks in an error.
            updates: the direction.
            params: where it begins.
            value_fn: a function of the params and of some extra arguments.
            extra_args: those; an error if it does not take one of them.
        """
        self._updates = updates
        self._params = params
        self._who = who
        self._real = number_dtype(params)
        given = _taken_by(who, value_fn, extra_args)

        def value_at(params: Params) -> Float[Array, ""]:
            found = value_fn(params, **given)
            shape = getattr(found, "shape", ()) if _is_number(found) else None
            if shape != ():
                what = f"a {type(found).__name__}"
                what = what if shape is None else f"an array of shape {shape}"
                raise TypeError(
                    f"{who}: value_fn returned {what}, and one number is wanted. "
                    "Return the value alone, and sum or average over its axes."
                )
            return jnp.asarray(found)

        self._value_at = value_at

    def step(self, a: Array) -> Updates:
        """`a u`, and 0 for `a = 0`, also where `u` is not finite."""
        return _times.update(self._updates, EmptyState(), self._params, a=a)[0]

    def value(self, a: Array) -> Float[Array, ""]:
        """`phi(a)`."""
        return self._value_at(self._point(a)).astype(self._real)

    def pullback(self, a: Array) -> tuple[Float[Array, ""], Callable[[], Updates]]:
        """`phi(a)`, and a function that returns the gradient there."""
        value, pull = jax.vjp(self._value_at, self._point(a))
        return value.astype(self._real), lambda: pull(jnp.ones_like(value))[0]

    def value_and_grad(self, a: Array) -> tuple[Float[Array, ""], Updates]:
        """`phi(a)`, and the gradient there."""
        value, grad = jax.value_and_grad(self._value_at)(self._point(a))
        return value.astype(self._real), grad

    def slope(self, grad: Updates, *, conjugate: bool = False) -> Float[Array, ""]:
        """`<u, grad>`, where `grad` is as `jax.grad` gives it.

        Args:
            grad: the gradient at some point of the line.
            conjugate: whether `grad` is the conjugate of what `jax.grad` gives, that is
                the direction in which the function rises most. It matters for complex
                params only.
        """
        u = self._updates if conjugate else jax.tree.map(jnp.conj, self._updates)
        return dot(self._who, u, grad).astype(self._real)

    def _point(self, a: Array) -> Params:
        return apply_updates(self._params, self.step(a))


def number_dtype(params: Params) -> Any:
    """The real dtype of values and steps: float32, or float64 where a param has it."""
    leaves = jax.tree.leaves(params)
    return wide_dtype([x if hasattr(x, "dtype") else jnp.asarray(x) for x in leaves])


def dot(who: str, x: Updates, y: Updates) -> Float[Array, ""]:
    """`<x, y>` over all leaves, its real part; without those where one is `None`.

    Args:
        who: who speaks in an error.
        x: a tree.
        y: a tree of the same structure.
    """
    parts = [jnp.zeros(())]

    def leaf(x: Any, y: Any) -> None:
        if x is None or y is None:
            return
        dtype = promoted(at_least_float32(x), at_least_float32(y))
        found = inner(jnp.asarray(x, dtype), jnp.asarray(y, dtype))
        parts.append(found.astype(float))

    map_trees(who, leaf, none_is_leaf=True, updates=x, grad=y)
    return sum(parts[1:], parts[0])


def needed(who: str, **arguments: Any) -> None:
    """An error if one of the arguments of `update` is `None`."""
    for name, x in arguments.items():
        if x is None:
            raise missing(who, name)


def beginning(learning_rate: Array) -> Array:
    """The last step, as a guess for the next; 1 where the last search refused to move.

    Otherwise one value that was not a number would stop the optimizer for ever.
    """
    return jnp.where(learning_rate > 0, learning_rate, jnp.ones_like(learning_rate))


def _prepare(step: Step) -> dict[str, Any]:
    return {"a": step.extra["a"]}


def _leaf(n: Any, u: Array, p: Array | None) -> Array:
    return jnp.where(n.a == 0, 0, n.a * u)


_times = lift(Rule("line search", EmptyState, _leaf, prepare=_prepare))


def _is_number(x: Any) -> bool:
    return hasattr(x, "dtype") or isinstance(x, int | float)


def _taken_by(
    who: str, value_fn: ValueFn, extra_args: Mapping[str, Any]
) -> Mapping[str, Any]:
    """The extra arguments, all of which `value_fn` takes, or an error."""
    arguments = inspect.signature(value_fn).parameters.values()
    if any(a.kind is a.VAR_KEYWORD for a in arguments):
        return extra_args
    by_name = [a.name for a in arguments if a.kind is not a.POSITIONAL_ONLY]
    others = [name for name in extra_args if name not in by_name]
    if others:
        raise TypeError(
            f"{who}: Unexpected keyword arguments {others}: value_fn takes {by_name}. "
            "Pass only what it takes."
        )
    return extra_args
