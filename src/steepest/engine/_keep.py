"""How a state is kept: what any optimizer may be asked, whatever its formula."""

import inspect
from collections.abc import Callable
from dataclasses import replace
from difflib import get_close_matches
from typing import Any, TypedDict

import jax
import jax.numpy as jnp

from ..core import (
    AnyTransformation,
    as_inner,
    dtype,
    GradientTransformationExtraArgs,
    Params,
    Rule,
)
from ..numerics import increment, is_chosen, is_inexact, zero_count
from ._plan import plan_of
from ._stages import Link


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


def kept(
    maker: Callable[..., Any], how: Keep, tx: AnyTransformation
) -> GradientTransformationExtraArgs:
    """`tx` as the maker of an optimizer returns it, kept as its caller has asked.

    Args:
        maker: the function that was called.
        how: the keywords it does not know itself.
        tx: what it has made.
    """
    who = maker.__name__
    for name in how:
        if name not in Keep.__annotations__:
            own = [
                k
                for k, x in inspect.signature(maker).parameters.items()
                if x.kind != x.VAR_KEYWORD
            ]
            known = [*own, *Keep.__annotations__]
            near = get_close_matches(name, known, 1)
            raise TypeError(
                f"{who}: there is no argument `{name}`. "
                + (f"Did you mean `{near[0]}`?" if near else f"There are {known}.")
            )
    return _keep(who, tx, **how) if how else as_inner(who, "tx", tx)


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
