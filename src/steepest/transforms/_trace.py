"""Momentum.

Polyak, Some methods of speeding up the convergence of iteration methods, 1964,
doi:10.1016/0041-5553(64)90137-5
Sutskever et al., On the importance of initialization and momentum in deep learning,
2013, proceedings.mlr.press/v28/sutskever13
"""

from typing import NamedTuple

from jax.typing import DTypeLike
from jaxtyping import Array

from .. import check
from ..core import (
    GradientTransformationExtraArgs,
    like_optax,
    Real,
    Rule,
    transformation,
    Updates,
)
from ..engine import lift
from ..numerics import first_moment


@like_optax
class TraceState(NamedTuple):
    """The momentum buffer: one array per leaf."""

    trace: Updates  # decaying sum of g, in `accumulator_dtype`


def trace_formula(g: Array, trace: Array, *, decay: Real) -> tuple[Array, Array]:
    """`u = m`, where `m <- g + decay m`."""
    m = g + decay * trace
    return m, m


def nesterov_trace_formula(
    g: Array, trace: Array, *, decay: Real
) -> tuple[Array, Array]:
    """`u = g + decay m`, where `m <- g + decay m`."""
    m = g + decay * trace
    return g + decay * m, m


@transformation
def trace(
    decay: Real, nesterov: bool = False, accumulator_dtype: DTypeLike | None = None
) -> GradientTransformationExtraArgs:
    """Momentum: a decaying sum of the gradients.

        m <- g + decay m
        u  = m                  or, with `nesterov`, g + decay m

    Args:
        decay: decay rate of `m`, in [0, 1]; with 1, `m` is the plain sum.
        nesterov: whether to use Nesterov momentum.
        accumulator_dtype: the dtype in which `m` is stored; by default that of the
            params.

    >>> import jax.numpy as jnp, steepest
    >>> tx = steepest.trace(decay=0.9)
    >>> g = jnp.array([1.0])
    >>> u, state = tx.update(g, tx.init(g))
    >>> u, state = tx.update(g, state)
    >>> round(float(u[0]), 3)
    1.9
    """
    (decay,) = check.fraction("trace", decay=decay)
    check.flag("trace", nesterov=nesterov)
    check.dtype("trace", accumulator_dtype=accumulator_dtype)
    return lift(
        Rule(
            "trace",
            nesterov_trace_formula if nesterov else trace_formula,
            TraceState,
            memory={"trace": first_moment(accumulator_dtype)},
            numbers={"decay": decay},
        )
    )
