"""ACProp.

Zhuang et al., Momentum centering and asynchronous update for adaptive gradient methods,
2021, arXiv:2110.05454
"""

import jax.numpy as jnp
from jax.typing import DTypeLike
from jaxtyping import Array

from .. import check
from ..combine import chain
from ..core import (
    gives,
    GradientTransformationExtraArgs,
    Real,
    Rule,
    ScalarOrSchedule,
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


@gives("first", "c2")
def acprop_corrections(count: Array, *, b2: Real) -> tuple[dict[str, Array], Array]:
    """Whether this is the first step, and `c2 = 1 - b2^(t-1)`."""
    first = count == 0
    # At the first step there is no average yet; 1 keeps the division finite.
    c2 = jnp.where(first, 1, debias(b2, count))
    return {"first": first, "c2": c2}, increment(count)


def acprop_formula(
    g: Array,
    mu: Array,
    nu: Array,
    *,
    b1: Real,
    b2: Real,
    eps: Real,
    eps_root: Real,
    first: Array,
    c2: Array,
) -> tuple[Array, Array, Array]:
    """One step of ACProp for one array: `g` is divided by the old `nu`."""
    # Every step adds `eps_root` to `nu`: if it is zero, there was no gradient yet.
    first = first | ((nu == 0) & (eps_root > 0))
    v = jnp.where(first, 1, nu / c2)
    u = g / (root(v) + eps)
    nu = spread(nu, g - mu, b2, eps_root)
    mu = after(ema(mu, g, b1), nu)  # `nu` reads the old value
    return u, mu, nu


@transformation
def scale_by_acprop(
    b1: Real = 0.9, b2: Real = 0.999, eps: Real = 1e-16, eps_root: Real = 1e-16
) -> GradientTransformationExtraArgs:
    """Divide the gradient by the deviation of earlier gradients from their mean.

        v   = nu / (1 - b2^(t-1))       at the first step, v = 1
        u   = g / (sqrt(v) + eps)
        nu <- b2 nu + (1 - b2) |g - mu|^2 + eps_root
        mu <- b1 mu + (1 - b1) g

    The update is asynchronous: the denominator does not include the current gradient.
    If the first gradients of a leaf are missing (`None`), `v = 1` at the first that is
    not, unless `eps_root` is zero.

    Args:
        b1: decay rate of `mu`, in [0, 1).
        b2: decay rate of `nu`, in [0, 1).
        eps: keeps `u` finite where all gradients equal their mean.
        eps_root: the same, added to `nu` at every step, where it accumulates.
    """
    name = "scale_by_acprop"
    b1, b2 = check.fraction(name, b1=b1, b2=b2)
    (eps,) = check.nonnegative(name, eps=eps)
    (eps_root,) = check.nonnegative.must(name, eps_root=eps_root)
    return lift(
        Rule(
            name,
            acprop_formula,
            ScaleByBeliefState,
            memory={"mu": first_moment(), "nu": second_moment()},
            shared={"count": zero_count},
            numbers={"b1": b1, "b2": b2, "eps": eps, "eps_root": eps_root},
            per_step=acprop_corrections,
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
    memory_dtype: DTypeLike | None = None,
    keep_count: bool = False,
) -> GradientTransformationExtraArgs:
    """ACProp: `p <- p - learning_rate (u + weight_decay p)`.

    Args:
        learning_rate: a number, or a schedule (a function of the step count).
        b1: decay rate of the mean of the gradients, in [0, 1).
        b2: decay rate of the mean squared deviation, in [0, 1).
        eps: keeps `u` finite where all gradients equal their mean.
        eps_root: the same, added to the mean squared deviation at every step.
        weight_decay: weight decay coefficient, multiplied by the learning rate.
        mask: the leaves to decay: a tree of booleans, a function of the params that
            returns one, or a regular expression for their paths; by default all.
        memory_dtype: dtype of the arrays in the state that have no option of their own,
            such as `mu_dtype`, or where it is `None`; by default that of the params, or
            wider. With "int8", "int4" or "float8", averages for large matrices are
            stored in 8 or 4 bits: see `keeping`.
        keep_count: whether to count the steps even if the learning rate is a number, so
            that a schedule can replace it later.

    >>> import jax.numpy as jnp
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
        scale_by_learning_rate(check.rate_given("acprop", learning_rate)),
    )
