"""What Adam and its kin share: the count, and a mean of gradients read without bias."""

from typing import Any

from jaxtyping import Array

from ..core import gives, Real
from ._moments import abs_sq, debias, ema, increment, Leaf


@gives("c1", "c2")
def bias_corrections(count: Array, *, b1: Real, b2: Real) -> Any:
    """`c1 = 1 - b1^t` and `c2 = 1 - b2^t`, for averages of decay `b1` and `b2`."""
    t = increment(count)
    return {"c1": debias(b1, t), "c2": debias(b2, t)}, t


@gives("c1", "c2", "next_c1")
def nesterov_corrections(count: Array, *, b1: Real, b2: Real) -> Any:
    """The same, and `next_c1 = 1 - b1^(t+1)`, to look one step ahead."""
    t = increment(count)
    c1, c2, next_c1 = debias(b1, t), debias(b2, t), debias(b1, increment(t))
    return {"c1": c1, "c2": c2, "next_c1": next_c1}, t


def nesterov_mean(mu: Leaf, g: Leaf, b1: Real, c1: Leaf, next_c1: Leaf) -> Leaf:
    """What `mu / (1 - b1^t)` would be one step ahead, with the same gradient again.

        b1 mu / (1 - b1^(t+1)) + (1 - b1) g / (1 - b1^t)

    Args:
        mu: the mean, `g` included.
        g: the last gradient.
        b1: the decay of `mu`.
        c1, next_c1: the numbers of `nesterov_corrections`.
    """
    return ema(mu / next_c1, g / c1, b1)


def spread(nu: Leaf, away: Leaf, b2: Real, eps_root: Real) -> Leaf:
    """`b2 nu + (1 - b2) |away|^2 + eps_root`: a mean square that is never zero.

    Two arrays are added last. What ends with a single one, such as a constant added to
    an array, XLA computes again for all who read it, and they read the old `nu`.

    Args:
        nu: the mean square.
        away: how far something is from what was expected.
        b2: the decay of `nu`.
        eps_root: added at every step.
    """
    return b2 * nu + ((1 - b2) * abs_sq(away) + eps_root)
