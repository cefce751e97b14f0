"""Apply a transformation to some of the leaves."""

from ..core import AnyTransformation, GradientTransformationExtraArgs, transformation
from ..engine import Mask, masked_plan, MaskOrFn, plan_of


@transformation
def masked(
    inner: AnyTransformation,
    mask: MaskOrFn,
    *,
    mask_compatible_extra_args: bool = False,
) -> GradientTransformationExtraArgs:
    """Apply `inner` to the leaves where `mask` is true; the others are unchanged.

    If no other transformation scales the unchanged leaves, they *move by the gradient,
    uphill*, so `masked(adam(1e-3), mask)` alone is rarely right. Use `route` to give
    every leaf an optimizer, or to freeze some leaves.

    Args:
        inner: any transformation. It keeps memory only for the selected leaves. The
            extra argument `grad`, and the params of the functions `value_fn` and
            `obj_fn`, are restricted to the selected leaves.
        mask: booleans in the structure of the params, where one boolean may stand for a
            whole subtree; a function from the params to such booleans; or a string, a
            regular expression that may match anywhere in the path of a leaf, such as
            `encoder/0/kernel`.
        mask_compatible_extra_args: whether to mask all extra arguments that have the
            structure of the updates.

    >>> import jax.numpy as jnp, steepest
    >>> tx = steepest.masked(steepest.scale(10.0), {"w": True, "b": False})
    >>> grads = {"w": jnp.array([1.0]), "b": jnp.array([1.0])}
    >>> updates, _ = tx.update(grads, tx.init(grads))
    >>> float(updates["w"][0]), float(updates["b"][0])
    (10.0, 1.0)
    """
    plan = plan_of("masked", "inner", inner)
    return masked_plan(Mask("masked", mask, mask_compatible_extra_args), plan).pair
