"""Equations of traced functions."""

from collections.abc import Sequence
from typing import Any

from jax.extend.core import JaxprEqn


def evaluated(eqn: JaxprEqn, inputs: Sequence[Any]) -> list[Any]:
    """The results of one equation of a jaxpr.

    Args:
        eqn: the equation.
        inputs: the values of its inputs.
    """
    params = eqn.primitive.get_bind_params(eqn.params)
    with eqn.ctx.manager:
        results = eqn.primitive.bind(*inputs, **params)
    return list(results) if eqn.primitive.multiple_results else [results]
