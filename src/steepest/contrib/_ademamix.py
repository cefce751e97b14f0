"""AdEMAMix.

Pagliardini, Ablin and Grangier, The AdEMAMix optimizer: better, faster, older, 2024,
arXiv:2409.03137
"""

from typing import NamedTuple

from jax.typing import DTypeLike
from jaxtyping import Array, Int

from .. import check
from ..combine import chain
from ..core import (
    At,
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
    debias,
    ema,
    first_moment,
    increment,
    number_or_schedule,
    root,
    second_moment,
    wide_moment,
    zero_count,
)
from ..transforms import add_decayed_weights, scale_by_learning_rate


@like_optax
class ScaleByAdemamixState(NamedTuple):
    """State of AdEMAMix: two step counts, and three arrays per leaf."""

    count: Int[Array, ""]  # t, the number of steps taken
    count_m2: Int[Array, ""]  # step count for the schedules of b3 and alpha
    m1: Updates  # fast mean of g, in `mu_dtype`
    m2: Updates  # slow mean of g, in `mu_dtype`; by default float32 or wider
    nu: Updates  # mean of |g|^2


@gives("c1", "c2")
def ademamix_corrections(
    count: Array, count_m2: Array, *, b1: Real, b2: Real
) -> tuple[dict[str, Array], Array, Array]:
    """`c1 = 1 - b1^t` and `c2 = 1 - b2^t`; the slow mean has no bias correction."""
    t = increment(count)
    return {"c1": debias(b1, t), "c2": debias(b2, t)}, t, increment(count_m2)


def ademamix_formula(
    g: Array,
    m1: Array,
    m2: Array,
    nu: Array,
    *,
    b1: Real,
    b2: Real,
    b3: Real,
    alpha: Real,
    eps: Real,
    eps_root: Real,
    c1: Array,
    c2: Array,
) -> tuple[Array, Array, Array, Array]:
    """One step of AdEMAMix for one array, where `c = 1 - b^t`."""
    m1 = ema(m1, g, b1)
    m2 = ema(m2, g, b3)
    nu = ema(nu, abs_sq(g), b2)
    m = m1 / c1 + alpha * m2
    v = nu / c2
    return m / (root(v + eps_root) + eps), m1, m2, nu


@transformation
def scale_by_ademamix(
    b1: Real = 0.9,
    b2: Real = 0.999,
    b3: ScalarOrSchedule = 0.9999,
    alpha: ScalarOrSchedule = 6.0,
    eps: Real = 1e-8,
    eps_root: Real = 0.0,
    mu_dtype: DTypeLike | None = None,
) -> GradientTransformationExtraArgs:
    """Adam with a second mean of the gradients, over about ten thousand steps.

        m1 <- b1 m1 + (1 - b1) g
        m2 <- b3 m2 + (1 - b3) g
        nu <- b2 nu + (1 - b2) |g|^2
        m   = m1 / (1 - b1^t) + alpha m2
        v   = nu / (1 - b2^t)
        u   = m / (sqrt(v + eps_root) + eps)

    Args:
        b1: decay rate of `m1`, in [0, 1).
        b2: decay rate of `nu`, in [0, 1).
        b3: decay rate of `m2`, in [0, 1), or a schedule.
        alpha: weight of `m2`, or a schedule.
        eps: keeps `u` finite where the gradient is zero.
        eps_root: the same, added under the square root.
        mu_dtype: dtype of `m1` and `m2`; by default that of the params, or float32 for
            `m2` if they are in half precision.
    """
    name = "scale_by_ademamix"
    b1, b2 = check.fraction(name, b1=b1, b2=b2)
    (eps,) = check.nonnegative(name, eps=eps)
    (eps_root,) = check.nonnegative.must(name, eps_root=eps_root)
    check.dtype(name, mu_dtype=mu_dtype)
    b3 = number_or_schedule(check.fraction, name, b3=b3)
    alpha = number_or_schedule(check.finite, name, alpha=alpha)
    return lift(
        Rule(
            name,
            ademamix_formula,
            ScaleByAdemamixState,
            memory={
                "m1": first_moment(mu_dtype),
                "m2": wide_moment(mu_dtype),
                "nu": second_moment(),
            },
            shared={"count": zero_count, "count_m2": zero_count},
            numbers={
                "b1": b1,
                "b2": b2,
                "b3": At.of("count_m2", b3),
                "alpha": At.of("count_m2", alpha),
                "eps": eps,
                "eps_root": eps_root,
            },
            per_step=ademamix_corrections,
        )
    )


@optimizer
def ademamix(
    learning_rate: ScalarOrSchedule,
    b1: Real = 0.9,
    b2: Real = 0.999,
    b3: ScalarOrSchedule = 0.9999,
    alpha: ScalarOrSchedule = 5.0,
    eps: Real = 1e-8,
    eps_root: Real = 0.0,
    mu_dtype: DTypeLike | None = None,
    weight_decay: ScalarOrSchedule = 0.0,
    mask: MaskOrFn | None = None,
    *,
    memory_dtype: DTypeLike | None = None,
    keep_count: bool = False,
) -> GradientTransformationExtraArgs:
    """AdEMAMix: `p <- p - learning_rate (u + weight_decay p)`.

    Use schedules that raise `b3` from `b1`, and `alpha` from 0, over the first steps:
    the slow mean needs many gradients before it is useful.

    Args:
        learning_rate: a number, or a schedule (a function of the step count).
        b1: decay rate of the fast mean of the gradients, in [0, 1).
        b2: decay rate of the mean of their squares, in [0, 1).
        b3: decay rate of the slow mean, in [0, 1), or a schedule.
        alpha: weight of the slow mean, or a schedule.
        eps: keeps `u` finite where the gradient is zero.
        eps_root: the same, added under the square root.
        mu_dtype: dtype of both means; by default that of the params, or float32 for the
            slow mean if they are in half precision.
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
    >>> tx = contrib.ademamix(learning_rate=0.1)
    >>> params = jnp.array([1.0, -2.0])
    >>> updates, state = tx.update(params, tx.init(params), params)
    >>> [round(float(u), 3) for u in updates]
    [-0.1, 0.1]
    """
    return chain(
        scale_by_ademamix(b1, b2, b3, alpha, eps, eps_root, mu_dtype),
        add_decayed_weights(weight_decay, mask),
        scale_by_learning_rate(check.rate_given("ademamix", learning_rate)),
    )
