"""Bias corrections and mean squares shared by Adam and its variants."""

from jaxtyping import Array

from ..core import gives, Real
from ._moments import abs_sq, debias, ema, increment, Leaf


@gives("c1", "c2")
def bias_corrections(
    count: Array, *, b1: Real, b2: Real
) -> tuple[dict[str, Leaf], Array]:
    """`c1 = 1 - b1^t` and `c2 = 1 - b2^t`, for averages with decay `b1` and `b2`."""
    t = increment(count)
    return {"c1": debias(b1, t), "c2": debias(b2, t)}, t


@gives("c1", "c2", "next_c1")
def nesterov_corrections(
    count: Array, *, b1: Real, b2: Real
) -> tuple[dict[str, Leaf], Array]:
    """`bias_corrections` and `next_c1 = 1 - b1^(t+1)`, that of the next step."""
    t = increment(count)
    c1, c2, next_c1 = debias(b1, t), debias(b2, t), debias(b1, increment(t))
    return {"c1": c1, "c2": c2, "next_c1": next_c1}, t


def nesterov_mean(mu: Leaf, g: Leaf, b1: Real, c1: Leaf, next_c1: Leaf) -> Leaf:
    """`mu / (1 - b1^t)` one step ahead, if the same gradient came again.

        b1 mu / (1 - b1^(t+1)) + (1 - b1) g / (1 - b1^t)

    Args:
        mu: the mean, with `g` included.
        g: the last gradient.
        b1: decay rate of `mu`.
        c1, next_c1: from `nesterov_corrections`.
    """
    return ema(mu / next_c1, g / c1, b1)


def spread(nu: Leaf, away: Leaf, b2: Real, eps_root: Real) -> Leaf:
    """`b2 nu + (1 - b2) |away|^2 + eps_root`: a mean square that is never zero.

    The last operation adds two arrays. XLA recomputes an expression that ends in an
    operation on one array, such as adding a constant, at each of its uses, and each
    would read the old `nu`.

    Args:
        nu: the mean square.
        away: the deviation from the expected value.
        b2: decay rate of `nu`.
        eps_root: added at every step.
    """
    return b2 * nu + ((1 - b2) * abs_sq(away) + eps_root)
