"""ACProp.

Zhuang et al., Momentum centering and asynchronous update for adaptive gradient methods,
2021, arXiv:2110.05454
"""

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array

from ..combine import chain
from ..core import (
    fraction,
    GradientTransformationExtraArgs,
    nonnegative,
    rate_given,
    Real,
    Rule,
    ScalarOrSchedule,
    Step,
    transformation,
)
from ..engine import lift, MaskOrFn, optimizer
from ..numerics import (
    after,
    debias,
    ema,
    first_moment,
    increment,
    root,
    second_moment,
    spread,
    zero_count,
)
from ..optimizers import ScaleByBeliefState
from ..transforms import add_decayed_weights, scale_by_learning_rate


@transformation
def scale_by_acprop(
    b1: Real = 0.9, b2: Real = 0.999, eps: Real = 1e-16, eps_root: Real = 1e-16
) -> GradientTransformationExtraArgs:
    """Divide the gradient by how far the gradients before it were from their mean.

        v   = nu / (1 - b2^(t-1)), in the first step 1
        u   = g / (sqrt(v) + eps)
        nu <- b2 nu + (1 - b2) |g - mu|^2 + eps_root
        mu <- b1 mu + (1 - b1) g

    The gradient is not among those it is divided by: the update is asynchronous.

    Args:
        b1: how slowly `mu` forgets, in [0, 1).
        b2: how slowly `nu` forgets, in [0, 1).
        eps: keeps `u` finite where gradients were as expected.
        eps_root: the same, added to `nu` at every step, so that it piles up there.
    """
    b1, b2 = fraction("scale_by_acprop", b1=b1, b2=b2)
    (eps,) = nonnegative("scale_by_acprop", eps=eps)
    (eps_root,) = nonnegative.must("scale_by_acprop", eps_root=eps_root)

    def prepare(step: Step, count: Array) -> tuple[dict[str, Array], Array]:
        first = count == 0
        # In the first step nothing is averaged yet: 1 keeps the division finite.
        c2 = jnp.where(first, 1, debias(b2, count))
        return {"first": first, "c2": c2}, increment(count)

    def leaf(n: Any, g: Array, p: Array | None, mu: Array, nu: Array) -> Any:
        v = jnp.where(n.first, 1, nu / n.c2)
        u = g / (root(v) + eps)
        nu = spread(nu, g - mu, b2, eps_root)
        mu = after(ema(mu, g, b1), nu)  # the old one is read for `nu`
        return u, mu, nu

    return lift(
        Rule(
            "scale_by_acprop",
            ScaleByBeliefState,
            leaf,
            remember={"mu": first_moment(), "nu": second_moment()},
            shared={"count": zero_count},
            prepare=prepare,
        )
    )


@optimizer
def acprop(
    learning_rate: ScalarOrSchedule,
    b1: Real = 0.9,
    b2: Real = 0.999,
    eps: Real = 1e-16,
    eps_root: Real = 1e-16,
    weight_decay: ScalarOrSchedule = 0.0,
    mask: MaskOrFn | None = None,
    *,
    memory_dtype: Any = None,
    keep_count: bool = False,
) -> GradientTransformationExtraArgs:
    """ACProp: `p <- p - learning_rate (u + weight_decay p)`.

    Args:
        learning_rate: a number, or a function of the count.
        b1, b2, eps, eps_root: as for `scale_by_acprop`.
        weight_decay: the pull towards zero; the learning rate multiplies it too.
        mask: which leaves decay, as for `masked`; by default all.
        memory_dtype, keep_count: as for `keeping`.

    >>> from steepest import contrib
    >>> tx = contrib.acprop(learning_rate=0.1)
    >>> params = jnp.array([1.0, -2.0])
    >>> updates, state = tx.update(params, tx.init(params), params)
    >>> [round(float(u), 3) for u in updates]
    [-0.1, 0.2]
    """
    return chain(
        scale_by_acprop(b1, b2, eps, eps_root),
        add_decayed_weights(weight_decay, mask),
        scale_by_learning_rate(rate_given("acprop", learning_rate)),
    )
