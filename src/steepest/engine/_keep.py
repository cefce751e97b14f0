"""How a state is kept: what any optimizer may be asked, whatever its formula."""

import inspect
from collections.abc import Callable
from dataclasses import replace
from difflib import get_close_matches
from functools import wraps
from typing import Any, TypedDict, TypeVar

import jax
import jax.numpy as jnp

from ..core import (
    AnyTransformation,
    dtype,
    GradientTransformationExtraArgs,
    Params,
    Rule,
)
from ..numerics import increment, is_chosen, is_inexact, zero_count
from ._plan import plan_of
from ._stages import Link

F = TypeVar("F", bound=Callable[..., GradientTransformationExtraArgs])


class Keep(TypedDict, total=False):
    """The keywords that every optimizer takes besides its own. See `keeping`."""

    memory_dtype: Any
    keep_count: bool


def keeping(
    tx: AnyTransformation, *, memory_dtype: Any = None, keep_count: bool = False
) -> GradientTransformationExtraArgs:
    """`tx`, whose state is kept in another way. Every optimizer takes these keywords.

    Args:
        tx: any transformation. One that is not made of rules must leave the dtypes of
            its state as it finds them.
        memory_dtype: the dtype of all that is remembered of each leaf, but for single
            numbers and for what has a dtype of its own, such as `mu_dtype`. What is
            computed of it is computed in float32 or wider all the same.
        keep_count: whether to count the steps also where the learning rate is a
            number. Then a schedule may take its place later, and the state, or a
            checkpoint of it, still fits.

    >>> import jax.numpy as jnp, steepest
    >>> tx = steepest.lion(1e-4, memory_dtype=jnp.bfloat16)
    >>> tx.init(jnp.ones(3))[0].mu.dtype
    dtype(bfloat16)
    """
    return _keep("keeping", tx, memory_dtype=memory_dtype, keep_count=keep_count)


_STORAGE = [
    x
    for x in inspect.signature(keeping).parameters.values()
    if x.name in Keep.__annotations__
]


def optimizer(recipe: F) -> F:
    """Give a recipe the storage keywords: in its signature, and in what it returns.

    In the source a recipe ends in `**keep: Unpack[Keep]`, for type checkers, and does
    not look at it. In `inspect.signature`, which Optax's `inject_hyperparams` reads,
    the keywords stand by name. A recipe that has one of them as an argument of its own
    applies that one itself.

    Args:
        recipe: a function that makes an optimizer.

    >>> import inspect, steepest
    >>> inspect.signature(steepest.sgd).parameters["keep_count"].default
    False
    """
    name = recipe.__name__
    signature = inspect.signature(recipe)
    own = [x for x in signature.parameters.values() if x.kind is not x.VAR_KEYWORD]
    storage = [x for x in _STORAGE if x.name not in signature.parameters]
    added = {x.name for x in storage}
    known = [x.name for x in (*own, *storage)]

    @wraps(recipe)
    def make(*args: Any, **kwargs: Any) -> GradientTransformationExtraArgs:
        how = {k: kwargs.pop(k) for k in added & kwargs.keys()}
        for k in kwargs:
            if k not in known:
                near = get_close_matches(k, known, 1)
                raise TypeError(
                    f"{name}: there is no argument `{k}`. "
                    + (f"Did you mean `{near[0]}`?" if near else f"There are {known}.")
                )
        tx = recipe(*args, **kwargs)
        return _keep(name, tx, **how) if how else tx

    make.__signature__ = signature.replace(  # pyright: ignore
        parameters=[*own, *storage]
    )
    return make  # pyright: ignore[reportReturnType]


def _keep(
    who: str,
    tx: AnyTransformation,
    memory_dtype: Any = None,
    keep_count: bool = False,
) -> GradientTransformationExtraArgs:
    dtype(who, memory_dtype=memory_dtype)

    def revised(link: Link) -> Link:
        body = link.body
        if not isinstance(body, Rule):
            if memory_dtype is None:
                return link
            narrow = lambda params: _cast(body.init(params), memory_dtype)
            return replace(link, body=body._replace(init=narrow))
        if keep_count and body.Counted is not None:
            body = _counting(body)
        if memory_dtype is not None:
            remember = {
                name: begin if is_chosen(begin) else _then_cast(begin, memory_dtype)
                for name, begin in body.remember.items()
            }
            body = body._replace(remember=remember)
        return replace(link, body=body)

    plan = plan_of(who, "tx", tx)
    return replace(plan, links=tuple(map(revised, plan.links))).pair


def _counting(rule: Rule) -> Rule:
    """A rule with a fixed number, that counts as if it had a schedule."""
    return rule._replace(
        State=rule.Counted,
        shared={"count": zero_count},
        prepare=lambda step, count: ({}, increment(count)),
        shows=lambda count: rule.shows() if rule.shows else {},
    )


def _then_cast(begin: Callable[[Any], Any], dtype: Any) -> Callable[[Any], Any]:
    return lambda p: _cast(begin(p), dtype)


def _cast(state: Params, dtype: Any) -> Params:
    """The arrays of a state in `dtype`, but for what a real dtype cannot hold."""

    def cast(x: Any) -> Any:
        if not is_inexact(x) or jnp.iscomplexobj(x) or jnp.ndim(x) == 0:
            return x
        return x.astype(dtype)

    return jax.tree.map(cast, state)
