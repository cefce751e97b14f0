"""MADGRAD.

Defazio and Jelassi, Adaptivity without compromise: a momentumized, adaptive, dual
averaged gradient method for stochastic optimization, 2021, arXiv:2101.11075
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax.typing import DTypeLike
from jaxtyping import Array, Int

from .. import check
from ..combine import chain
from ..core import (
    gives,
    GradientTransformationExtraArgs,
    like_optax,
    Params,
    Real,
    Rule,
    ScalarOrSchedule,
    transformation,
    Updates,
)
from ..engine import lift, optimizer
from ..numerics import (
    abs_sq,
    copy_of,
    cube_root,
    increment,
    number_or_schedule,
    second_moment,
    wide_moment,
    zero_count,
)
from ..transforms import add_decayed_weights


@like_optax
class MadgradState(NamedTuple):
    """State of MADGRAD: a step count, and three arrays per leaf."""

    count: Int[Array, ""]  # number of steps taken
    grad_sum_sq: Updates  # nu, the weighted sum of |g|^2
    s: Updates  # the weighted sum of g
    x0: Params  # the initial params


@gives("c")
def madgrad_weight(
    count: Array, *, learning_rate: Real, eps: Real
) -> tuple[dict[str, Array], Array]:
    """`c`, the weight of this gradient."""
    t = increment(count)
    return {"c": (jnp.asarray(learning_rate) + eps) * jnp.sqrt(t.astype(float))}, t


def madgrad_formula(
    g: Array,
    p: Array,
    grad_sum_sq: Array,
    s: Array,
    x0: Array,
    *,
    momentum: Real,
    eps: Real,
    c: Array,
) -> tuple[Array, Array, Array, Array]:
    """One step of MADGRAD for one array."""
    s = s + c * g
    nu = grad_sum_sq + c * abs_sq(g)
    cbrt = jnp.copysign(cube_root(jnp.abs(nu)), nu)  # negative if the learning rate is
    z = x0 - s / (cbrt + eps)
    return (1 - momentum) * (z - p), nu, s, x0


@transformation
def scale_by_madgrad(
    learning_rate: ScalarOrSchedule, momentum: Real = 0.9, eps: Real = 1e-6
) -> GradientTransformationExtraArgs:
    """Move towards the point that dual averaging of all gradients reaches.

        c   = (learning_rate + eps) sqrt(t)
        s  <- s + c g
        nu <- nu + c |g|^2
        z   = x0 - s / (cbrt(nu) + eps)
        u   = (1 - momentum) (z - p)

    `u` is the step itself, downhill.

    Args:
        learning_rate: a number, or a schedule (a function of the step count).
        momentum: weight of `p` in the average with `z`, in [0, 1).
        eps: keeps `u` finite where the gradient is zero.
    """
    name = "scale_by_madgrad"
    (momentum,) = check.fraction(name, momentum=momentum)
    (eps,) = check.nonnegative(name, eps=eps)
    rate = number_or_schedule(check.finite, name, learning_rate=learning_rate)
    return lift(
        Rule(
            name,
            madgrad_formula,
            MadgradState,
            memory={
                "grad_sum_sq": second_moment(),
                "s": wide_moment().exact,
                "x0": copy_of,
            },
            shared={"count": zero_count},
            numbers={"learning_rate": rate, "momentum": momentum, "eps": eps},
            per_step=madgrad_weight,
        )
    )


@optimizer
def madgrad(
    learning_rate: ScalarOrSchedule,
    momentum: Real = 0.9,
    weight_decay: ScalarOrSchedule = 0.0,
    eps: Real = 1e-6,
    *,
    memory_dtype: DTypeLike | None = None,
    keep_count: bool = False,
) -> GradientTransformationExtraArgs:
    """MADGRAD: `p <- p + u`, `u` from `scale_by_madgrad` of `g + weight_decay p`.

    Args:
        learning_rate: a number, or a schedule (a function of the step count).
        momentum: weight of `p` in the average with the new point, in [0, 1).
        weight_decay: weight decay coefficient; the decay is added to the gradient. It
            is not decoupled: use a smaller value than for AdamW, or zero.
        eps: keeps `u` finite where the gradient is zero.
        memory_dtype: dtype of the arrays in the state that have no option of their own,
            such as `mu_dtype`, or where it is `None`; by default that of the params, or
            wider. With "int8", "int4" or "float8", averages for large matrices are
            stored in 8 or 4 bits: see `keeping`.
        keep_count: whether to count the steps even if the learning rate is a number, so
            that a schedule can replace it later.

    >>> import jax.numpy as jnp
    >>> from steepest import contrib
    >>> tx = contrib.madgrad(learning_rate=0.1)
    >>> params = jnp.array([1.0, -2.0])
    >>> updates, state = tx.update(params, tx.init(params), params)
    >>> [round(float(u), 3) for u in updates]
    [-0.022, 0.027]
    """
    return chain(
        add_decayed_weights(weight_decay),
        scale_by_madgrad(learning_rate, momentum, eps),
    )
