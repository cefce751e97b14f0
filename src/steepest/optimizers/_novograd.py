"""NovoGrad: one second moment for each layer.

Ginsburg et al., Stochastic gradient methods with layer-wise adaptive moments for
training of deep networks, 2019, arXiv:1905.11286
"""

from typing import Any, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Int

from ..combine import chain
from ..core import (
    AxisName,
    dtype,
    finite,
    fraction,
    GradientTransformationExtraArgs,
    like_optax,
    mesh_axes,
    nonnegative,
    Real,
    Rule,
    ScalarOrSchedule,
    Step,
    transformation,
    Updates,
)
from ..engine import lift, optimizer
from ..numerics import (
    ema,
    first_moment,
    increment,
    root,
    sum_of_squares,
    wide_dtype,
    zero_count,
)
from ._descend import descend


@like_optax
class ScaleByNovogradState(NamedTuple):
    """What NovoGrad remembers: a count; an array and a number for each leaf."""

    count: Int[Array, ""]  # the steps taken
    mu: Updates  # decayed sum of the directions, in `mu_dtype`
    nu: Updates  # for each leaf one number, the mean of |g|^2


@transformation
def scale_by_novograd(
    b1: Real = 0.9,
    b2: Real = 0.25,
    eps: Real = 1e-8,
    eps_root: Real = 0.0,
    weight_decay: Real = 0.0,
    mu_dtype: Any = None,
    *,
    axis_name: AxisName = None,
) -> GradientTransformationExtraArgs:
    """Divide each leaf by the root mean square of its length, then add momentum.

        nu <- b2 nu + (1 - b2) |g|^2            |g| is the length of the leaf
        mu <- b1 mu + g / (sqrt(nu + eps_root) + eps) + weight_decay p
        u   = mu

    The first time, `nu <- |g|^2`, and `mu` is what is added to it.

    Args:
        b1: how slowly `mu` forgets, in [0, 1).
        b2: how slowly `nu` forgets, in [0, 1).
        eps: keeps `u` finite where the leaf has no gradient.
        eps_root: the same, under the root.
        weight_decay: the pull towards zero; it takes part in the momentum.
        mu_dtype: the dtype `mu` is kept in; by default that of the params.
        axis_name: inside `jax.shard_map`, the mesh axes over which the params are
            split. Without it, each device measures its own part.
    """
    who = "scale_by_novograd"
    b1, b2 = fraction(who, b1=b1, b2=b2)
    (eps,) = nonnegative(who, eps=eps)
    (eps_root,) = nonnegative.must(who, eps_root=eps_root)
    (weight_decay,) = finite(who, weight_decay=weight_decay)
    dtype(who, mu_dtype=mu_dtype)
    axes = mesh_axes(who, axis_name)

    def prepare(step: Step, count: Array) -> tuple[dict[str, Array], Array]:
        return {"first": count == 0}, increment(count)

    def leaf(n: Any, g: Array, p: Array, mu: Array, nu: Array) -> Any:
        square = sum_of_squares(g, axes)
        nu = jnp.where(n.first, square, ema(nu, square, b2))
        d = g / (root(nu + eps_root) + eps) + weight_decay * p
        mu = jnp.where(n.first, d, b1 * mu + d)
        return mu, mu, nu

    return lift(
        Rule(
            who,
            ScaleByNovogradState,
            leaf,
            remember={
                "mu": first_moment(mu_dtype),
                "nu": lambda p: jnp.zeros((), wide_dtype([p])),
            },
            shared={"count": zero_count},
            prepare=prepare,
            needs=("params",),
            kind="whole",
        )
    )


@optimizer
def novograd(
    learning_rate: ScalarOrSchedule,
    b1: Real = 0.9,
    b2: Real = 0.25,
    eps: Real = 1e-6,
    eps_root: Real = 0.0,
    weight_decay: Real = 0.0,
    *,
    axis_name: AxisName = None,
    memory_dtype: Any = None,
    keep_count: bool = False,
) -> GradientTransformationExtraArgs:
    """NovoGrad: `p <- p - learning_rate u`, with `u` from `scale_by_novograd`.

    Args:
        learning_rate: a number, or a function of the count.
        b1, b2, eps, eps_root, weight_decay: as for `scale_by_novograd`.
        axis_name: inside `jax.shard_map`, the mesh axes over which the params are
            split. Without it, each device measures its own part.
        memory_dtype, keep_count: as for `keeping`.

    >>> import steepest
    >>> tx = steepest.novograd(learning_rate=0.1)
    >>> params = jnp.array([3.0, -4.0])
    >>> updates, state = tx.update(params, tx.init(params), params)
    >>> [round(float(u), 3) for u in updates]
    [-0.06, 0.08]
    """
    return chain(
        scale_by_novograd(b1, b2, eps, eps_root, weight_decay, axis_name=axis_name),
        descend("novograd", learning_rate),
    )
