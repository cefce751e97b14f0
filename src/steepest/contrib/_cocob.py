"""COCOB.

Orabona and Tommasi, Training deep networks without learning rates through coin betting,
2017, arXiv:1705.07795
"""

from functools import partial
from typing import NamedTuple

import jax.numpy as jnp
from jax.typing import DTypeLike
from jaxtyping import Array

from .. import check
from ..combine import chain
from ..core import (
    GradientTransformationExtraArgs,
    like_optax,
    Param,
    Params,
    Real,
    Rule,
    ScalarOrSchedule,
    transformation,
    Updates,
)
from ..engine import lift, MaskOrFn, optimizer
from ..numerics import by_parts, copy_of, quotient, wide_moment
from ..transforms import add_decayed_weights, scale_by_learning_rate


@like_optax
class COCOBState(NamedTuple):
    """State of COCOB: five arrays per leaf, one gambler per weight."""

    init_particles: Params  # x0, the initial params
    cumulative_gradients: Updates  # theta, the sum of -g
    scale: Updates  # L, the largest |g|
    subgradients: Updates  # G, the sum of |g|
    reward: Updates  # R, the total winnings


def first_scale(p: Param, *, eps: Real) -> Array:
    """The initial `L`: `eps`, in the imaginary part too."""
    none = wide_moment()(p)
    return none + (eps * (1 + 1j) if jnp.iscomplexobj(none) else eps)


def cocob_formula(
    g: Array,
    p: Array,
    init_particles: Array,
    cumulative_gradients: Array,
    scale: Array,
    subgradients: Array,
    reward: Array,
    *,
    alpha: Real,
) -> tuple[Array, ...]:
    """One step of COCOB for one array; real and imaginary parts are separate."""
    memory = init_particles, cumulative_gradients, scale, subgradients, reward
    return by_parts(partial(_bet, alpha=alpha))(g, p, *memory)


def _bet(
    g: Array,
    p: Array,
    x0: Array,
    theta: Array,
    L: Array,
    G: Array,
    R: Array,
    *,
    alpha: Real,
) -> tuple[Array, ...]:
    L = jnp.maximum(L, jnp.abs(g))
    G = G + jnp.abs(g)
    # max(R - ..., 0), written so that the last operation has two arrays: see `spread`.
    R = R - jnp.minimum(R, g * (p - x0))
    theta = theta - g
    # Divide twice: the square of L may overflow or underflow.
    x = quotient(theta, L) * quotient(L + R, jnp.maximum(G + L, alpha * L))
    return x0 + x - p, x0, theta, L, G, R


@transformation
def scale_by_cocob(
    alpha: Real = 100.0, eps: Real = 1e-8
) -> GradientTransformationExtraArgs:
    """Bet on the sign of the next gradient with the winnings of earlier bets.

        L     <- max(L, |g|)                        L starts at eps
        G     <- G + |g|
        R     <- max(R - g (p - x0), 0)
        theta <- theta - g
        u      = x0 + theta / L (L + R) / max(G + L, alpha L) - p

    There is nothing to tune: `u` is the step itself, downhill. A complex weight has two
    gamblers, one for its real part and one for its imaginary part.

    Args:
        alpha: the first bets are at most a fraction `1 / alpha`.
        eps: the initial `L`.
    """
    (alpha,) = check.positive("scale_by_cocob", alpha=alpha)
    (eps,) = check.nonnegative("scale_by_cocob", eps=eps)
    return lift(
        Rule(
            "scale_by_cocob",
            cocob_formula,
            COCOBState,
            memory={
                "init_particles": copy_of,
                "cumulative_gradients": wide_moment().exact,
                "scale": first_scale,
                "subgradients": wide_moment().exact,
                "reward": wide_moment().exact,
            },
            numbers={"alpha": alpha, "eps": eps},
        )
    )


@optimizer
def cocob(
    learning_rate: ScalarOrSchedule = 1.0,
    alpha: Real = 100.0,
    eps: Real = 1e-8,
    weight_decay: ScalarOrSchedule = 0.0,
    mask: MaskOrFn | None = None,
    *,
    memory_dtype: DTypeLike | None = None,
    keep_count: bool = False,
) -> GradientTransformationExtraArgs:
    """COCOB: `p <- p + u`, `u` from `scale_by_cocob`; no learning rate to tune.

    Args:
        learning_rate: multiplies the gradient, with little effect; leave it at 1.
        alpha: the first bets are at most a fraction `1 / alpha`.
        eps: initial value of the largest `|g|`.
        weight_decay: weight decay coefficient; the decay is added to the gradient.
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
    >>> tx = contrib.cocob()
    >>> params = jnp.array([1.0, -2.0])
    >>> updates, state = tx.update(params, tx.init(params), params)
    >>> [round(float(u), 3) for u in updates]
    [-0.01, 0.01]
    """
    return chain(
        add_decayed_weights(weight_decay, mask),
        scale_by_learning_rate(
            check.rate_given("cocob", learning_rate), flip_sign=False
        ),
        scale_by_cocob(alpha, eps),
    )
