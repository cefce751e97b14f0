"""A function along a direction: what the line searches look at.

    phi(a) = value_fn(p + a u)        phi'(a) = <u, gradient at p + a u>

where `p` are the params and `u` the updates that come in.
"""

import inspect
import math
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .. import check
from ..core import EmptyState, MeshAxes, missing, Params, Rule, Updates
from ..engine import apply_updates, FUNCTIONS_OF_PARAMS, lift, same_shapes
from ..numerics import (
    at_least_float32,
    inner,
    is_inexact,
    promoted,
    sum_of_leaves,
    wide_dtype,
)
from ..tree import leaf_paths, map_trees

ValueFn = Callable[..., Any]  # (params, **some of the extra arguments) -> a number


class Line:
    """The line through `params` along `updates`, and a function on it."""

    def __init__(
        self,
        name: str,
        updates: Updates,
        params: Params | None,
        value_fn: ValueFn,
        extra_args: Mapping[str, Any],
        axes: MeshAxes | None = None,
    ):
        """Look along a direction.

        Args:
            name: name used in error messages.
            updates: the direction.
            params: where it begins.
            value_fn: a function of the params and of some extra arguments.
            extra_args: those; an error if it does not take one of them.
            axes: the mesh axes over which the params are split.
        """
        self._axes = axes
        self._updates = updates
        self._params = params
        self._who = name
        self._real = number_dtype(params)
        given = _taken_by(name, value_fn, extra_args)

        def value_at(params: Params) -> Float[Array, ""]:
            return returned(name, value_fn(params, **given))

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
        return dot(self._who, u, grad, self._axes).astype(self._real)

    def _point(self, a: Array) -> Params:
        return apply_updates(self._params, self.step(a))


def nothing_yet(params: Params) -> Params:
    """Zeros like the params, before anything is known.

    Of their dtypes in earnest: those of `jnp.array(1.0)` are weak, and what is computed
    is not, so a step would be compiled twice.
    """
    return jax.tree.map(lambda p: jnp.zeros_like(p, jnp.result_type(p)), params)


def number_dtype(params: Params) -> Any:
    """The real dtype of values and steps: float32, or float64 where a param has it."""
    leaves = jax.tree.leaves(params)
    return wide_dtype([x if hasattr(x, "dtype") else jnp.asarray(x) for x in leaves])


def dot(
    name: str, x: Updates, y: Updates, axes: MeshAxes | None = None
) -> Float[Array, ""]:
    """`<x, y>` over all leaves, its real part; without those where one is `None`.

    Args:
        name: name used in error messages.
        x: a tree.
        y: a tree of the same structure.
        axes: the mesh axes over which they are split.
    """
    pairs: list[tuple[Any, Any]] = []

    def leaf(x: Any, y: Any) -> None:
        if x is not None and y is not None:
            pairs.append((x, y))

    def multiply(pair: tuple[Any, Any]) -> Array:
        dtype = promoted(*map(at_least_float32, pair))
        x, y = (jnp.asarray(x, dtype) for x in pair)
        return inner(x, y).astype(float)

    map_trees(name, leaf, none_is_leaf=True, updates=x, grad=y)
    return sum_of_leaves(axes, multiply, pairs, jnp.zeros(()))


def asked(
    name: str, updates: Updates, params: Params | None, **arguments: Any
) -> Float[Array, ""]:
    """The `value` that `update` was given; an error if anything is missing or odd.

    Args:
        name: name used in error messages.
        updates: the direction.
        params: where it begins.
        arguments: `value`, `grad` and `value_fn`.
    """
    absent = [k for k, x in {"params": params, **arguments}.items() if x is None]
    if absent:
        raise missing(name, *absent)
    check.function(name, value_fn=arguments["value_fn"])
    same_shapes(name, updates=updates, params=params)
    same_shapes(name, updates=updates, grad=arguments["grad"])
    return one_number(name, value=arguments["value"])


def returned(name: str, x: Any) -> Float[Array, ""]:
    """What `value_fn` returned, which must be something that has a gradient."""
    dtype = getattr(x, "dtype", jnp.result_type(float))
    floating = _is_number(x) and jnp.issubdtype(dtype, jnp.floating)
    if not floating or np.shape(x) != ():
        raise TypeError(
            f"{name}: value_fn returned {_described(x)}, expected one real number. "
            "Return the value alone, and sum or average over its axes."
        )
    return jnp.asarray(x, dtype)


def differentiable(name: str, params: Params) -> None:
    """An error unless there is a gradient for every param: integers have none."""
    leaves = jax.tree.leaves(params, is_leaf=lambda x: x is None)
    for path, x in zip(leaf_paths(params), leaves, strict=True):
        if x is None or is_inexact(x) or isinstance(x, float | complex):
            continue
        raise TypeError(
            f"{name}: leaf {path} of the params {check.said_of(x)}, expected an array "
            "of floating or complex numbers. Put `None` in its place, or hide it with "
            "`masked`."
        )


def one_number(who: str, **value: Any) -> Float[Array, ""]:
    """What was given by that name, as a number."""
    ((name, x),) = value.items()
    if not _is_number(x) or math.prod(np.shape(x)) != 1 or jnp.iscomplexobj(x):
        raise TypeError(
            f"{who}: {name} is {_described(x)}, expected one real number. Pass what "
            "the function returns, summed or averaged over its axes."
        )
    return jnp.reshape(jnp.asarray(x), ()).astype(float)


def beginning(learning_rate: Array) -> Array:
    """The last step, as a guess for the next; 1 where the last search refused to move.

    Otherwise one value that was not a number would stop the optimizer for ever.
    """
    return jnp.where(learning_rate > 0, learning_rate, jnp.ones_like(learning_rate))


def line_formula(g: Array, *, a: Array) -> Array:
    """`a g`, which is zero for `a = 0` even if `g` is infinite."""
    return jnp.where(a == 0, 0, a * g)


_times = lift(Rule("line search", line_formula, extra=("a",)))


def _is_number(x: Any) -> bool:
    return hasattr(x, "dtype") or isinstance(x, int | float)


def _described(x: Any) -> str:
    if not hasattr(x, "dtype"):
        return f"a {type(x).__name__}"
    return f"an array of {x.dtype} of shape {x.shape}"


def _taken_by(
    who: str, value_fn: ValueFn, extra_args: Mapping[str, Any]
) -> Mapping[str, Any]:
    """The extra arguments, all of which `value_fn` takes, or an error."""
    try:
        signature = inspect.signature(value_fn)
    except ValueError:  # written in C: it will speak for itself
        return extra_args
    arguments = signature.parameters.values()
    takes_any = any(a.kind is a.VAR_KEYWORD for a in arguments)
    by_name = [a.name for a in arguments if a.kind is not a.POSITIONAL_ONLY]
    others = [name for name in extra_args if name not in by_name]
    if not takes_any:
        # Another optimizer of the chain or group may want a function of its own.
        known = [name for name in others if name in FUNCTIONS_OF_PARAMS]
        extra_args = {k: x for k, x in extra_args.items() if k not in known}
        others = [name for name in others if name not in known]
    if others and not takes_any:
        raise TypeError(
            f"{who}: Unexpected keyword arguments {others}: value_fn takes {by_name}. "
            "Pass only what it takes."
        )
    try:
        signature.bind(None, **extra_args)
    except TypeError as error:
        raise TypeError(
            f"{who}: value_fn is called with the params and, by name, with "
            f"{list(extra_args)}: {error}. Pass what else it needs to `update` by name."
        ) from None
    return extra_args
