"""How a state is kept: what any optimizer may be asked, whatever its formula."""

import inspect
from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from typing import Any, TypeVar

import jax
import jax.numpy as jnp

from ... import check
from ...core import (
    AnyTransformation,
    GradientTransformationExtraArgs,
    Params,
    Rule,
    transformation,
)
from ...numerics import is_chosen, is_inexact
from ..run import counting, Link, plan_of

F = TypeVar("F", bound=Callable[..., GradientTransformationExtraArgs])

# The keywords that every optimizer takes besides its own. See `keeping`.
STORAGE = ("memory_dtype", "keep_count")


@transformation
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


def optimizer(recipe: F) -> F:
    """Give a recipe its storage keywords, and what `transformation` gives.

    A recipe has the keywords `memory_dtype` and `keep_count` in its signature, and does
    not look at them: this applies them to what it returns. A recipe without one of them
    does not take it.

    Args:
        recipe: a function of module level that makes an optimizer.

    >>> import inspect, steepest
    >>> inspect.signature(steepest.sgd).parameters["keep_count"].default
    False
    """
    (recipe,) = check.function("optimizer", recipe=recipe)
    name = recipe.__name__

    @wraps(recipe)
    def stored(*args: Any, **kwargs: Any) -> GradientTransformationExtraArgs:
        how = {k: kwargs.pop(k) for k in STORAGE if k in kwargs}
        tx = recipe(*args, **kwargs)
        return _keep(name, tx, **how) if any(how.values()) else tx

    return transformation(stored)  # pyright: ignore[reportReturnType]


def _keep(
    who: str,
    tx: AnyTransformation,
    memory_dtype: Any = None,
    keep_count: bool = False,
) -> GradientTransformationExtraArgs:
    check.dtype(who, memory_dtype=memory_dtype)

    def revised(link: Link) -> Link:
        body = link.body
        if not isinstance(body, Rule):
            if memory_dtype is None:
                return link
            narrow = lambda params: _cast(body.init(params), memory_dtype)
            pair = GradientTransformationExtraArgs(narrow, body.update)
            return replace(link, body=pair)
        if keep_count and body.counted is not None:
            body = counting(body)
        if memory_dtype is not None:
            memory = {
                name: begin if is_chosen(begin) else Cast(begin, memory_dtype)
                for name, begin in body.memory.items()
            }
            body = replace(body, memory=memory)
        return replace(link, body=body)

    plan = plan_of(who, "tx", tx)
    return replace(plan, links=tuple(map(revised, plan.links))).pair


class Cast:
    """Where a memory begins, in another dtype."""

    def __init__(self, begin: Callable[..., Any], dtype: Any):
        self._begin, self._dtype = begin, dtype
        # The engine reads the numbers it asks for from its signature.
        self.__signature__ = inspect.signature(begin)

    def __call__(self, p: Any, **numbers: Any) -> Any:
        return _cast(self._begin(p, **numbers), self._dtype)


def _cast(state: Params, dtype: Any) -> Params:
    """The arrays of a state in `dtype`, but for what a real dtype cannot hold."""

    def cast(x: Any) -> Any:
        if not is_inexact(x) or jnp.iscomplexobj(x) or jnp.ndim(x) == 0:
            return x
        return x.astype(dtype)

    return jax.tree.map(cast, state)
