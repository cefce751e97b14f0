"""Convert states and transformations to and from Optax, even during a run."""

import importlib
import inspect
import sys
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, overload, TypeGuard

import jax
from jaxtyping import PyTree

from .. import (
    check,
    combine,
    contrib,
    core,
    engine,
    matrix,
    optimizers,
    schedules,
    transforms,
)
from ..core import (
    AnyTransformation,
    as_inner,
    GradientTransformationExtraArgs,
    OptState,
    Params,
    Updates,
)

Convert = Callable[[PyTree], PyTree]


@overload
def from_optax(state: AnyTransformation) -> GradientTransformationExtraArgs: ...
@overload
def from_optax(state: OptState) -> OptState: ...
def from_optax(state: OptState | AnyTransformation) -> OptState | AnyTransformation:
    """Convert a state of Optax to steepest: the same arrays in steepest's classes.

    For the same optimizer, both have the same class names, fields and nesting. Trees of
    params, plain or masked, stay the same. Optax need not be installed.

    A transformation of Optax becomes one that computes the same, with states of
    steepest. Inside a chain of steepest this is optional: without conversion, only its
    states have Optax's classes.

    Args:
        state: a state of Optax, a tree that contains some, or a transformation of
            Optax.

    >>> import optax, steepest
    >>> steepest.from_optax((optax.EmptyState(), 1.0))
    (EmptyState(), 1.0)
    >>> type(steepest.from_optax(optax.identity()).init(None)) is steepest.EmptyState
    True
    """
    if not isinstance(state, AnyTransformation):
        return _translate("from_optax", state, "optax", _ours())
    if _is_of(state, "steepest"):
        return as_inner("from_optax", "state", state)
    return GradientTransformationExtraArgs(
        *_converted("from_optax", state, outside=_to_ours, inside=_to_theirs)
    )


@overload
def to_optax(state: AnyTransformation) -> AnyTransformation: ...
@overload
def to_optax(state: OptState) -> OptState: ...
def to_optax(state: OptState | AnyTransformation) -> OptState | AnyTransformation:
    """Convert a state of steepest to Optax: the inverse of `from_optax`.

    A transformation becomes an `optax.GradientTransformationExtraArgs` that computes
    the same. Its states are in Optax's classes, except those that Optax lacks. Memory
    in few bits is decoded.

    Args:
        state: a state of steepest, a tree that contains some, or a transformation of
            steepest.

    >>> import optax, steepest
    >>> type(steepest.to_optax(steepest.EmptyState())) is optax.EmptyState
    True
    >>> state = steepest.to_optax(steepest.adam(0.1)).init(1.0)
    >>> type(state[0]) is optax.ScaleByAdamState
    True
    """
    classes = _theirs()
    if not isinstance(state, AnyTransformation):
        return _translate("to_optax", engine.decoded(state), "steepest", classes)
    if _is_of(state, "optax"):
        return state
    return classes["GradientTransformationExtraArgs"](
        *_converted("to_optax", state, outside=_to_theirs, inside=_to_ours)
    )


def _converted(
    name: str, tx: AnyTransformation, outside: Convert, inside: Convert
) -> tuple[Callable[..., OptState], Callable[..., tuple[Updates, OptState]]]:
    """The `init` and `update` of `tx`, with states of other classes.

    Args:
        name: name used in error messages.
        tx: any transformation.
        outside: converts to the classes that callers use.
        inside: converts to the classes that `tx` uses.
    """
    inner = as_inner(name, "state", tx)

    def init(params: Params) -> OptState:
        return outside(inner.init(inside(params)))

    def update(
        updates: Updates,
        state: OptState,
        params: Params | None = None,
        **extra_args: object,
    ) -> tuple[Updates, OptState]:
        # Updates and params too: masked ones contain a `MaskedNode`.
        args = inside((updates, state, params))
        return outside(inner.update(*args, **inside(extra_args)))

    return init, update


def _to_ours(tree: PyTree) -> PyTree:
    return _tree(tree, "optax", lambda x: _ours().get(type(x).__name__))


def _to_theirs(tree: PyTree) -> PyTree:
    return _tree(tree, "steepest", lambda x: _theirs().get(type(x).__name__))


def _translate(
    name: str, state: OptState, library: str, classes: Mapping[str, type]
) -> OptState:
    """`state`, with each named tuple of `library` as the class of the same name."""
    alone = jax.tree_util.all_leaves([state]) and not check.is_number(state)
    if alone and state is not None:
        raise TypeError(
            f"{name}: got a {type(state).__name__}, expected the state of an "
            "optimizer, or a transformation. Pass the state that `tx.init` or "
            "`tx.update` returned, or `tx` itself."
        )

    def class_for(x: Any) -> type:
        title = type(x).__name__
        cls: Any = classes.get(title)
        if cls is None or cls._fields != x._fields:
            has = "no such class" if cls is None else f"one with {cls._fields}"
            raise ValueError(
                f"{name}: the state holds a {title} with the fields {x._fields}, but "
                f"the other library has {has}. Convert the rest without it, and make "
                "this part with `init`."
            )
        return cls

    return _tree(state, library, class_for)


def _tree(tree: PyTree, library: str, cls_of: Callable[[Any], type | None]) -> PyTree:
    """`tree`, with each named tuple of `library` converted to the class `cls_of(x)`."""
    foreign = lambda x: hasattr(x, "_fields") and _is_of(x, library)

    def converted(x: PyTree) -> PyTree:
        if not foreign(x):
            return x
        cls = cls_of(x) or type(x)
        return cls(*(_tree(part, library, cls_of) for part in x))

    return jax.tree.map(converted, tree, is_leaf=foreign)


def _is_of(x: object, library: str) -> bool:
    """Whether the class of `x` is defined in `library`."""
    return type(x).__module__.split(".")[0] == library


@cache
def _ours() -> Mapping[str, type]:
    rooms = core, engine, combine, schedules, transforms, optimizers, matrix, contrib
    values = [x for room in rooms for _, x in inspect.getmembers(room)]
    return {x.__name__: x for x in values if _is_state(x)}


def _theirs() -> Mapping[str, type]:
    try:
        importlib.import_module("optax")
    except ImportError as error:
        raise ImportError(
            "to_optax: Optax cannot be imported, but its classes are needed. Install "
            "it with `pip install optax`."
        ) from error
    modules = [m for name, m in list(sys.modules.items()) if name.startswith("optax")]
    values = [x for m in modules for x in vars(m).values()]
    states = [x for x in values if _is_state(x)]
    return {x.__name__: x for x in states if x.__module__.startswith("optax")}


def _is_state(x: object) -> TypeGuard[type]:
    return isinstance(x, type) and hasattr(x, "_fields")
