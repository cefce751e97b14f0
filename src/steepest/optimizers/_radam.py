"""RAdam: Adam that waits until its mean square is reliable.

Liu et al., On the variance of the adaptive learning rate and beyond, 2020,
arXiv:1908.03265
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
from ..engine import lift, optimizer
from ..numerics import (
    abs_sq,
    bias_corrections,
    ema,
    first_moment,
    nesterov_corrections,
    nesterov_mean,
    root,
    second_moment,
    zero_count,
)
from ._adam import ScaleByAdamState
from ._descend import descend


@gives("c1", "c2", "trusted", "r")
def radam_corrections(
    count: Array, *, b1: Real, b2: Real, threshold: Real
) -> tuple[dict[str, Array], Array]:
    """`c = 1 - b^t`, whether to use `v`, and the factor `r`."""
    corrections, t = bias_corrections.function(count, b1=b1, b2=b2)
    return {**corrections, **rectification(t, b2, threshold)}, t


@gives("c1", "c2", "next_c1", "trusted", "r")
def nesterov_radam_corrections(
    count: Array, *, b1: Real, b2: Real, threshold: Real
) -> tuple[dict[str, Array], Array]:
    """The same, and `next_c1 = 1 - b1^(t+1)`."""
    corrections, t = nesterov_corrections.function(count, b1=b1, b2=b2)
    return {**corrections, **rectification(t, b2, threshold)}, t


def rectification(t: Array, b2: Real, threshold: Real) -> dict[str, Array]:
    """Whether `v` is reliable after `t` steps, and the factor `r`."""
    top = 2 / (1 - b2) - 1
    # In the order of Optax: for b2 near 1 the two terms are large and nearly equal, and
    # in float32 another order of the same operations changes r by a percent.
    decayed = b2 ** t.astype(float)
    rho = top - 2 * t.astype(float) * decayed / (1 - decayed)
    trusted = (rho >= threshold) & (rho > 4)
    rho = jnp.where(trusted, rho, 5)
    r = (rho - 4) * (rho - 2) * top / ((top - 4) * (top - 2) * rho)
    return {"trusted": trusted, "r": root(jnp.where(trusted, r, 1))}


def radam_formula(
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
    trusted: Array,
    r: Array,
) -> tuple[Array, Array, Array]:
    """One step of RAdam for one array, where `c = 1 - b^t`."""
    mu = ema(mu, g, b1)
    nu = ema(nu, abs_sq(g), b2)
    m = mu / c1
    u = r * m / (root(nu / c2 + eps_root) + eps)
    return jnp.where(trusted, u, m), mu, nu


def nesterov_radam_formula(
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
    trusted: Array,
    r: Array,
) -> tuple[Array, Array, Array]:
    """One step of RAdam with Nesterov momentum."""
    mu = ema(mu, g, b1)
    nu = ema(nu, abs_sq(g), b2)
    m = nesterov_mean(mu, g, b1, c1, next_c1)
    u = r * m / (root(nu / c2 + eps_root) + eps)
    return jnp.where(trusted, u, m), mu, nu


@transformation
def scale_by_radam(
    b1: Real = 0.9,
    b2: Real = 0.999,
    eps: Real = 1e-8,
    eps_root: Real = 0.0,
    threshold: Real = 5.0,
    *,
    nesterov: bool = False,
) -> GradientTransformationExtraArgs:
    """Use the mean of the gradients until their mean square is reliable, then Adam.

        mu <- b1 mu + (1 - b1) g
        nu <- b2 nu + (1 - b2) |g|^2
        m   = mu / (1 - b1^t)
        v   = nu / (1 - b2^t)
        top = 2 / (1 - b2) - 1
        rho = top - 2 t b2^t / (1 - b2^t)
        r   = sqrt((rho - 4) (rho - 2) top / ((top - 4) (top - 2) rho))
        u   = r m / (sqrt(v + eps_root) + eps)     where rho >= threshold and rho > 4
        u   = m                                    elsewhere

    `rho` is the effective number of gradients in `v`. With `nesterov`,
    `m = b1 mu / (1 - b1^(t+1)) + (1 - b1) g / (1 - b1^t)`.

    Args:
        b1: decay rate of `mu`, in [0, 1).
        b2: decay rate of `nu`, in [0, 1).
        eps: keeps `u` finite where the gradient is zero.
        eps_root: the same, added under the square root.
        threshold: the smallest `rho` at which `v` is used. It is never used at 4 or
            below, where its variance is infinite.
        nesterov: whether to use Nesterov momentum.
    """
    name = "scale_by_radam"
    b1, b2 = check.fraction(name, b1=b1, b2=b2)
    (eps,) = check.nonnegative(name, eps=eps)
    (eps_root,) = check.nonnegative.must(name, eps_root=eps_root)
    (threshold,) = check.real(name, threshold=threshold)
    check.flag(name, nesterov=nesterov)
    return lift(
        Rule(
            name,
            nesterov_radam_formula if nesterov else radam_formula,
            ScaleByAdamState,
            memory={"mu": first_moment(), "nu": second_moment()},
            shared={"count": zero_count},
            numbers={
                "b1": b1,
                "b2": b2,
                "eps": eps,
                "eps_root": eps_root,
                "threshold": threshold,
            },
            per_step=nesterov_radam_corrections if nesterov else radam_corrections,
        )
    )


@optimizer
def radam(
    learning_rate: ScalarOrSchedule,
    b1: Real = 0.9,
    b2: Real = 0.999,
    eps: Real = 1e-8,
    eps_root: Real = 0.0,
    threshold: Real = 5.0,
    *,
    nesterov: bool = False,
    memory_dtype: DTypeLike | None = None,
    keep_count: bool = False,
) -> GradientTransformationExtraArgs:
    """RAdam: `p <- p - learning_rate u`, with `u` from `scale_by_radam`.

    Args:
        learning_rate: a number, or a schedule (a function of the step count).
        b1: decay rate of the mean of the gradients, in [0, 1).
        b2: decay rate of the mean of their squares, in [0, 1).
        eps: keeps `u` finite where the gradient is zero.
        eps_root: the same, added under the square root.
        threshold: how many gradients the mean square needs before it is used, as the
            effective number `rho` of `scale_by_radam`.
        nesterov: whether to use Nesterov momentum.
        memory_dtype: dtype of the arrays in the state that have no option of their own,
            such as `mu_dtype`, or where it is `None`; by default that of the params, or
            wider. With "int8", "int4" or "float8", averages for large matrices are
            stored in 8 or 4 bits: see `keeping`.
        keep_count: whether to count the steps even if the learning rate is a number, so
            that a schedule can replace it later.

    >>> import jax.numpy as jnp, steepest
    >>> tx = steepest.radam(learning_rate=0.1)
    >>> params = jnp.array([1.0, -2.0])
    >>> updates, state = tx.update(params, tx.init(params), params)
    >>> [round(float(u), 3) for u in updates]
    [-0.1, 0.2]
    """
    return chain(
        scale_by_radam(b1, b2, eps, eps_root, threshold, nesterov=nesterov),
        descend("radam", learning_rate),
    )
