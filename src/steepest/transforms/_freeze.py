"""Freezing some of the leaves."""

import jax
from jaxtyping import PyTree

from ..combine import masked, partition
from ..core import (
    AnyTransformation,
    as_inner,
    GradientTransformationExtraArgs,
    Params,
    transformation,
)
from ..engine import frozen, Mask, MaskOrFn


@transformation
def freeze(mask: MaskOrFn) -> GradientTransformationExtraArgs:
    """Freeze the leaves where `mask` is true; the others are unchanged.

    Frozen leaves stay frozen to the end of a chain. Later transformations, such as
    weight decay, do not move them, as they would after `set_to_zero`. An optimizer
    later in the chain still keeps memory for them; with `route` and
    `selective_transform` it does not.

    Args:
        mask: the leaves to freeze: a tree of booleans, a function of the params that
            returns one, or a regular expression for their paths, such as
            `"embed|norm"`.
    """
    return masked(frozen(), mask)


@transformation
def selective_transform(
    optimizer: AnyTransformation, *, freeze_mask: MaskOrFn
) -> GradientTransformationExtraArgs:
    """Apply `optimizer` to some leaves and freeze the others, which take no memory.

    Args:
        optimizer: updates the leaves where the mask is false.
        freeze_mask: the leaves to freeze: a tree of booleans, a function of the params
            that returns one, or a regular expression for their paths.

    >>> import jax.numpy as jnp, steepest
    >>> frozen = {"embed": True, "head": False}
    >>> tx = steepest.selective_transform(steepest.sgd(0.5), freeze_mask=frozen)
    >>> grads = {"embed": jnp.array([1.0]), "head": jnp.array([1.0])}
    >>> updates, _ = tx.update(grads, tx.init(grads))
    >>> float(updates["embed"][0]), float(updates["head"][0])
    (0.0, -0.5)
    """
    is_frozen = Mask("selective_transform", freeze_mask)
    inner = as_inner("selective_transform", "optimizer", optimizer)

    def labels(params: Params) -> PyTree:
        mask = is_frozen.tree(params)
        return jax.tree.map(lambda x: "freeze" if x else "train", mask)

    return partition({"train": inner, "freeze": frozen()}, labels)
