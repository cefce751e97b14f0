"""Gradient descent with noise.

Neelakantan et al., Adding gradient noise improves learning for very deep networks,
2015, arXiv:1511.06807
"""

from jax.typing import ArrayLike, DTypeLike

from ..combine import chain
from ..core import GradientTransformationExtraArgs, Real, ScalarOrSchedule
from ..engine import optimizer
from ..transforms import add_noise
from ._descend import descend


@optimizer
def noisy_sgd(
    learning_rate: ScalarOrSchedule,
    eta: Real = 0.01,
    gamma: Real = 0.55,
    key: ArrayLike | None = None,
    *,
    seed: int | None = None,
    memory_dtype: DTypeLike | None = None,
    keep_count: bool = False,
) -> GradientTransformationExtraArgs:
    """Noisy gradient descent: `p <- p - learning_rate u`, with `u` from `add_noise`.

    Args:
        learning_rate: a number, or a schedule (a function of the step count).
        eta: variance of the noise at the first step.
        gamma: how fast the noise decays: the variance is `eta / t^gamma`.
        key: a `jax.random` key, or an integer seed.
        seed: an integer `key`; deprecated, as in Optax.
        memory_dtype: dtype of the arrays in the state that have no option of their own,
            such as `mu_dtype`, or where it is `None`; by default that of the params, or
            wider. With "int8", "int4" or "float8", averages for large matrices are
            stored in 8 or 4 bits: see `keeping`.
        keep_count: whether to count the steps even if the learning rate is a number, so
            that a schedule can replace it later.

    >>> import jax.numpy as jnp, steepest
    >>> tx = steepest.noisy_sgd(learning_rate=0.1, key=0)
    >>> params = jnp.zeros(3)
    >>> updates, state = tx.update(params, tx.init(params))
    >>> bool(jnp.all(updates != 0))
    True
    """
    return chain(
        add_noise(eta, gamma, key, seed=seed), descend("noisy_sgd", learning_rate)
    )
