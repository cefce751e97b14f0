"""LARS.

You, Gitman and Ginsburg, Large batch training of convolutional networks, 2017,
arXiv:1708.03888
"""

from jax.typing import DTypeLike

from ..combine import chain, masked
from ..core import AxisName, GradientTransformationExtraArgs, Real, ScalarOrSchedule
from ..engine import MaskOrFn, optimizer
from ..transforms import (
    add_decayed_weights,
    scale_by_trust_ratio,
    trace,
)
from ._descend import descend


@optimizer
def lars(
    learning_rate: ScalarOrSchedule,
    weight_decay: ScalarOrSchedule = 0.0,
    weight_decay_mask: MaskOrFn | None = True,
    trust_coefficient: Real = 0.001,
    eps: Real = 0.0,
    trust_ratio_mask: MaskOrFn | None = True,
    momentum: Real = 0.9,
    nesterov: bool = False,
    *,
    axis_name: AxisName = None,
    memory_dtype: DTypeLike | None = None,
    keep_count: bool = False,
) -> GradientTransformationExtraArgs:
    """LARS: momentum with the step of each leaf proportional to its norm.

        d  = g + weight_decay p
        m <- momentum m - learning_rate trust_coefficient |p| d / (|d| + eps)
        p <- p + m

    Args:
        learning_rate: a number, or a schedule (a function of the step count).
        weight_decay: weight decay coefficient; the decay is added to the gradient.
        weight_decay_mask: the leaves to decay: a tree of booleans, a function of the
            params that returns one, or a regular expression for their paths; by
            default all.
        trust_coefficient: ratio of the norm of a step to the norm of the leaf.
        eps: added to `|d|` in the denominator.
        trust_ratio_mask: which leaves are scaled by the ratio; by default all.
        momentum: decay rate of `m`, in [0, 1).
        nesterov: whether to use Nesterov momentum.
        axis_name: inside `jax.shard_map`, the mesh axes over which the params are
            sharded. Without it, each device measures only its own shard.
        memory_dtype: dtype of the arrays in the state that have no option of their own,
            such as `mu_dtype`, or where it is `None`; by default that of the params, or
            wider. With "int8", "int4" or "float8", averages for large matrices are
            stored in 8 or 4 bits: see `keeping`.
        keep_count: whether to count the steps even if the learning rate is a number, so
            that a schedule can replace it later.

    >>> import jax.numpy as jnp, steepest
    >>> tx = steepest.lars(learning_rate=1.0)
    >>> params = jnp.array([3.0, -4.0])
    >>> updates, state = tx.update(params, tx.init(params), params)
    >>> round(float(jnp.linalg.norm(updates)), 4)
    0.005
    """
    ratio = scale_by_trust_ratio(
        trust_coefficient=trust_coefficient, eps=eps, axis_name=axis_name
    )
    return chain(
        add_decayed_weights(weight_decay, weight_decay_mask),
        ratio if trust_ratio_mask is None else masked(ratio, trust_ratio_mask),
        descend("lars", learning_rate),
        trace(momentum, nesterov),
    )
