"""Cautious optimizers: take a step only where it agrees with the gradient.

Liang et al., Cautious optimizers: improving training with one line of code, 2024,
arXiv:2411.16085
"""

import jax.numpy as jnp
from jaxtyping import Array

from .. import check
from ..core import (
    AnyTransformation,
    as_inner,
    AxisName,
    EmptyState,
    GradientTransformationExtraArgs,
    mesh_axes,
    MeshAxes,
    OptState,
    Params,
    Real,
    Rule,
    transformation,
    Updates,
)
from ..engine import lift, WrapperInfo, wrapping
from ..numerics import parts_over, split_over, sum_over
from ._parts import names_in, RATE

_ANY_SIGN = (RATE, "scale_by_schedule")


def cautious_formula(
    g: Array, p: Array, *, sign: int, floor: Real, axes: MeshAxes | None
) -> Array:
    """`u = g mask / max(mean(mask), floor)`, where `mask` is 1 where `sign g p > 0`.

    Here `g` is an update, and `p` the gradient that it was computed from.
    """
    # The product of the signs: that of two small numbers would underflow.
    product = jnp.real(jnp.sign(g) * jnp.conj(jnp.sign(p)))
    mask = (sign * product > 0).astype(product.dtype)
    where = split_over(axes, g, p)
    size = g.size * parts_over(where)
    share = sum_over(where, jnp.sum(mask)) / max(size, 1)
    # A product and not `where`, so that a NaN in the update is not hidden.
    return g * (mask / jnp.maximum(share, floor))


@transformation
def cautious(
    inner: AnyTransformation,
    *,
    descent: bool = True,
    floor: Real = 1e-3,
    axis_name: AxisName = None,
) -> GradientTransformationExtraArgs:
    """Apply `inner`, but only where its update and the gradient agree.

        u    = the update of `inner` for the gradient g
        mask = 1 where a step along u goes down the gradient, else 0
        u   <- u mask / max(mean(mask), floor)

    The mean is over one leaf. The state is that of `inner`.

    `cautious(adam(1e-3))` wraps a complete optimizer, whose updates are added to the
    params: it keeps the entries with `u g < 0`. With `descent=False` it wraps a
    transformation that comes before the learning rate, such as `scale_by_adam()`, whose
    updates point along the gradient: it keeps those with `u g > 0`.

    Around an optimizer with weight decay, the decay is masked too. The paper adds it
    after the mask:

        chain(                                                  # cautious AdamW
            cautious(scale_by_adam(), descent=False),
            add_decayed_weights(0.1),
            scale_by_learning_rate(1e-3),
        )

    For cautious Lion, use `scale_by_lion()` in its place; for cautious Muon, which is
    for matrices, `scale_by_polar()`.

    Args:
        inner: any transformation; it receives the extra arguments.
        descent: whether the updates of `inner` go down the gradient, as those of an
            optimizer do; `False` if its learning rate comes later in a chain.
        floor: lower bound of the mean of the mask. Where few entries agree, it bounds
            the factor by which they grow.
        axis_name: inside `jax.shard_map`, the mesh axes over which the params are
            sharded. Without it, each device uses only its own shard.

    >>> import jax.numpy as jnp, steepest
    >>> tx = steepest.cautious(steepest.sgd(1.0, momentum=0.9))
    >>> p = jnp.array([0.0, 0.0])
    >>> _, state = tx.update(jnp.array([1.0, 1.0]), tx.init(p), p)
    >>> u, state = tx.update(jnp.array([1.0, -0.1]), state, p)
    >>> [round(float(x), 3) for x in u]  # -1.9 and -0.8 without `cautious`
    [-3.8, -0.0]
    """
    name = "cautious"
    tx = as_inner(name, "inner", inner)
    check.flag(name, descent=descent)
    (floor,) = check.measurable.must(name, floor=floor)
    _check_sign(tx, descent)
    numbers = {
        "sign": -1 if descent else 1,
        "floor": floor,
        "axes": mesh_axes(name, axis_name),
    }
    mask = lift(Rule(name, cautious_formula, numbers=numbers, kind="whole"))

    def update(
        updates: Updates,
        state: OptState,
        params: Params | None = None,
        **extra_args: object,
    ) -> tuple[Updates, OptState]:
        us, state = tx.update(updates, state, params, **extra_args)
        # The rule gets the gradient in place of the params.
        us, _ = mask.update(us, EmptyState(), updates)
        return us, state

    return wrapping(tx.init, update, WrapperInfo(name, tx, ""))


def _check_sign(tx: AnyTransformation, descent: bool) -> None:
    """Raise an error if the sign of the updates of `tx` contradicts `descent`."""
    names = names_in(tx)
    if not descent and RATE in names:
        raise ValueError(
            "cautious: descent is False, but inner contains a learning rate, so its "
            "updates go down the gradient. Omit `descent=False`, or move the learning "
            "rate out of inner: `chain(cautious(scale_by_adam(), descent=False), "
            "scale_by_learning_rate(1e-3))`."
        )
    along = lambda name: name.startswith("scale_by_") and name not in _ANY_SIGN
    if descent and names and all(map(along, names)):
        raise ValueError(
            f"cautious: inner is {', '.join(names)}, without a learning rate, so its "
            "updates point along the gradient, but descent is True. Pass "
            "`descent=False`, or an optimizer, such as `adam(1e-3)`."
        )
