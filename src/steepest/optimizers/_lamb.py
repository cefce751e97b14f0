"""LAMB.

You et al., Large batch optimization for deep learning: training BERT in 76 minutes,
2020, arXiv:1904.00962
"""

from jax.typing import DTypeLike

from ..combine import chain
from ..core import AxisName, GradientTransformationExtraArgs, Real, ScalarOrSchedule
from ..engine import MaskOrFn, optimizer
from ..transforms import (
    add_decayed_weights,
    scale_by_trust_ratio,
)
from ._adam import scale_by_adam
from ._descend import descend


@optimizer
def lamb(
    learning_rate: ScalarOrSchedule,
    b1: Real = 0.9,
    b2: Real = 0.999,
    eps: Real = 1e-6,
    eps_root: Real = 0.0,
    weight_decay: ScalarOrSchedule = 0.0,
    mask: MaskOrFn | None = None,
    *,
    axis_name: AxisName = None,
    memory_dtype: DTypeLike | None = None,
    keep_count: bool = False,
) -> GradientTransformationExtraArgs:
    """LAMB: AdamW with the step of each leaf scaled to the norm of the leaf.

        d  = u + weight_decay p                  u from `scale_by_adam`
        p <- p - learning_rate |p| d / |d|

    Args:
        learning_rate: a number, or a schedule (a function of the step count).
        b1: decay rate of the mean of the gradients, in [0, 1).
        b2: decay rate of the mean of their squares, in [0, 1).
        eps: keeps `u` finite where the gradient is zero.
        eps_root: the same, added under the square root.
        weight_decay: weight decay coefficient.
        mask: the leaves to decay: a tree of booleans, a function of the params that
            returns one, or a regular expression for their paths; by default all.
        axis_name: inside `jax.shard_map`, the mesh axes over which the params are
            sharded. Without it, each device measures only its own shard.
        memory_dtype: dtype of the arrays in the state that have no option of their own,
            such as `mu_dtype`, or where it is `None`; by default that of the params, or
            wider. With "int8", "int4" or "float8", averages for large matrices are
            stored in 8 or 4 bits: see `keeping`.
        keep_count: whether to count the steps even if the learning rate is a number, so
            that a schedule can replace it later.

    >>> import jax.numpy as jnp, steepest
    >>> tx = steepest.lamb(learning_rate=0.1)
    >>> params = jnp.array([3.0, -4.0])
    >>> updates, state = tx.update(params, tx.init(params), params)
    >>> round(float(jnp.linalg.norm(updates)), 3)
    0.5
    """
    return chain(
        scale_by_adam(b1, b2, eps, eps_root),
        add_decayed_weights(weight_decay, mask),
        scale_by_trust_ratio(axis_name=axis_name),
        descend("lamb", learning_rate),
    )
