"""What Adam and its kin share: the count, and a mean of gradients read without bias."""

from collections.abc import Callable
from typing import Any

from jaxtyping import Array

from ..core import Real, Step
from ._moments import abs_sq, debias, ema, increment, Leaf


def counted(b1: Real, b2: Real) -> Callable[..., tuple[dict[str, Array], Array]]:
    """The `prepare` of a rule with a count `t` and two averages of decay `b1` and `b2`.

        c1 = 1 - b1^t,   c2 = 1 - b2^t,   next_c1 = 1 - b1^(t+1)

    Args:
        b1: the decay of the mean.
        b2: the decay of the mean square.
    """

    def prepare(step: Step, count: Array) -> tuple[dict[str, Array], Array]:
        t = increment(count)
        c1, c2, next_c1 = debias(b1, t), debias(b2, t), debias(b1, increment(t))
        return {"c1": c1, "c2": c2, "next_c1": next_c1}, t

    return prepare


def unbiased(n: Any, mu: Leaf, g: Leaf, b1: Real, nesterov: bool = False) -> Leaf:
    """`mu / (1 - b1^t)`, or with `nesterov` what it would be one step ahead.

        b1 mu / (1 - b1^(t+1)) + (1 - b1) g / (1 - b1^t)

    Args:
        n: the numbers of `counted`.
        mu: the mean, `g` included.
        g: the last gradient.
        b1: the decay of `mu`.
        nesterov: whether to look ahead.
    """
    return ema(mu / n.next_c1, g / n.c1, b1) if nesterov else mu / n.c1


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


def beginning_at(value: Real, begin: Callable[[Any], Leaf]) -> Callable[[Any], Leaf]:
    """Where `begin` begins, plus `value`: a memory that is not empty at first.

    Args:
        value: what to add.
        begin: `p -> array`, such as `second_moment()`.
    """
    return lambda p: begin(p) + value
