"""Rprop: uses only the sign of the gradient, with a step size for each weight.

Riedmiller and Braun, A direct adaptive method for faster backpropagation learning: the
RPROP algorithm, 1993, doi:10.1109/ICNN.1993.298623
Igel and Huesken, Empirical evaluation of the improved Rprop learning algorithms, 2003,
doi:10.1016/S0925-2312(01)00700-7
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax.typing import DTypeLike
from jaxtyping import Array

from .. import check
from ..combine import chain
from ..core import (
    called_by_user,
    GradientTransformationExtraArgs,
    like_optax,
    only_real,
    Param,
    Real,
    Rule,
    transformation,
    unusual,
    Updates,
)
from ..engine import lift, optimizer
from ..numerics import first_moment, second_moment
from ..transforms import scale


@like_optax
class ScaleByRpropState(NamedTuple):
    """State of Rprop: two arrays per leaf."""

    step_sizes: Updates
    prev_updates: Updates  # the next step, if the sign does not change


def initial_steps(p: Param, *, initial_step_size: Real) -> Array:
    """The step sizes before the first step.

    In float32 or wider, like a mean square: the smallest normal float16 is 60 times the
    default `min_step_size`.
    """
    return second_moment()(p) + initial_step_size


def rprop_formula(
    g: Array,
    step_sizes: Array,
    prev_updates: Array,
    *,
    eta_minus: Real,
    eta_plus: Real,
    min_step_size: Real,
    max_step_size: Real,
) -> tuple[Array, Array, Array]:
    """One step of Rprop for one array."""
    step, prev = step_sizes, prev_updates
    turn = jnp.sign(g) * jnp.sign(prev)
    changed = step * jnp.where(turn > 0, eta_plus, eta_minus)
    within = jnp.clip(changed, min_step_size, max_step_size)
    step = jnp.where(turn == 0, step, within)
    u = jnp.where(turn < 0, 0, prev)
    return u, step, jnp.where(turn < 0, 0, step * jnp.sign(g))


@transformation
def scale_by_rprop(
    learning_rate: Real,
    eta_minus: Real = 0.5,
    eta_plus: Real = 1.2,
    min_step_size: Real = 1e-6,
    max_step_size: Real = 50.0,
) -> GradientTransformationExtraArgs:
    """Grow the step size while the sign of the gradient stays, shrink it on a flip.

        turn = sign(g) sign(prev)
        step <- step eta_plus             where turn > 0, at most max_step_size
        step <- step eta_minus            where turn < 0, at least min_step_size
        u     = prev                      where turn < 0, u = 0
        prev <- step sign(g)              where turn < 0, prev <- 0

    As in Optax, each step is taken one update after it is computed: the first `u` is 0.

    Args:
        learning_rate: the initial step size of every weight.
        eta_minus: factor for a step size after the sign has flipped.
        eta_plus: factor for a step size while the sign stays.
        min_step_size: the smallest step size.
        max_step_size: the largest step size.
    """
    name = "scale_by_rprop"
    (start,) = check.finite(name, learning_rate=learning_rate)
    (shortest,) = check.amount(name, min_step_size=min_step_size)
    (longest,) = check.nonnegative(name, max_step_size=max_step_size)
    (eta_minus,) = check.fraction(name, eta_minus=eta_minus)
    (eta_plus,) = check.positive(name, eta_plus=eta_plus)
    known = all(isinstance(x, int | float) for x in (shortest, longest))
    if known and shortest > longest:
        unusual(
            f"{called_by_user(name)}: min_step_size is {shortest}, above max_step_size "
            f"{longest}. Every step size that changes becomes max_step_size."
        )
    return lift(
        Rule(
            name,
            rprop_formula,
            ScaleByRpropState,
            memory={"step_sizes": initial_steps, "prev_updates": first_moment()},
            numbers={
                "initial_step_size": start,
                "eta_minus": eta_minus,
                "eta_plus": eta_plus,
                "min_step_size": shortest,
                "max_step_size": longest,
            },
            check_leaf=only_real,
        )
    )


@optimizer
def rprop(
    learning_rate: Real,
    eta_minus: Real = 0.5,
    eta_plus: Real = 1.2,
    min_step_size: Real = 1e-6,
    max_step_size: Real = 50.0,
    *,
    memory_dtype: DTypeLike | None = None,
    keep_count: bool = False,
) -> GradientTransformationExtraArgs:
    """Rprop: `p <- p - u`, with `u` from `scale_by_rprop`. Use it with full batches.

    Args:
        learning_rate: the initial step size of every weight.
        eta_minus: factor for a step size after the sign has flipped.
        eta_plus: factor for a step size while the sign stays.
        min_step_size: the smallest step size.
        max_step_size: the largest step size.
        memory_dtype: dtype of the arrays in the state that have no option of their own,
            such as `mu_dtype`, or where it is `None`; by default that of the params, or
            wider. With "int8", "int4" or "float8", averages for large matrices are
            stored in 8 or 4 bits: see `keeping`.
        keep_count: whether to count the steps even if the learning rate is a number, so
            that a schedule can replace it later.

    >>> import jax.numpy as jnp, steepest
    >>> tx = steepest.rprop(learning_rate=0.1)
    >>> g = jnp.array([1.0, -2.0])
    >>> u, state = tx.update(g, tx.init(g))
    >>> u, state = tx.update(g, state)
    >>> [round(float(x), 3) for x in u]
    [-0.1, 0.1]
    """
    return chain(
        scale_by_rprop(
            learning_rate, eta_minus, eta_plus, min_step_size, max_step_size
        ),
        scale(-1.0),
    )
