"""Exponential moving average of the params, for evaluation.

Polyak and Juditsky, Acceleration of stochastic approximation by averaging, 1992,
doi:10.1137/0330046
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.typing import DTypeLike
from jaxtyping import Array, Int

from .. import check
from ..core import (
    gives,
    GradientTransformationExtraArgs,
    OptState,
    Param,
    Params,
    Real,
    Rule,
    transformation,
)
from ..engine import lift
from ..numerics import debias, increment, wide_moment, zero_count
from ..tree import leaf_paths

_ADVICE = "Pass the params that the state belongs to."


class EmaParamsState(NamedTuple):
    """The average so far: one count for the tree, one array per leaf."""

    count: Int[Array, ""]  # t, the number of steps taken
    average: Params  # mean of the params after each step, with bias correction


def first_average(p: Param, *, dtype: DTypeLike | None) -> Array:
    """A copy of `p`, in `dtype` if given, else in float32 or wider."""
    zeros = wide_moment(dtype)(p)
    if isinstance(p, jax.ShapeDtypeStruct):
        return zeros
    return jnp.array(p, dtype=zeros.dtype, copy=True)


@gives("weight")
def weight_of_params(count: Array, *, decay: Real) -> tuple[dict[str, Array], Array]:
    """The weight of the newest params: 1 in the first step, `1 - decay` after many."""
    t = increment(count)
    return {"weight": (1 - decay) / debias(decay, t)}, t


def ema_params_formula(
    g: Array, p: Array, average: Array, *, weight: Array
) -> tuple[Array, Array]:
    """`u = g`, and the params after the step enter the average."""
    return g, average + weight * (p + g - average)


@transformation
def ema_params(
    decay: Real = 0.999, accumulator_dtype: DTypeLike | None = None
) -> GradientTransformationExtraArgs:
    """Keep an exponential moving average of the params; put it last in a chain.

        a <- decay a + (1 - decay) (p + u)
        average = a / (1 - decay^t)

    The updates are unchanged. Evaluate at `average`, which `ema_eval_params` returns:
    it is often better than the params, as if the learning rate had already decayed.

    Args:
        decay: decay rate of the average, in [0, 1).
        accumulator_dtype: dtype of the average; by default float32, or that of the
            params if it is wider.

    >>> import jax.numpy as jnp, steepest
    >>> tx = steepest.chain(steepest.sgd(0.1), steepest.ema_params(0.5))
    >>> params, g = jnp.array([1.0]), jnp.array([1.0])
    >>> state = tx.init(params)
    >>> for _ in range(2):  # 0.9, 0.8
    ...     updates, state = tx.update(g, state, params)
    ...     params = steepest.apply_updates(params, updates)
    >>> round(float(steepest.ema_eval_params(state, params)[0]), 3)
    0.833
    """
    name = "ema_params"
    (decay,) = check.fraction(name, decay=decay)
    check.dtype(name, accumulator_dtype=accumulator_dtype)
    return lift(
        Rule(
            name,
            ema_params_formula,
            EmaParamsState,
            memory={"average": partial(first_average, dtype=accumulator_dtype)},
            shared={"count": zero_count},
            numbers={"decay": decay},
            per_step=weight_of_params,
        )
    )


def ema_eval_params(state: OptState, params: Params) -> Params:
    """The average of the params that `ema_params` keeps, in the dtypes of the params.

    Args:
        state: the state of `ema_params`, or of a chain, mask, partition or other
            wrapper that contains it, such as that of `splus`.
        params: the params in training. Leaves without an average are returned
            unchanged.
    """
    name = "ema_eval_params"
    is_mine = lambda x: isinstance(x, EmaParamsState)
    parts = [x for x in jax.tree.leaves(state, is_leaf=is_mine) if is_mine(x)]
    if not parts:
        raise TypeError(
            f"{name}: the state is a {type(state).__name__} without an EmaParamsState. "
            "Pass the state of an optimizer with `ema_params`."
        )
    leaves, treedef = jax.tree.flatten(params, is_leaf=lambda x: x is None)
    result = list(leaves)
    for part in parts:
        try:
            averages = treedef.flatten_up_to(part.average)
        except (KeyError, TypeError, ValueError):
            raise ValueError(
                f"{name}: the params and the state's average have different "
                f"structures. {_ADVICE}"
            ) from None
        for k, average in enumerate(averages):
            if not hasattr(average, "dtype") or leaves[k] is None:
                continue
            shape = jnp.shape(leaves[k])
            if shape != average.shape:
                raise ValueError(
                    f"{name}: leaf {leaf_paths(params)[k]} has shape {shape} in the "
                    f"params and {average.shape} in the state. {_ADVICE}"
                )
            result[k] = average.astype(jnp.result_type(leaves[k]))
    return treedef.unflatten(result)
