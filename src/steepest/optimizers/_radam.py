"""RAdam: Adam that waits until its mean square can be trusted.

Liu et al., On the variance of the adaptive learning rate and beyond, 2020,
arXiv:1908.03265
"""

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array

from ..combine import chain
from ..core import (
    flag,
    fraction,
    GradientTransformationExtraArgs,
    nonnegative,
    Real,
    real,
    Rule,
    ScalarOrSchedule,
    Step,
    transformation,
)
from ..engine import lift, optimizer
from ..numerics import (
    abs_sq,
    counted,
    ema,
    first_moment,
    root,
    second_moment,
    unbiased,
    zero_count,
)
from ._adam import ScaleByAdamState
from ._descend import descend


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
    """Adam once enough has been seen, and the mean of the gradient until then.

        mu <- b1 mu + (1 - b1) g
        nu <- b2 nu + (1 - b2) |g|^2
        m   = mu / (1 - b1^t)
        v   = nu / (1 - b2^t)
        top = 2 / (1 - b2) - 1
        rho = top - 2 t b2^t / (1 - b2^t)
        r   = sqrt((rho - 4) (rho - 2) top / ((top - 4) (top - 2) rho))
        u   = r m / (sqrt(v + eps_root) + eps)     where rho >= threshold and rho > 4
        u   = m                                    elsewhere

    `rho` says how many gradients `v` is worth. With `nesterov`,
    `m = b1 mu / (1 - b1^(t+1)) + (1 - b1) g / (1 - b1^t)`.

    Args:
        b1: how slowly `mu` forgets, in [0, 1).
        b2: how slowly `nu` forgets, in [0, 1).
        eps: keeps `u` finite where the gradient is zero.
        eps_root: the same, under the root.
        threshold: the `rho` from which on `v` is used. At 4 or below its variance is
            infinite, and it is not used, whatever the threshold.
        nesterov: whether `m` looks one step ahead.
    """
    who = "scale_by_radam"
    b1, b2 = fraction(who, b1=b1, b2=b2)
    (eps,) = nonnegative(who, eps=eps)
    (eps_root,) = nonnegative.must(who, eps_root=eps_root)
    (threshold,) = real(who, threshold=threshold)
    flag(who, nesterov=nesterov)
    count_of = counted(b1, b2)
    top = 2 / (1 - b2) - 1

    def prepare(step: Step, count: Array) -> tuple[dict[str, Array], Array]:
        n, t = count_of(step, count)
        # As Optax rounds it: for b2 near 1 the two terms are large and nearly equal,
        # and in float32 another order of the same operations moves r by a percent.
        decayed = b2 ** t.astype(float)
        rho = top - 2 * t.astype(float) * decayed / (1 - decayed)
        trusted = (rho >= threshold) & (rho > 4)
        rho = jnp.where(trusted, rho, 5)
        r = (rho - 4) * (rho - 2) * top / ((top - 4) * (top - 2) * rho)
        return {**n, "trusted": trusted, "r": root(jnp.where(trusted, r, 1))}, t

    def leaf(n: Any, g: Array, p: Array | None, mu: Array, nu: Array) -> Any:
        mu = ema(mu, g, b1)
        nu = ema(nu, abs_sq(g), b2)
        m = unbiased(n, mu, g, b1, nesterov)
        u = n.r * m / (root(nu / n.c2 + eps_root) + eps)
        return jnp.where(n.trusted, u, m), mu, nu

    return lift(
        Rule(
            who,
            ScaleByAdamState,
            leaf,
            remember={"mu": first_moment(), "nu": second_moment()},
            shared={"count": zero_count},
            prepare=prepare,
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
    memory_dtype: Any = None,
    keep_count: bool = False,
) -> GradientTransformationExtraArgs:
    """RAdam: `p <- p - learning_rate u`, with `u` from `scale_by_radam`.

    Args:
        learning_rate: a number, or a function of the count.
        b1, b2, eps, eps_root, threshold, nesterov: as for `scale_by_radam`.
        memory_dtype, keep_count: as for `keeping`.

    >>> import steepest
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
