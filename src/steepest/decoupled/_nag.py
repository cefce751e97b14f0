"""Nesterov's accelerated gradient, for adjustments from any credit assignment."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, PyTree

from ..core import Real, ScalarOrSchedule
from ..engine import apply_updates, same_shapes
from ..optimizers import nag, NagState
from ._compiled import compiled, state_like, Stepped

NagParams = tuple[PyTree, Array]  # (phi, time_step)


def nag_init(theta: PyTree) -> NagParams:
    """The state of `nag_step`: an array `phi` for each weight, and the time step, 0.

    Args:
        theta: a list of weights, or any pytree.
    """
    same_shapes("nag_init", theta=theta)
    phi = nag(0.0).init(theta).phi
    return jax.tree.map(jnp.zeros_like, phi), jnp.zeros(())


def nag_step(
    opt_params: NagParams,
    theta: PyTree,
    updates: PyTree,
    eta: ScalarOrSchedule = 0.01,
    mu: ScalarOrSchedule = 0.9,
) -> Stepped:
    """A step down, then momentum along the last two points, except at the first step.

        phi'   = theta - eta update
        theta <- phi' + mu (phi' - phi)
        phi   <- phi'

    Args:
        opt_params: the state, from `nag_init` or the last step.
        theta: a list of weights, or any pytree.
        updates: the adjustments, in the same structure.
        eta: the step size. This and `mu` are numbers, or functions of the time step.
        mu: the momentum, in [0, 1].

    >>> import jax.numpy as jnp
    >>> theta = [jnp.array([3.0])]
    >>> state = nag_init(theta)
    >>> for _ in range(2):
    ...     state, theta = nag_step(state, theta, [jnp.array([3.0])])
    >>> round(float(theta[0][0]), 3)
    2.913
    """
    state_like("nag_step", "nag_init", ("phi", "time_step"), opt_params)
    return compiled("nag_step", _step, opt_params, theta, updates, eta=eta, mu=mu)


def _step(
    opt_params: NagParams, theta: PyTree, updates: PyTree, eta: Real, mu: Real
) -> Stepped:
    phi, time_step = opt_params
    updates, new = nag(eta, mu).update(updates, NagState(time_step, phi), theta)
    return (new.phi, new.count), apply_updates(theta, updates)
