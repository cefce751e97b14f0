"""Adam, for adjustments from any credit assignment."""

import jax.numpy as jnp
from jaxtyping import Array, PyTree

from ..core import EmptyState, Real, ScalarOrSchedule
from ..engine import apply_updates, same_shapes
from ..optimizers import adam, scale_by_adam, ScaleByAdamState
from ._compiled import compiled, state_like, Stepped

AdamParams = tuple[PyTree, PyTree, Array]  # (g1, g2, time_step)


def adam_init(theta: PyTree) -> AdamParams:
    """The state of `adam_step`: two moments for each weight, and the time step, 0.

    Args:
        theta: a list of weights, or any pytree.
    """
    same_shapes("adam_init", theta=theta)
    state = scale_by_adam().init(theta)
    return state.mu, state.nu, jnp.zeros(())


def adam_step(
    opt_params: AdamParams,
    theta: PyTree,
    updates: PyTree,
    eta: ScalarOrSchedule = 0.001,
    beta1: ScalarOrSchedule = 0.9,
    beta2: ScalarOrSchedule = 0.999,
    eps: ScalarOrSchedule = 1e-8,
) -> Stepped:
    """`theta <- theta - eta u`, where `u` is the updates scaled by `scale_by_adam`.

    Args:
        opt_params: the state, from `adam_init` or the last step.
        theta: a list of weights, or any pytree.
        updates: the adjustments, in the same structure.
        eta: the step size. This and the following are numbers, or functions of the
            time step.
        beta1: decay rate of the mean of the updates, in [0, 1].
        beta2: decay rate of the mean of their squares, in [0, 1].
        eps: keeps the step finite when the updates are zero.

    >>> import jax.numpy as jnp
    >>> theta = [jnp.array([3.0])]
    >>> state, theta = adam_step(adam_init(theta), theta, [jnp.array([5.0])], eta=0.1)
    >>> round(float(theta[0][0]), 3)
    2.9
    """
    state_like("adam_step", "adam_init", ("g1", "g2", "time_step"), opt_params)
    return compiled(
        "adam_step",
        _step,
        opt_params,
        theta,
        updates,
        eta=eta,
        beta1=beta1,
        beta2=beta2,
        eps=eps,
    )


def _step(
    opt_params: AdamParams,
    theta: PyTree,
    updates: PyTree,
    eta: Real,
    beta1: Real,
    beta2: Real,
    eps: Real,
) -> Stepped:
    g1, g2, time_step = opt_params
    state = ScaleByAdamState(count=time_step, mu=g1, nu=g2), EmptyState()
    updates, (new, _) = adam(eta, beta1, beta2, eps).update(updates, state, theta)
    return (new.mu, new.nu, new.count), apply_updates(theta, updates)
