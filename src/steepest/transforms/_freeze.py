"""Leaves that hold still."""

from typing import Any

import jax

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
    """Hold still the leaves where `mask` is true; the others pass as they are.

    They hold still to the end of a chain: what comes after it, weight decay for one,
    does not move them again, as it would after `set_to_zero`. An optimizer after it
    keeps memory for them nevertheless; `route` and `selective_transform` keep none.

    Args:
        mask: as for `masked`; a pattern such as `"embed|norm"` freezes what it finds.
    """
    return masked(frozen(), mask)


@transformation
def selective_transform(
    optimizer: AnyTransformation, *, freeze_mask: MaskOrFn
) -> GradientTransformationExtraArgs:
    """`optimizer` for some leaves; the others hold still and take no memory.

    Args:
        optimizer: for the leaves where the mask is false.
        freeze_mask: true where a leaf is to hold still; as for `masked`.

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

    def labels(params: Params) -> Any:
        mask = is_frozen.tree(params)
        return jax.tree.map(lambda x: "freeze" if x else "train", mask)

    return partition({"train": inner, "freeze": frozen()}, labels)
