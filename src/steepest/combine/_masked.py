"""Transformations of some of the leaves."""

from ..core import AnyTransformation, GradientTransformationExtraArgs, transformation
from ..engine import Mask, masked_plan, MaskOrFn, plan_of


@transformation
def masked(
    inner: AnyTransformation,
    mask: MaskOrFn,
    *,
    mask_compatible_extra_args: bool = False,
) -> GradientTransformationExtraArgs:
    """Apply `inner` to the leaves where `mask` is true; the others pass as they are.

    To pass as they are is to *move by the gradient, uphill*, if nothing else scales
    them: `masked(adam(1e-3), mask)` alone is hardly ever what is meant. To give every
    leaf an optimizer, or to freeze some, use `route`.

    Args:
        inner: any transformation. It keeps memory only for the leaves it sees. If it is
            given a function of the params, `value_fn` or `obj_fn`, it gets one of the
            params it sees; `grad` it gets for the leaves it sees.
        mask: booleans in the structure of the params, one for a whole subtree where
            that is enough; a function that makes them of the params; or a string, a
            regular expression that is found in the paths of the chosen leaves, as for
            `matching`.
        mask_compatible_extra_args: whether all extra arguments that have the structure
            of the updates are masked too.

    >>> import jax.numpy as jnp, steepest
    >>> tx = steepest.masked(steepest.scale(10.0), {"w": True, "b": False})
    >>> grads = {"w": jnp.array([1.0]), "b": jnp.array([1.0])}
    >>> updates, _ = tx.update(grads, tx.init(grads))
    >>> float(updates["w"][0]), float(updates["b"][0])
    (10.0, 1.0)
    """
    plan = plan_of("masked", "inner", inner)
    return masked_plan(Mask("masked", mask, mask_compatible_extra_args), plan).pair
