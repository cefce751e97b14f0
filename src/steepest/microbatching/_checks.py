"""What is asked of functions, batches, axes and accumulators before anything runs."""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from .. import check
from ..tree import first_difference


def check_call(
    name: str, fun: Any, microbatch_size: Any, num_real_microbatches: Any
) -> None:
    """That there is a function, and that the numbers can be."""
    check.function(name, fun=fun)
    if microbatch_size is not None:
        check.period(name, microbatch_size=microbatch_size)
    if num_real_microbatches is not None:
        check.whole(name, num_real_microbatches=num_real_microbatches)


def integers(who: str, **given: Any) -> tuple[int, ...]:
    """Whole numbers, one or a sequence, given by name."""
    ((name, x),) = given.items()
    found = tuple(x) if isinstance(x, Sequence) else (x,)
    if not all(isinstance(n, int | np.integer) for n in found):
        raise TypeError(
            f"{who}: {name} is {x!r}, expected a whole number or a sequence of them."
        )
    return found


def check_tree(who: str, name: str, prefix: PyTree, of: str, tree: PyTree) -> None:
    """That one tree begins as another does."""
    try:
        jax.tree.structure(prefix, is_leaf=is_none).flatten_up_to(tree)
    except (KeyError, TypeError, ValueError):
        difference = first_difference(tree, prefix, (of, name))
        raise ValueError(
            f"{who}: {difference}. Give `{name}` the structure of the {of}, or one for "
            "a whole subtree."
        ) from None


def is_array(x: Any) -> bool:
    """Whether `x` can be in a batch: numbers, but also random keys."""
    return check.is_number(x) or hasattr(x, "dtype")


def is_none(x: Any) -> bool:
    """Whether there is nothing: no axis, for an array that is no batch."""
    return x is None


def check_axes(name: str, axes: Sequence[Any], args: Sequence[Any]) -> None:
    """That every array of a batch has the axis of the batch."""
    for i, (axis, arg) in enumerate(zip(axes, args, strict=True)):
        if not isinstance(axis, int):  # none, or a tree of them
            continue
        for path, x in jax.tree_util.tree_leaves_with_path(arg):
            where = f"argument {i}{jax.tree_util.keystr(path)}"
            if not is_array(x):
                raise check.WrongArgument(
                    f"{name}: {where} {check.said_of(x)}, expected an array."
                )
            if not -jnp.ndim(x) <= axis < jnp.ndim(x):
                raise ValueError(
                    f"{name}: {where} has shape {jnp.shape(x)}, expected an axis "
                    f"{axis}, of examples. Leave out of the batches what is none."
                )
