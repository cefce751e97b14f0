"""States and transformations to and from Optax: a run can move in the middle."""

import importlib
import sys
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, overload

import jax

from .. import check, combine, contrib, core, engine, optimizers, schedules, transforms
from ..core import (
    AnyTransformation,
    as_inner,
    GradientTransformationExtraArgs,
    OptState,
    Params,
    Updates,
)

Convert = Callable[[Any], Any]


@overload
def from_optax(state: AnyTransformation) -> GradientTransformationExtraArgs: ...
@overload
def from_optax(state: OptState) -> OptState: ...
def from_optax(state: OptState | AnyTransformation) -> OptState | AnyTransformation:
    """A state of Optax as ours: the same arrays, in classes of the same names.

    Ours has the same fields and nesting as Optax's, for the same optimizer. Trees of
    params, plain or masked, pass as they are. Optax need not be installed.

    A transformation of Optax comes back as one that computes the same, whose states are
    ours. It need not be converted to stand in a chain of ours: only its states would
    then be of Optax's classes.

    Args:
        state: a state that Optax made, or anything that holds some, or a
            transformation of Optax.

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
    """A state of ours as one of Optax: `from_optax`, the other way.

    A transformation of ours comes back as an `optax.GradientTransformationExtraArgs`
    that computes the same, whose states are Optax's where Optax has the class.

    Args:
        state: a state that steepest made, or anything that holds some, or a
            transformation of steepest.

    >>> import optax, steepest
    >>> type(steepest.to_optax(steepest.EmptyState())) is optax.EmptyState
    True
    >>> state = steepest.to_optax(steepest.adam(0.1)).init(1.0)
    >>> type(state[0]) is optax.ScaleByAdamState
    True
    """
    classes = _theirs()
    if not isinstance(state, AnyTransformation):
        return _translate("to_optax", state, "steepest", classes)
    if _is_of(state, "optax"):
        return state
    return classes["GradientTransformationExtraArgs"](
        *_converted("to_optax", state, outside=_to_theirs, inside=_to_ours)
    )


def _converted(
    name: str, tx: AnyTransformation, outside: Convert, inside: Convert
) -> tuple[Callable[..., OptState], Callable[..., tuple[Updates, OptState]]]:
    """The `init` and `update` of `tx`, for a world of other classes.

    Args:
        name: name used in error messages.
        tx: any transformation.
        outside: to the classes of the callers.
        inside: to the classes that `tx` knows.
    """
    inner = as_inner(name, "state", tx)

    def init(params: Params) -> OptState:
        return outside(inner.init(inside(params)))

    def update(
        updates: Updates,
        state: OptState,
        params: Params | None = None,
        **extra_args: Any,
    ) -> tuple[Updates, OptState]:
        # The trees too: where a mask took something out, they have a `MaskedNode`.
        given = inside((updates, state, params))
        return outside(inner.update(*given, **inside(extra_args)))

    return init, update


def _to_ours(tree: Any) -> Any:
    return _tree(tree, "optax", lambda x: _ours().get(type(x).__name__))


def _to_theirs(tree: Any) -> Any:
    return _tree(tree, "steepest", lambda x: _theirs().get(type(x).__name__))


def _translate(
    who: str, state: OptState, library: str, classes: Mapping[str, type]
) -> OptState:
    """`state`, with each named tuple of `library` as the class of the same name."""
    alone = jax.tree_util.all_leaves([state]) and not check.is_number(state)
    if alone and state is not None:
        raise TypeError(
            f"{who}: got a {type(state).__name__}, expected the state of an optimizer "
            "or a transformation. Pass what `tx.init(params)` or the last `tx.update` "
            "returned, or `tx` itself."
        )

    def found(x: Any) -> type:
        name = type(x).__name__
        cls: Any = classes.get(name)
        if cls is None or cls._fields != x._fields:
            has = "nothing" if cls is None else f"the fields {cls._fields}"
            raise ValueError(
                f"{who}: the state holds a {name} with the fields {x._fields}, and the "
                f"other library has {has} of that name. Translate the rest without it, "
                "and make this part with `init`."
            )
        return cls

    return _tree(state, library, found)


def _tree(tree: Any, library: str, cls_of: Callable[[Any], type | None]) -> Any:
    """`tree`, with each named tuple of `library` as the class that `cls_of` finds."""
    foreign = lambda x: hasattr(x, "_fields") and _is_of(x, library)

    def translated(x: Any) -> Any:
        if not foreign(x):
            return x
        cls = cls_of(x) or type(x)
        return cls(*(_tree(part, library, cls_of) for part in x))

    return jax.tree.map(translated, tree, is_leaf=foreign)


def _is_of(x: Any, library: str) -> bool:
    """Whether the class of `x` was made in `library`."""
    return type(x).__module__.split(".")[0] == library


@cache
def _ours() -> Mapping[str, type]:
    rooms = core, engine, combine, schedules, transforms, optimizers, contrib
    found = [x for room in rooms for x in vars(room).values()]
    return {x.__name__: x for x in found if _is_state(x)}


def _theirs() -> Mapping[str, type]:
    try:
        importlib.import_module("optax")
    except ImportError as error:
        raise ImportError(
            "to_optax: Optax cannot be imported, expected its classes. Install it "
            "with `pip install optax`."
        ) from error
    modules = [m for name, m in list(sys.modules.items()) if name.startswith("optax")]
    found = [x for m in modules for x in vars(m).values()]
    own: Callable[[Any], bool] = lambda x: x.__module__.startswith("optax")
    return {x.__name__: x for x in found if _is_state(x) and own(x)}


def _is_state(x: Any) -> bool:
    return isinstance(x, type) and hasattr(x, "_fields")
