"""The objective restricted to a line: what the line searches evaluate.

    phi(a) = value_fn(p + a u)        phi'(a) = <u, gradient at p + a u>

where `p` are the params and `u` the incoming updates.
"""

import inspect
from collections.abc import Callable, Mapping
from typing import Any, TypeGuard

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike, DTypeLike
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

ValueFn = Callable[
    ..., ArrayLike
]  # (params, **some of the extra arguments) -> a number
Stored = Array | np.ndarray | None  # a leaf of a state, maybe read from a file


class Line:
    """The line through `params` along `updates`, and `value_fn` on it."""

    def __init__(
        self,
        name: str,
        updates: Updates,
        params: Params | None,
        value_fn: ValueFn,
        extra_args: Mapping[str, object],
        axes: MeshAxes | None = None,
    ):
        """Define the line.

        Args:
            name: name used in error messages.
            updates: the direction.
            params: the starting point.
            value_fn: a function of the params and of the extra arguments.
            extra_args: the extra arguments; `value_fn` must accept all of them.
            axes: the mesh axes over which the params are sharded.
        """
        self._axes = axes
        self._updates = updates
        self._params = params
        self._name = name
        self._real = number_dtype(params)
        arguments = _accepted_by(name, value_fn, extra_args)

        def value_at(params: Params) -> Float[Array, ""]:
            return returned(name, value_fn(params, **arguments))

        self._value_at = value_at

    def step(self, a: Array) -> Updates:
        """`a u`; zero if `a = 0`, even where `u` is not finite."""
        return _times.update(self._updates, EmptyState(), self._params, a=a)[0]

    def value(self, a: Array) -> Float[Array, ""]:
        """`phi(a)`."""
        return self._value_at(self._point(a)).astype(self._real)

    def pullback(self, a: Array) -> tuple[Float[Array, ""], Callable[[], Updates]]:
        """`phi(a)`, and a function that returns the gradient at that point."""
        value, pull = jax.vjp(self._value_at, self._point(a))
        return value.astype(self._real), lambda: pull(jnp.ones_like(value))[0]

    def value_and_grad(self, a: Array) -> tuple[Float[Array, ""], Updates]:
        """`phi(a)`, and the gradient at that point."""
        value, grad = jax.value_and_grad(self._value_at)(self._point(a))
        return value.astype(self._real), grad

    def slope(self, grad: Updates, *, conjugate: bool = False) -> Float[Array, ""]:
        """`<u, grad>`, the derivative of `phi`.

        Args:
            grad: the gradient at some point of the line, as `jax.grad` returns it.
            conjugate: whether `grad` is the conjugate of that, which is the direction
                of steepest ascent. It matters only for complex params.
        """
        u = self._updates if conjugate else jax.tree.map(jnp.conj, self._updates)
        return dot(self._name, u, grad, self._axes).astype(self._real)

    def _point(self, a: Array) -> Params:
        return apply_updates(self._params, self.step(a))


def nothing_yet(params: Params) -> Params:
    """Zeros like the params, without weak types.

    `jnp.array(1.0)` is weakly typed but computed values are not. Zeros of a weak type
    would make the step compile twice.
    """
    return jax.tree.map(lambda p: jnp.zeros_like(p, jnp.result_type(p)), params)


def number_dtype(params: Params) -> DTypeLike:
    """The real dtype of values and steps: float64 if any param has it, else float32."""
    leaves = jax.tree.leaves(params)
    return wide_dtype([x if hasattr(x, "dtype") else jnp.asarray(x) for x in leaves])


def dot(
    name: str, x: Updates, y: Updates, axes: MeshAxes | None = None
) -> Float[Array, ""]:
    """The real part of `<x, y>`, summed over all leaves that are not `None` in either.

    Args:
        name: name used in error messages.
        x: a tree.
        y: a tree of the same structure.
        axes: the mesh axes over which they are sharded.
    """
    pairs: list[tuple[ArrayLike, ArrayLike]] = []

    def leaf(x: ArrayLike | None, y: ArrayLike | None) -> None:
        if x is not None and y is not None:
            pairs.append((x, y))

    def multiply(pair: tuple[ArrayLike, ArrayLike]) -> Array:
        dtype = promoted(*map(at_least_float32, pair))
        x, y = (jnp.asarray(x, dtype) for x in pair)
        return inner(x, y).astype(float)

    map_trees(name, leaf, none_is_leaf=True, updates=x, grad=y)
    return sum_of_leaves(axes, multiply, pairs, jnp.zeros(()))


def asked(
    name: str, updates: Updates, params: Params | None, **arguments: object
) -> Float[Array, ""]:
    """The `value` passed to `update`, after checking all arguments of a line search.

    Args:
        name: name used in error messages.
        updates: the direction.
        params: the starting point.
        arguments: `value`, `grad` and `value_fn`.
    """
    absent = [k for k, x in {"params": params, **arguments}.items() if x is None]
    if absent:
        raise missing(name, *absent)
    check.function(name, value_fn=arguments["value_fn"])
    same_shapes(name, updates=updates, params=params)
    same_shapes(name, updates=updates, grad=arguments["grad"])
    return real_value(name, arguments["value"])


def returned(name: str, x: object) -> Float[Array, ""]:
    """The result of `value_fn`; an error unless it is one real number."""
    dtype = getattr(x, "dtype", jnp.result_type(float))
    floating = jnp.issubdtype(dtype, jnp.floating)
    if not _is_number(x) or not floating or np.shape(x) != ():
        raise TypeError(
            f"{name}: value_fn returned {_described(x)}, expected one real number. "
            "Return only the value, summed or averaged over its axes."
        )
    return jnp.asarray(x, dtype)


def differentiable(name: str, params: Params) -> None:
    """Raise an error unless every param is differentiable; integers are not."""
    leaves = jax.tree.leaves(params, is_leaf=lambda x: x is None)
    for path, x in zip(leaf_paths(params), leaves, strict=True):
        if x is None or is_inexact(x) or isinstance(x, float | complex):
            continue
        raise TypeError(
            f"{name}: leaf {path} of the params {check.kind(x)}, expected an array "
            "of real or complex floating-point numbers. Replace it with `None`, or "
            "exclude it with `masked`."
        )


def real_value(name: str, value: object) -> Float[Array, ""]:
    """The `value` passed to `update`; an error unless it is one real number."""
    if not _is_number(value) or np.size(value) != 1 or jnp.iscomplexobj(value):
        raise TypeError(
            f"{name}: value is {_described(value)}, expected one real number. Pass the "
            "value of the function, summed or averaged over its axes."
        )
    return jnp.reshape(jnp.asarray(value), ()).astype(float)


def beginning(learning_rate: Array) -> Array:
    """The last step size as the next guess, or 1 if the last search did not move.

    Without the 1, a single NaN value would stop the optimizer for good.
    """
    return jnp.where(learning_rate > 0, learning_rate, jnp.ones_like(learning_rate))


def line_formula(g: Array, *, a: Array) -> Array:
    """`a g`; zero if `a = 0`, even where `g` is infinite."""
    return jnp.where(a == 0, 0, a * g)


_times = lift(Rule("line search", line_formula, extra=("a",)))


def _is_number(x: object) -> TypeGuard[Array | int | float]:
    return hasattr(x, "dtype") or isinstance(x, int | float)


def _described(x: Any) -> str:
    if not hasattr(x, "dtype"):
        return f"a {type(x).__name__}"
    return f"an array of {x.dtype} of shape {x.shape}"


def _accepted_by(
    name: str, value_fn: ValueFn, extra_args: Mapping[str, object]
) -> Mapping[str, object]:
    """The extra arguments for `value_fn`; an error if it does not accept them all."""
    try:
        signature = inspect.signature(value_fn)
    except ValueError:  # written in C: the call itself will raise
        return extra_args
    arguments = signature.parameters.values()
    takes_any = any(a.kind is a.VAR_KEYWORD for a in arguments)
    by_name = [a.name for a in arguments if a.kind is not a.POSITIONAL_ONLY]
    others = [key for key in extra_args if key not in by_name]
    if not takes_any:
        # Another optimizer in the chain or partition may need these functions.
        known = [key for key in others if key in FUNCTIONS_OF_PARAMS]
        extra_args = {k: x for k, x in extra_args.items() if k not in known}
        others = [key for key in others if key not in known]
    if others and not takes_any:
        raise TypeError(
            f"{name}: Unexpected keyword arguments {others}: value_fn takes {by_name}. "
            "Pass only arguments that it takes."
        )
    try:
        signature.bind(None, **extra_args)
    except TypeError as error:
        raise TypeError(
            f"{name}: value_fn is called with the params and the keyword arguments "
            f"{list(extra_args)}: {error}. Pass its arguments to `update` by name."
        ) from None
    return extra_args
