"""Gradient descent, for adjustments from any credit assignment."""

import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from ..core import EmptyState, Real, ScalarOrSchedule
from ..engine import apply_updates, same_shapes
from ..transforms import scale_by_learning_rate
from ._compiled import compiled, state_like, Stepped


def sgd_init(theta: PyTree) -> Float[Array, ""]:
    """The state of `sgd_step`: the time step, 0.

    Args:
        theta: a list of weights, or any pytree.
    """
    same_shapes("sgd_init", theta=theta)
    return jnp.zeros(())


def sgd_step(
    opt_params: Float[Array, ""],
    theta: PyTree,
    updates: PyTree,
    eta: ScalarOrSchedule = 0.001,
) -> Stepped:
    """`theta <- theta - eta update`.

    Args:
        opt_params: the state, from `sgd_init` or the last step.
        theta: a list of weights, or any pytree.
        updates: the adjustments, in the same structure.
        eta: the step size: a number, or a function of the time step.

    >>> import jax.numpy as jnp
    >>> theta = [jnp.array([3.0])]
    >>> state, theta = sgd_step(sgd_init(theta), theta, [jnp.array([1.0])], eta=0.1)
    >>> round(float(theta[0][0]), 3), float(state)
    (2.9, 1.0)
    """
    state_like("sgd_step", "sgd_init", ("time_step",), opt_params)
    return compiled("sgd_step", _step, opt_params, theta, updates, eta=eta)


def _step(time_step: Array, theta: PyTree, updates: PyTree, eta: Real) -> Stepped:
    updates, _ = scale_by_learning_rate(eta).update(updates, EmptyState(), theta)
    return time_step + 1, apply_updates(theta, updates)
