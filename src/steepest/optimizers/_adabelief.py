"""AdaBelief.

Zhuang et al., AdaBelief optimizer: adapting stepsizes by the belief in observed
gradients, 2020, arXiv:2010.07468
"""

from typing import NamedTuple

from jax.typing import DTypeLike
from jaxtyping import Array, Int

from .. import check
from ..combine import chain
from ..core import (
    GradientTransformationExtraArgs,
    like_optax,
    Real,
    Rule,
    ScalarOrSchedule,
    transformation,
    Updates,
)
from ..engine import lift, optimizer
from ..numerics import (
    bias_corrections,
    ema,
    first_moment,
    nesterov_corrections,
    nesterov_mean,
    root,
    second_moment,
    spread,
    zero_count,
)
from ._descend import descend


@like_optax
class ScaleByBeliefState(NamedTuple):
    """State of AdaBelief: a step count, and two arrays per leaf."""

    count: Int[Array, ""]  # t, the number of steps taken
    mu: Updates  # mean of g
    nu: Updates  # mean of |g - mu|^2


def adabelief_formula(
    g: Array,
    mu: Array,
    nu: Array,
    *,
    b1: Real,
    b2: Real,
    eps: Real,
    eps_root: Real,
    c1: Array,
    c2: Array,
) -> tuple[Array, Array, Array]:
    """One step of AdaBelief for one array, where `c = 1 - b^t`."""
    mu = ema(mu, g, b1)
    nu = spread(nu, g - mu, b2, eps_root)
    return mu / c1 / (root(nu / c2) + eps), mu, nu


def nesterov_adabelief_formula(
    g: Array,
    mu: Array,
    nu: Array,
    *,
    b1: Real,
    b2: Real,
    eps: Real,
    eps_root: Real,
    c1: Array,
    c2: Array,
    next_c1: Array,
) -> tuple[Array, Array, Array]:
    """One step of AdaBelief with Nesterov momentum."""
    mu = ema(mu, g, b1)
    nu = spread(nu, g - mu, b2, eps_root)
    m = nesterov_mean(mu, g, b1, c1, next_c1)
    return m / (root(nu / c2) + eps), mu, nu


@transformation
def scale_by_belief(
    b1: Real = 0.9,
    b2: Real = 0.999,
    eps: Real = 1e-16,
    eps_root: Real = 1e-16,
    *,
    nesterov: bool = False,
) -> GradientTransformationExtraArgs:
    """Divide the mean of the gradients by their deviation from it.

        mu <- b1 mu + (1 - b1) g
        nu <- b2 nu + (1 - b2) |g - mu|^2 + eps_root
        m   = mu / (1 - b1^t)
        v   = nu / (1 - b2^t)
        u   = m / (sqrt(v) + eps)

    With `nesterov`, `m = b1 mu / (1 - b1^(t+1)) + (1 - b1) g / (1 - b1^t)`.

    Args:
        b1: decay rate of `mu`, in [0, 1).
        b2: decay rate of `nu`, in [0, 1).
        eps: keeps `u` finite where all gradients equal their mean.
        eps_root: the same, added to `nu` at every step, where it accumulates.
        nesterov: whether to use Nesterov momentum.
    """
    b1, b2 = check.fraction("scale_by_belief", b1=b1, b2=b2)
    (eps,) = check.nonnegative("scale_by_belief", eps=eps)
    (eps_root,) = check.nonnegative.must("scale_by_belief", eps_root=eps_root)
    check.flag("scale_by_belief", nesterov=nesterov)
    return lift(
        Rule(
            "scale_by_belief",
            nesterov_adabelief_formula if nesterov else adabelief_formula,
            ScaleByBeliefState,
            memory={"mu": first_moment(), "nu": second_moment()},
            shared={"count": zero_count},
            numbers={"b1": b1, "b2": b2, "eps": eps, "eps_root": eps_root},
            per_step=nesterov_corrections if nesterov else bias_corrections,
        )
    )


@optimizer
def adabelief(
    learning_rate: ScalarOrSchedule,
    b1: Real = 0.9,
    b2: Real = 0.999,
    eps: Real = 1e-16,
    eps_root: Real = 1e-16,
    *,
    nesterov: bool = False,
    memory_dtype: DTypeLike | None = None,
    keep_count: bool = False,
) -> GradientTransformationExtraArgs:
    """AdaBelief: `p <- p - learning_rate u`, with `u` from `scale_by_belief`.

    Args:
        learning_rate: a number, or a schedule (a function of the step count).
        b1: decay rate of the mean of the gradients, in [0, 1).
        b2: decay rate of the mean squared deviation, in [0, 1).
        eps: keeps `u` finite where all gradients equal their mean.
        eps_root: the same, added to the mean squared deviation at every step.
        nesterov: whether to use Nesterov momentum.
        memory_dtype: dtype of the arrays in the state that have no option of their own,
            such as `mu_dtype`, or where it is `None`; by default that of the params, or
            wider. With "int8", "int4" or "float8", averages for large matrices are
            stored in 8 or 4 bits: see `keeping`.
        keep_count: whether to count the steps even if the learning rate is a number, so
            that a schedule can replace it later.

    >>> import jax.numpy as jnp, steepest
    >>> tx = steepest.adabelief(learning_rate=0.1)
    >>> params = jnp.array([1.0, -2.0])
    >>> updates, state = tx.update(params, tx.init(params), params)
    >>> [round(float(u), 3) for u in updates]
    [-0.111, 0.111]
    """
    return chain(
        scale_by_belief(b1, b2, eps, eps_root, nesterov=nesterov),
        descend("adabelief", learning_rate),
    )
