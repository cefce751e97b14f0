"""Checks of functions, batches, axes and accumulators before anything runs."""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from .. import check
from ..core import Real
from ..tree import first_difference


def check_call(
    name: str,
    fun: object,
    microbatch_size: int | None,
    num_real_microbatches: Real | None,
) -> None:
    """Check the function and the numbers of microbatches."""
    check.function(name, fun=fun)
    if microbatch_size is not None:
        check.period(name, microbatch_size=microbatch_size)
    if num_real_microbatches is not None:
        check.whole(name, num_real_microbatches=num_real_microbatches)


def integers(name: str, **value: int | Sequence[int]) -> tuple[int, ...]:
    """One keyword argument, an integer or a sequence of integers, as a tuple."""
    ((argument, x),) = value.items()
    numbers = tuple(x) if isinstance(x, Sequence) else (x,)
    if not all(isinstance(n, int | np.integer) for n in numbers):
        raise TypeError(
            f"{name}: {argument} is {x!r}, expected a whole number or a sequence of "
            "whole numbers."
        )
    return numbers


def strings(name: str, **value: str | Sequence[str]) -> tuple[str, ...]:
    """One keyword argument, a name or a sequence of names, as a tuple."""
    ((argument, x),) = value.items()
    names = (x,) if isinstance(x, str) else x
    if not isinstance(names, Sequence) or not all(isinstance(n, str) for n in names):
        raise TypeError(
            f"{name}: {argument} is {x!r}, expected a name or a sequence of names."
        )
    return tuple(names)


def check_tree(name: str, argument: str, prefix: PyTree, of: str, tree: PyTree) -> None:
    """Check that `prefix` is a prefix of `tree`."""
    try:
        jax.tree.structure(prefix, is_leaf=is_none).flatten_up_to(tree)
    except (KeyError, TypeError, ValueError):
        difference = first_difference(tree, prefix, (of, argument))
        raise ValueError(
            f"{name}: {difference}. Give `{argument}` the structure of the {of}, or "
            "one value for a whole subtree."
        ) from None


def is_array(x: object) -> bool:
    """Whether `x` can be in a batch: numbers or random keys."""
    return check.is_number(x) or hasattr(x, "dtype")


def is_none(x: object) -> bool:
    """Whether `x` is `None`: the axis of an array that is not a batch."""
    return x is None


def check_axes(name: str, axes: Sequence[object], args: Sequence[PyTree]) -> None:
    """Check that every array of a batch has the batch axis."""
    for i, (axis, arg) in enumerate(zip(axes, args, strict=True)):
        if not isinstance(axis, int):  # `None`, or a tree of axes
            continue
        for path, x in jax.tree_util.tree_leaves_with_path(arg):
            where = f"argument {i}{jax.tree_util.keystr(path)}"
            if not is_array(x):
                raise check.WrongArgument(
                    f"{name}: {where} {check.kind(x)}, expected an array."
                )
            if not -jnp.ndim(x) <= axis < jnp.ndim(x):
                raise ValueError(
                    f"{name}: {where} has shape {jnp.shape(x)}, expected a batch "
                    f"axis {axis}. Leave arguments without one out of the batches."
                )
