"""States to and from Optax, so that a run can move in the middle."""

import importlib
import sys
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import jax

from .. import combine, contrib, core, engine, optimizers, schedules, transforms
from ..core import AnyTransformation, is_number, OptState


def from_optax(state: OptState) -> OptState:
    """A state of Optax as ours: the same arrays, in classes of the same names.

    Ours has the same fields and nesting as Optax's, for the same optimizer. Trees of
    params, plain or masked, pass as they are. Optax need not be installed.

    Args:
        state: a state that Optax made, or anything that holds some.

    >>> import optax, steepest
    >>> steepest.from_optax((optax.EmptyState(), 1.0))
    (EmptyState(), 1.0)
    """
    return _translate("from_optax", state, "optax", _ours())


def to_optax(state: OptState) -> OptState:
    """A state of ours as one of Optax: `from_optax`, the other way.

    Args:
        state: a state that steepest made, or anything that holds some.

    >>> import optax, steepest
    >>> isinstance(steepest.to_optax(steepest.EmptyState()), optax.EmptyState)
    True
    """
    return _translate("to_optax", state, "steepest", _theirs())


def _translate(
    who: str, state: OptState, library: str, classes: Mapping[str, type]
) -> OptState:
    """`state`, with each named tuple of `library` as the class of the same name."""
    alone = jax.tree_util.all_leaves([state]) and not is_number(state)
    if isinstance(state, AnyTransformation) or (alone and state is not None):
        raise TypeError(
            f"{who}: found a {type(state).__name__}, and the state of an optimizer is "
            "wanted. Pass what `tx.init(params)` or the last `tx.update` returned."
        )

    def foreign(x: Any) -> bool:
        own = type(x).__module__.split(".")[0]
        return own == library and hasattr(x, "_fields")

    def translated(x: Any) -> Any:
        if not foreign(x):
            return x
        name = type(x).__name__
        cls = classes.get(name)
        if cls is None or cls._fields != x._fields:  # pyright: ignore
            has = "nothing" if cls is None else f"the fields {cls._fields}"  # pyright: ignore
            raise ValueError(
                f"{who}: the state holds a {name} with the fields {x._fields}, and the "
                f"other library has {has} of that name. Translate the rest without it, "
                "and make this part with `init`."
            )
        return cls(*(tree(part) for part in x))

    def tree(x: Any) -> Any:
        return jax.tree.map(translated, x, is_leaf=foreign)

    return tree(state)


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
            "to_optax: Optax cannot be imported, and its classes are wanted. Install "
            "it with `pip install optax`."
        ) from error
    modules = [m for name, m in list(sys.modules.items()) if name.startswith("optax")]
    found = [x for m in modules for x in vars(m).values()]
    own: Callable[[Any], bool] = lambda x: x.__module__.startswith("optax")
    return {x.__name__: x for x in found if _is_state(x) and own(x)}


def _is_state(x: Any) -> bool:
    return isinstance(x, type) and hasattr(x, "_fields")
