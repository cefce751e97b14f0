"""Nesterov's accelerated gradient, with its second sequence written out.

Nesterov, A method for solving the convex programming problem with convergence rate
O(1/k^2), 1983
"""

from typing import Any, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Num

from ..core import (
    finite,
    fraction,
    GradientTransformationExtraArgs,
    Params,
    Rule,
    ScalarOrSchedule,
    Step,
)
from ..engine import lift, optimizer
from ..numerics import first_moment, increment, zero_count


class NagState(NamedTuple):
    """What NAG remembers: a count for the tree, a second point for each leaf."""

    count: Num[Array, ""]  # steps taken
    phi: Params  # where the last plain gradient step led


@optimizer
def nag(
    learning_rate: ScalarOrSchedule,
    momentum: ScalarOrSchedule = 0.9,
    *,
    memory_dtype: Any = None,
    keep_count: bool = False,
) -> GradientTransformationExtraArgs:
    """Step down to `phi`, then on along the line from the last `phi` to this one.

        phi' = p - learning_rate g
        p   <- phi' + momentum (phi' - phi)       the first time, p <- phi'
        phi <- phi'

    It is `sgd` with Nesterov momentum, but for the first step, which gives no momentum:
    there is no earlier `phi` to come from.

    Args:
        learning_rate: a number, or a function of the count.
        momentum: a number in [0, 1), or a function of the count.
        memory_dtype, keep_count: as for `keeping`.

    >>> import steepest
    >>> tx, p = steepest.nag(0.01), jnp.array([3.0])
    >>> u, state = tx.update(jnp.array([3.0]), tx.init(p), p)
    >>> round(float((p + u)[0]), 3)
    2.97
    """
    if not callable(learning_rate):
        (learning_rate,) = finite("nag", learning_rate=learning_rate)
    if not callable(momentum):
        (momentum,) = fraction("nag", momentum=momentum)

    def prepare(step: Step, count: Array) -> tuple[dict[str, Any], Array]:
        eta = learning_rate(count) if callable(learning_rate) else learning_rate
        mu = momentum(count) if callable(momentum) else momentum
        mu = jnp.where(count > 0, jnp.asarray(mu, float), 0)
        return {"eta": jnp.asarray(eta, float), "mu": mu}, increment(count)

    def leaf(n: Any, g: Array, p: Array, phi: Array) -> tuple[Array, Array]:
        new_phi = p - n.eta * g
        return n.mu * (new_phi - phi) - n.eta * g, new_phi

    tx = lift(
        Rule(
            "nag",
            NagState,
            leaf,
            remember={"phi": first_moment()},
            shared={"count": zero_count},
            prepare=prepare,
            needs=("params",),
        )
    )
    return tx
