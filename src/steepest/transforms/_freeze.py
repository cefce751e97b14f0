"""Leaves that hold still."""

from typing import Any

import jax

from ..combine import masked, partition
from ..core import AnyTransformation, GradientTransformationExtraArgs, Params
from ..engine import MaskOrFn
from ._identity import set_to_zero


def freeze(mask: MaskOrFn) -> GradientTransformationExtraArgs:
    """Hold still the leaves where `mask` is true; the others pass as they are.

    Put it last in a chain: what comes after it, weight decay for one, moves them again.

    Args:
        mask: as for `masked`.
    """
    return masked(set_to_zero(), mask)


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

    def labels(params: Params) -> Any:
        mask = freeze_mask(params) if callable(freeze_mask) else freeze_mask
        return jax.tree.map(lambda x: "freeze" if x else "train", mask)

    return partition({"train": optimizer, "freeze": set_to_zero()}, labels)
