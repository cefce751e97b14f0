"""Adan.

Xie et al., Adan: adaptive Nesterov momentum algorithm for faster optimizing deep
models, 2022, arXiv:2208.06677
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
    Real,
    Rule,
    ScalarOrSchedule,
    transformation,
    Updates,
)
from ..engine import lift, MaskOrFn, optimizer
from ..numerics import (
    abs_sq,
    after,
    debias,
    ema,
    first_moment,
    increment,
    root,
    second_moment,
    zero_count,
)
from ..transforms import add_decayed_weights
from ._descend import descend


@like_optax
class ScaleByAdanState(NamedTuple):
    """State of Adan: a step count, and four arrays per leaf."""

    m: Updates  # mean of g
    v: Updates  # mean of the differences of successive g
    n: Updates  # mean of |g + (1 - b2) difference|^2
    g: Updates  # the last gradient
    t: Int[Array, ""]  # number of steps taken


@gives("first", "c1", "c2", "c3")
def adan_corrections(
    t: Array, *, b1: Real, b2: Real, b3: Real
) -> tuple[dict[str, Array], Array]:
    """Whether this is the first step, and `c = 1 - b^t` for all three averages."""
    first, t = t == 0, increment(t)
    c1, c2, c3 = debias(b1, t), debias(b2, t), debias(b3, t)
    return {"first": first, "c1": c1, "c2": c2, "c3": c3}, t


def adan_formula(
    g: Array,
    m: Array,
    v: Array,
    n: Array,
    last_g: Array,
    *,
    b1: Real,
    b2: Real,
    b3: Real,
    eps: Real,
    eps_root: Real,
    first: Array,
    c1: Array,
    c2: Array,
    c3: Array,
) -> tuple[Array, ...]:
    """One step of Adan for one array. `last_g` is `g` in the state."""
    d = jnp.where(first, 0, g - last_g)
    m = ema(m, g, b1)
    v = ema(v, d, b2)
    n = ema(n, abs_sq(g + (1 - b2) * d), b3)
    ahead = m / c1 + (1 - b2) * v / c2
    u = ahead / (root(n / c3 + eps_root) + eps)
    last_g = after(g, v, n)  # v and n read the old value
    return u, m, v, n, last_g


@transformation
def scale_by_adan(
    b1: Real = 0.98,
    b2: Real = 0.92,
    b3: Real = 0.99,
    eps: Real = 1e-8,
    eps_root: Real = 0.0,
) -> GradientTransformationExtraArgs:
    """Divide the means of the gradients and of their changes by a root mean square.

        d  = g - (the last g)                   at the first step, d = 0
        m <- b1 m + (1 - b1) g
        v <- b2 v + (1 - b2) d
        n <- b3 n + (1 - b3) |g + (1 - b2) d|^2
        u  = (m' + (1 - b2) v') / (sqrt(n' + eps_root) + eps)     x' = x / (1 - b^t)

    The paper writes `1 - b` for our `b`, and multiplies `d` and `v'` by `b2`. The
    factors here are Optax's.

    Args:
        b1: decay rate of `m`, in [0, 1).
        b2: decay rate of `v`, in [0, 1).
        b3: decay rate of `n`, in [0, 1).
        eps: keeps `u` finite where the gradient is zero.
        eps_root: the same, added under the square root.
    """
    b1, b2, b3 = check.fraction("scale_by_adan", b1=b1, b2=b2, b3=b3)
    (eps,) = check.nonnegative("scale_by_adan", eps=eps)
    (eps_root,) = check.nonnegative.must("scale_by_adan", eps_root=eps_root)
    return lift(
        Rule(
            "scale_by_adan",
            adan_formula,
            ScaleByAdanState,
            memory={
                "m": first_moment(),
                "v": first_moment(),
                "n": second_moment(),
                "g": first_moment(),
            },
            shared={"t": zero_count},
            numbers={"b1": b1, "b2": b2, "b3": b3, "eps": eps, "eps_root": eps_root},
            per_step=adan_corrections,
        )
    )


@optimizer
def adan(
    learning_rate: ScalarOrSchedule,
    b1: Real = 0.98,
    b2: Real = 0.92,
    b3: Real = 0.99,
    eps: Real = 1e-8,
    eps_root: Real = 1e-8,
    weight_decay: ScalarOrSchedule = 0.0,
    mask: MaskOrFn | None = None,
    *,
    memory_dtype: DTypeLike | None = None,
    keep_count: bool = False,
) -> GradientTransformationExtraArgs:
    """Adan: `p <- p - learning_rate (u + weight_decay p)`, `u` from `scale_by_adan`.

    Args:
        learning_rate: a number, or a schedule (a function of the step count).
        b1: decay rate of the mean of the gradients, in [0, 1).
        b2: decay rate of the mean of their changes, in [0, 1).
        b3: decay rate of the mean square, in [0, 1).
        eps: keeps `u` finite where the gradient is zero.
        eps_root: the same, added under the square root.
        weight_decay: weight decay coefficient, multiplied by the learning rate.
        mask: the leaves to decay: a tree of booleans, a function of the params that
            returns one, or a regular expression for their paths; by default all.
        memory_dtype: dtype of the arrays in the state that have no option of their own,
            such as `mu_dtype`, or where it is `None`; by default that of the params, or
            wider. With "int8", "int4" or "float8", averages for large matrices are
            stored in 8 or 4 bits: see `keeping`.
        keep_count: whether to count the steps even if the learning rate is a number, so
            that a schedule can replace it later.

    >>> import jax.numpy as jnp, steepest
    >>> tx = steepest.adan(learning_rate=0.1)
    >>> params = jnp.array([1.0, -2.0])
    >>> updates, state = tx.update(params, tx.init(params), params)
    >>> [round(float(u), 3) for u in updates]
    [-0.1, 0.1]
    """
    return chain(
        scale_by_adan(b1, b2, b3, eps, eps_root),
        add_decayed_weights(weight_decay, mask),
        descend("adan", learning_rate),
    )
