"""Stochastic gradient descent.

Robbins and Monro, A stochastic approximation method, 1951,
doi:10.1214/aoms/1177729586
"""

from jax.typing import DTypeLike

from .. import check
from ..combine import chain
from ..core import GradientTransformationExtraArgs, Real, ScalarOrSchedule
from ..engine import optimizer
from ..transforms import identity, trace
from ._descend import descend


@optimizer
def sgd(
    learning_rate: ScalarOrSchedule,
    momentum: Real | None = None,
    nesterov: bool = False,
    accumulator_dtype: DTypeLike | None = None,
    *,
    memory_dtype: DTypeLike | None = None,
    keep_count: bool = False,
) -> GradientTransformationExtraArgs:
    """Gradient descent: `p <- p - learning_rate u`.

    `u` is the gradient `g`, or `trace(g)` with momentum.

    Args:
        learning_rate: a number, or a schedule (a function of the step count).
        momentum: decay rate of the momentum, the `decay` of `trace`; `None` for no
            momentum and no state.
        nesterov: whether to use Nesterov momentum.
        accumulator_dtype: dtype of the momentum; by default that of the params.
        memory_dtype: dtype of the arrays in the state that have no option of their own,
            such as `mu_dtype`, or where it is `None`; by default that of the params, or
            wider. With "int8", "int4" or "float8", averages for large matrices are
            stored in 8 or 4 bits: see `keeping`.
        keep_count: whether to count the steps even if the learning rate is a number, so
            that a schedule can replace it later.

    >>> import jax.numpy as jnp, steepest
    >>> tx = steepest.sgd(learning_rate=0.1)
    >>> params = jnp.array([1.0, -2.0])
    >>> updates, state = tx.update(params, tx.init(params))
    >>> [round(float(u), 3) for u in updates]
    [-0.1, 0.2]
    """
    check.flag("sgd", nesterov=nesterov)
    check.dtype("sgd", accumulator_dtype=accumulator_dtype)
    direction = identity()
    if momentum is not None:
        direction = trace(momentum, nesterov, accumulator_dtype)
    return chain(direction, descend("sgd", learning_rate))
