"""What all optimizers of matrices share: the groups of leaves, and AdamW for the rest.

def matrices(words):                        # what is left when this is written
    return scale_by_name(..., words)

return grouped("name", matrices, learning_rate, weight_decay, ..., rest)
"""

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import NamedTuple

import jax.numpy as jnp
from jax.typing import DTypeLike
from jaxtyping import Array

from .. import check
from ..combine import blocked, chain, partition
from ..core import (
    GradientTransformationExtraArgs,
    Param,
    Real,
    ScalarOrSchedule,
)
from ..engine import MaskOrFn
from ..optimizers import adamw
from ..transforms import add_decayed_weights, scale_by_learning_rate
from ._groups import ADAM, Sorting, Words


class Rest(NamedTuple):
    """The numbers of AdamW for the leaves that are not matrices."""

    learning_rate: ScalarOrSchedule | None  # by default that of the matrices
    b1: Real
    b2: Real
    eps: Real
    weight_decay: ScalarOrSchedule | None  # by default that of the matrices


def _nothing(words: Words) -> Sequence[GradientTransformationExtraArgs]:
    """No transformations."""
    return ()


def grouped(
    name: str,
    matrices: Callable[[Words], Sequence[GradientTransformationExtraArgs]],
    learning_rate: ScalarOrSchedule,
    weight_decay: ScalarOrSchedule,
    weight_decay_mask: MaskOrFn | None,
    mu_dtype: DTypeLike | None,
    stacked: str | None,
    routes: Mapping[str, str] | None,
    rest: Rest,
    last: Callable[[Words], Sequence[GradientTransformationExtraArgs]] = _nothing,
    others: Callable[[MaskOrFn], GradientTransformationExtraArgs] | None = None,
) -> GradientTransformationExtraArgs:
    """An optimizer for the matrices of hidden layers, and AdamW for all other leaves.

        p <- p - learning_rate (u + weight_decay p)

    Args:
        name: name of the optimizer: the label of the matrices, the word for them in
            `routes`, and the name used in error messages.
        matrices: makes the transformations that compute `u`, one after the other, from
            the words for the last axes of their leaves.
        learning_rate: a number or a schedule.
        weight_decay: weight decay coefficient of the matrices.
        weight_decay_mask: the leaves to decay; by default all but vectors, norms and
            biases.
        mu_dtype: dtype of AdamW's mean.
        stacked: a pattern for leaves whose first axis indexes layers.
        routes: maps a pattern to `name`, "adam", or a word for each axis.
        rest: the numbers of AdamW.
        last: makes the transformations that follow weight decay, from the words.
        others: makes the optimizer of all other leaves, instead of AdamW, from the mask
            of weight decay.
    """
    check_rest(name, rest)
    sorting = Sorting(name, stacked, routes)
    decays = sorting.decaying if weight_decay_mask is None else weight_decay_mask
    parts = {
        label: chain(
            *matrices(words),
            add_decayed_weights(weight_decay, decays),
            *last(words),
            scale_by_learning_rate(check.rate_given(name, learning_rate)),
        )
        for label, words in sorting.sides.items()
    }
    if others is not None:
        return partition({**parts, ADAM: others(decays)}, sorting)
    rate = learning_rate if rest.learning_rate is None else rest.learning_rate
    decay = weight_decay if rest.weight_decay is None else rest.weight_decay
    return beside_adamw(sorting, parts, rate, decay, decays, mu_dtype, rest)


def in_blocks(
    name: str,
    matrices: Callable[[Words], Sequence[GradientTransformationExtraArgs]],
    size: int | None,
) -> Callable[[Words], Sequence[GradientTransformationExtraArgs]]:
    """`matrices` of `grouped`, for blocks of the matrices.

    Args:
        name: name used in error messages.
        matrices: makes transformations from the words for the last axes of their
            leaves.
        size: the side of a block; `None` for whole matrices.
    """
    if size is None:
        return matrices
    (side,) = check.period(name, block_size=size)

    def blocks(words: Words) -> list[GradientTransformationExtraArgs]:
        rows = words.count(words[0])
        parts = matrices((words[0], words[-1]))
        inner = chain(*parts) if len(parts) > 1 else parts[0]
        return [blocked(inner, side, axes=(rows, len(words) - rows))]

    return blocks


def check_rest(name: str, rest: Rest) -> None:
    """Check the numbers of AdamW.

    Args:
        name: name used in error messages.
        rest: the numbers.
    """
    check.fraction(name, adam_b1=rest.b1, adam_b2=rest.b2)
    check.nonnegative(name, adam_eps=rest.eps)
    adams = {
        "adam_learning_rate": rest.learning_rate,
        "adam_weight_decay": rest.weight_decay,
    }
    for key, x in adams.items():
        if not callable(x) and x is not None:
            check.finite(name, **{key: x})


def beside_adamw(
    sorting: Sorting,
    parts: Mapping[str, GradientTransformationExtraArgs],
    learning_rate: ScalarOrSchedule,
    weight_decay: ScalarOrSchedule,
    decays: MaskOrFn,
    mu_dtype: DTypeLike | None,
    rest: Rest,
) -> GradientTransformationExtraArgs:
    """Complete optimizers for the groups of matrices, and AdamW for all other leaves.

    Args:
        sorting: assigns each leaf to a group.
        parts: the optimizer of each group of matrices, by label.
        learning_rate: learning rate of AdamW.
        weight_decay: weight decay of AdamW.
        decays: the leaves that AdamW decays.
        mu_dtype: dtype of AdamW's mean.
        rest: the other numbers of AdamW.
    """
    others = adamw(
        learning_rate,
        rest.b1,
        rest.b2,
        rest.eps,
        mu_dtype=mu_dtype,
        weight_decay=weight_decay,
        mask=decays,
    )
    return partition({**parts, ADAM: others}, sorting)


def folded(shape: tuple[int, ...], *, words: Words) -> tuple[int, ...]:
    """The shape of a tensor viewed as a stack of matrices.

    Args:
        shape: shape of the tensor.
        words: `in` or `out` for each of the last axes.
    """
    first = len(shape) - len(words)
    second = first + words.count(words[0])
    return *shape[:first], prod(shape[first:second]), prod(shape[second:])


def unchanged(g: Array) -> Array:
    """`u = g`: all is left to the matrix formula."""
    return g


class NotMatrix(NamedTuple):
    """A `check_leaf` that refuses leaves with too few axes."""

    ndim: int
    recipe: str  # the optimizer that passes other leaves to AdamW
    real: bool = False  # whether to refuse complex leaves, too

    def __call__(self, g: Param) -> str | None:
        if g.ndim < self.ndim:
            return (
                f"has shape {g.shape}, expected a matrix. Use `{self.recipe}`, which "
                "passes other leaves to AdamW."
            )
        if self.real and jnp.issubdtype(g.dtype, jnp.complexfloating):
            return (
                f"is {g.dtype}, expected a real matrix. Put "
                "`contrib.split_real_and_imaginary` around the optimizer."
            )
        return None
