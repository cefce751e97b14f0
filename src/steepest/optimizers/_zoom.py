"""Zoom line search: find a step with a large decrease and a small slope.

Nocedal and Wright, Numerical optimization, 2006, algorithms 3.5 and 3.6,
doi:10.1007/978-0-387-40065-5
"""

from functools import partial
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float, Int

from .. import check
from ..core import (
    AxisName,
    GradientTransformationExtraArgs,
    like_optax,
    mesh_axes,
    Params,
    Real,
    transformation,
    Updates,
)
from ..engine import branch, same_shapes
from ..tree import map_trees
from ._line import (
    asked,
    beginning,
    differentiable,
    Line,
    nothing_yet,
    number_dtype,
    Stored,
    ValueFn,
)
from ._zoom_steps import Point, Search, search, Wanted


@like_optax
class ZoomLinesearchInfo(NamedTuple):
    """How the last search went. The errors of its last trial are 0 if it is good."""

    num_linesearch_steps: Int[Array, ""]  # number of calls of the function
    decrease_error: Float[Array, ""]  # violation of the decrease condition
    curvature_error: Float[Array, ""]  # violation of the curvature condition


@like_optax
class ScaleByZoomLinesearchState(NamedTuple):
    """The last step size, and the value and gradient at its end."""

    learning_rate: Float[Array, ""]
    value: Float[Array, ""]  # infinite before the first step
    grad: Updates
    info: ZoomLinesearchInfo


@transformation
def scale_by_zoom_linesearch(
    max_linesearch_steps: Real,
    max_learning_rate: Real | None = None,
    tol: Real = 0.0,
    increase_factor: Real = 2.0,
    slope_rtol: Real = 1e-4,
    curv_rtol: Real = 0.9,
    approx_dec_rtol: Real | None = 1e-6,
    stepsize_precision: Real = 1e-5,
    initial_guess_strategy: Literal["keep", "one"] = "keep",
    verbose: bool = False,
    *,
    axis_name: AxisName = None,
) -> GradientTransformationExtraArgs:
    """Multiply the updates `u` by a step `a` that meets the strong Wolfe conditions.

        phi(a) = f(p + a u)
        phi(a) <= phi(0) + slope_rtol a phi'(0)             decrease
        |phi'(a)| <= curv_rtol |phi'(0)|                    curvature

    The step grows until a good one is bracketed; interpolation then narrows the
    bracket. If no step meets both conditions, the best one with enough decrease is
    used; if there is none, the last one. If the function is not finite there, the
    update is 0 and the next search starts at 1.

    `update` needs the params and the keyword arguments `value`, `grad` and `value_fn`:
    the function, and its value and gradient at the params. For complex params, `grad`
    is the conjugate of what `jax.grad` returns, as it is for the updates. Other extra
    arguments are passed to `value_fn`, which must accept them.

    Args:
        max_linesearch_steps: the largest number of calls of the function, at least 1.
        max_learning_rate: the largest step size; by default unbounded.
        tol: tolerance of the two conditions.
        increase_factor: ratio of each trial to the one before, until a good step is
            bracketed.
        slope_rtol: required fraction of the decrease predicted by the slope.
        curv_rtol: largest allowed fraction of the initial slope.
        approx_dec_rtol: if the value rises by less than this fraction of itself,
            rounding may hide the decrease, and the slopes are tested instead; `None`
            to disable.
        stepsize_precision: once a step size with enough decrease is known, the search
            ends when the bracket is narrower than this.
        initial_guess_strategy: the first trial: `keep` for the last step size, `one`
            for 1.
        verbose: whether to print a message if no step size is accepted.
        axis_name: inside `jax.shard_map`, the mesh axes over which the params are
            sharded. `value` and `value_fn` must give the loss over all devices.
    """
    name = "scale_by_zoom_linesearch"
    check.choice(name, ("keep", "one"), initial_guess_strategy=initial_guess_strategy)
    check.flag(name, verbose=verbose)
    axes = mesh_axes(name, axis_name)
    want = _checked(
        name,
        max_linesearch_steps,
        max_learning_rate,
        tol,
        increase_factor,
        slope_rtol,
        curv_rtol,
        approx_dec_rtol,
        stepsize_precision,
    )

    def update(
        updates: Updates,
        state: ScaleByZoomLinesearchState,
        params: Params | None = None,
        *,
        value: ArrayLike | None = None,
        grad: Updates = None,
        value_fn: ValueFn | None = None,
        **extra_args: object,
    ) -> tuple[Updates, ScaleByZoomLinesearchState]:
        check.state_of(name, ScaleByZoomLinesearchState, state)
        f0 = asked(name, updates, params, value=value, grad=grad, value_fn=value_fn)
        same_shapes(name, updates=updates, **{"state's `grad`": state.grad})
        assert value_fn is not None
        line = Line(name, updates, params, value_fn, extra_args, axes)
        last = jnp.asarray(state.learning_rate)

        def phi(a: Array) -> Point:
            value, grad = line.value_and_grad(a)
            return Point(a, value, line.slope(grad), grad)

        start = Point(
            a=jnp.zeros_like(last),
            value=f0.astype(last.dtype),
            slope=line.slope(grad, conjugate=True),
            grad=map_trees(name, _like, none_is_leaf=True, state=state.grad, grad=grad),
        )
        one = initial_guess_strategy == "one"
        guess = jnp.ones_like(last) if one else beginning(last)
        end = search(phi, start, guess, want)
        if verbose:
            _say(name, end, start, want.tol)
        return line.step(end.best.a), _after(end)

    return GradientTransformationExtraArgs(partial(_init, name), update)


def _checked(
    name: str,
    max_linesearch_steps: Real,
    max_learning_rate: Real | None,
    tol: Real,
    increase_factor: Real,
    slope_rtol: Real,
    curv_rtol: Real,
    approx_dec_rtol: Real | None,
    stepsize_precision: Real,
) -> Wanted:
    """The options of the search, after checking them."""
    exactly, unbounded = approx_dec_rtol is None, max_learning_rate is None
    (most,) = check.period(name, max_linesearch_steps=max_linesearch_steps)
    longest, grow = check.positive(
        name,
        max_learning_rate=jnp.inf if unbounded else max_learning_rate,
        increase_factor=increase_factor,
    )
    (slope,) = check.fraction(name, slope_rtol=slope_rtol)
    tol, curvature, near, precision = check.nonnegative(
        name,
        tol=tol,
        curv_rtol=curv_rtol,
        approx_dec_rtol=0.0 if exactly else approx_dec_rtol,
        stepsize_precision=stepsize_precision,
    )
    near = None if exactly else near
    return Wanted(most, longest, tol, grow, slope, curvature, near, precision)


def _init(name: str, params: Params) -> ScaleByZoomLinesearchState:
    differentiable(name, params)
    dtype = number_dtype(params)
    return ScaleByZoomLinesearchState(
        learning_rate=jnp.ones((), dtype),
        value=jnp.full((), jnp.inf, dtype),
        grad=nothing_yet(params),
        info=ZoomLinesearchInfo(
            num_linesearch_steps=jnp.zeros((), int),
            decrease_error=jnp.full((), jnp.inf, float),
            curvature_error=jnp.full((), jnp.inf, float),
        ),
    )


def _after(end: Search) -> ScaleByZoomLinesearchState:
    """The state after a search."""
    return ScaleByZoomLinesearchState(
        learning_rate=end.best.a,
        value=end.best.value,
        grad=end.best.grad,
        info=ZoomLinesearchInfo(
            num_linesearch_steps=end.count,
            decrease_error=end.decrease_error.astype(float),
            curvature_error=end.curvature_error.astype(float),
        ),
    )


def _like(stored: Stored, grad: ArrayLike | None) -> Stored:
    """The gradient passed to `update`, in the dtype of the stored one."""
    if stored is None or grad is None:
        return stored
    return jnp.asarray(grad).astype(stored.dtype)


def _say(name: str, end: Search, start: Point, tol: Real) -> None:
    def line() -> None:
        jax.debug.print(
            name + ": no step size was accepted in {n} trials. At the params the value "
            "is {value} and the slope is {slope}, expected a slope below 0. The last "
            "trial missed the decrease by {decrease} and the curvature by {curvature}. "
            "Step size used: {a}.",
            n=end.count,
            value=start.value,
            slope=start.slope,
            decrease=end.decrease_error,
            curvature=end.curvature_error,
            a=end.best.a,
        )

    missed = jnp.maximum(end.decrease_error, end.curvature_error)
    branch(missed > tol, line, lambda: None)
