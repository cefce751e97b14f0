"""Simplified AdEMAMix.

Morwani, Vyas, Zhang and Kakade, Connections between Schedule-Free optimizers, AdEMAMix,
and accelerated SGD variants, 2025, arXiv:2502.02431
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
    increment,
    number_or_schedule,
    root,
    second_moment,
    wide_moment,
    zero_count,
)
from ..transforms import add_decayed_weights, scale_by_learning_rate


@like_optax
class ScaleBySimplifiedAdEMAMixState(NamedTuple):
    """State: a step count, and two arrays per leaf."""

    t: Int[Array, ""]  # number of steps taken
    m: Updates  # decaying sum of g
    n: Updates  # mean of |g|^2


@gives("c2")
def simplified_correction(t: Array, *, b2: Real) -> tuple[dict[str, Array], Array]:
    """`c2 = 1 - b2^t`."""
    t = increment(t)
    return {"c2": debias(b2, t)}, t


def simplified_ademamix_formula(
    g: Array,
    m: Array,
    n: Array,
    *,
    b1: Real,
    b2: Real,
    alpha: Real,
    eps: Real,
    eps_root: Real,
    c2: Array,
) -> tuple[Array, Array, Array]:
    """One step of simplified AdEMAMix for one array, where `c2 = 1 - b2^t`."""
    m = b1 * m + g
    n = ema(n, abs_sq(g), b2)
    v = n / c2
    return (m + alpha * g) / (root(v + eps_root) + eps), m, n


@transformation
def scale_by_simplified_ademamix(
    b1: Real = 0.99,
    b2: Real = 0.95,
    alpha: ScalarOrSchedule = 0.0,
    eps: Real = 1e-8,
    eps_root: Real = 0.0,
) -> GradientTransformationExtraArgs:
    """AdEMAMix with a single decaying sum, to which the current gradient is added.

        m <- b1 m + g
        n <- b2 n + (1 - b2) |g|^2
        v  = n / (1 - b2^t)
        u  = (m + alpha g) / (sqrt(v + eps_root) + eps)

    Args:
        b1: decay rate of `m`, in [0, 1).
        b2: decay rate of `n`, in [0, 1).
        alpha: weight of the current gradient, or a schedule.
        eps: keeps `u` finite where the gradient is zero.
        eps_root: the same, added under the square root.
    """
    name = "scale_by_simplified_ademamix"
    b1, b2 = check.fraction(name, b1=b1, b2=b2)
    (eps,) = check.nonnegative(name, eps=eps)
    (eps_root,) = check.nonnegative.must(name, eps_root=eps_root)
    alpha = number_or_schedule(check.finite, name, alpha=alpha)
    rest = {"alpha": At.of("t", alpha), "eps": eps, "eps_root": eps_root}
    return lift(
        Rule(
            name,
            simplified_ademamix_formula,
            ScaleBySimplifiedAdEMAMixState,
            memory={"m": wide_moment(), "n": second_moment()},
            shared={"t": zero_count},
            numbers={"b1": b1, "b2": b2, **rest},
            per_step=simplified_correction,
        )
    )


@optimizer
def simplified_ademamix(
    learning_rate: ScalarOrSchedule,
    b1: Real = 0.99,
    b2: Real = 0.95,
    alpha: ScalarOrSchedule = 0.0,
    eps: Real = 1e-8,
    eps_root: Real = 0.0,
    weight_decay: ScalarOrSchedule = 0.0,
    mask: MaskOrFn | None = None,
    *,
    memory_dtype: DTypeLike | None = None,
    keep_count: bool = False,
) -> GradientTransformationExtraArgs:
    """Simplified AdEMAMix: `p <- p - learning_rate (u + weight_decay p)`.

    `m` is a sum, not a mean. Use a learning rate of `1 - b1` times that of Adam.

    Args:
        learning_rate: a number, or a schedule (a function of the step count).
        b1: decay rate of the sum of the gradients, in [0, 1).
        b2: decay rate of the mean of their squares, in [0, 1).
        alpha: weight of the current gradient, or a schedule.
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

    >>> import jax.numpy as jnp
    >>> from steepest import contrib
    >>> tx = contrib.simplified_ademamix(learning_rate=0.1)
    >>> params = jnp.array([1.0, -2.0])
    >>> updates, state = tx.update(params, tx.init(params), params)
    >>> [round(float(u), 3) for u in updates]
    [-0.1, 0.1]
    """
    return chain(
        scale_by_simplified_ademamix(b1, b2, alpha, eps, eps_root),
        add_decayed_weights(weight_decay, mask),
        scale_by_learning_rate(check.rate_given("simplified_ademamix", learning_rate)),
    )
