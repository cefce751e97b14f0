"""Zoom line search: a step with a large decrease and a small slope.

Nocedal and Wright, Numerical optimization, 2006, algorithms 3.5 and 3.6,
doi:10.1007/978-0-387-40065-5
"""

from functools import partial
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
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
from ._along import (
    asked,
    beginning,
    differentiable,
    Line,
    nothing_yet,
    number_dtype,
    ValueFn,
)
from ._zoom_steps import Point, Search, search, Wanted


@like_optax
class ZoomLinesearchInfo(NamedTuple):
    """How the last search went."""

    num_linesearch_steps: Int[Array, ""]  # how often the function was called
    decrease_error: Float[Array, ""]  # by how much the last trial missed the decrease
    curvature_error: Float[Array, ""]  # and by how much its slope is too large


@like_optax
class ScaleByZoomLinesearchState(NamedTuple):
    """The last step, and the function where it ended."""

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

    Steps grow until they enclose a good one, which is then looked for by interpolation.
    If none is found, the best of those with enough decrease is taken; if there is none
    either, the last; and if the function is not finite there, `u = 0`, and the next
    search begins at 1.

    `update` wants the params, and by name `value`, `grad` and `value_fn`: the function
    and, at the params, its value and its gradient. (Of complex params, the conjugate of
    what `jax.grad` gives, which is also what the updates are made of.) Other extra
    arguments are passed on to `value_fn`, which must take them.

    Args:
        max_linesearch_steps: how often the function is called, at most; at least once.
        max_learning_rate: the longest step; by default there is none.
        tol: by how much the conditions may be missed.
        increase_factor: how much longer each step is than the one before, until they
            enclose a good one.
        slope_rtol: the part of the decrease promised by the slope that is wanted.
        curv_rtol: the part of the slope that may be left.
        approx_dec_rtol: where the value rises by less than this part of it, rounding
            may hide the decrease, and the slopes decide; `None` for never.
        stepsize_precision: a search that has a step with enough decrease ends where the
            steps that enclose the good one are as near as this.
        initial_guess_strategy: the first step to try: `keep`, the last one; `one`, 1.
        verbose: whether to print a line when no good step was found.
        axis_name: inside `jax.shard_map`, the mesh axes over which the params are
            sharded. `value` and `value_fn` must give the loss over all devices.
    """
    name = "scale_by_zoom_linesearch"
    check.choice(name, ("keep", "one"), initial_guess_strategy=initial_guess_strategy)
    check.flag(name, verbose=verbose)
    axes = mesh_axes(name, axis_name)
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
    want = Wanted(most, longest, tol, grow, slope, curvature, near, precision)

    def update(
        updates: Updates,
        state: ScaleByZoomLinesearchState,
        params: Params | None = None,
        *,
        value: Any = None,
        grad: Updates = None,
        value_fn: ValueFn | None = None,
        **extra_args: Any,
    ) -> tuple[Updates, ScaleByZoomLinesearchState]:
        check.state_of(name, ScaleByZoomLinesearchState, state)
        given = asked(name, updates, params, value=value, grad=grad, value_fn=value_fn)
        same_shapes(name, updates=updates, **{"state's `grad`": state.grad})
        assert value_fn is not None
        line = Line(name, updates, params, value_fn, extra_args, axes)
        last = jnp.asarray(state.learning_rate)

        def phi(a: Array) -> Point:
            value, grad = line.value_and_grad(a)
            return Point(a, value, line.slope(grad), grad)

        start = Point(
            a=jnp.zeros_like(last),
            value=given.astype(last.dtype),
            slope=line.slope(grad, conjugate=True),
            grad=map_trees(name, _like, none_is_leaf=True, grad=state.grad, given=grad),
        )
        guess = beginning(last)
        if initial_guess_strategy == "one":
            guess = jnp.ones_like(last)
        end = search(phi, start, guess, want)
        if verbose:
            _say(name, end, start, tol)
        return line.step(end.best.a), ScaleByZoomLinesearchState(
            learning_rate=end.best.a,
            value=end.best.value,
            grad=end.best.grad,
            info=ZoomLinesearchInfo(
                num_linesearch_steps=end.count,
                decrease_error=end.decrease_error.astype(float),
                curvature_error=end.curvature_error.astype(float),
            ),
        )

    return GradientTransformationExtraArgs(partial(_init, name), update)


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


def _like(kept: Any, given: Any) -> Any:
    """The gradient that was given, in the dtype of the one that is kept."""
    if kept is None or given is None:
        return kept
    return jnp.asarray(given).astype(kept.dtype)


def _say(name: str, end: Search, start: Point, tol: Real) -> None:
    def line() -> None:
        jax.debug.print(
            name + ": no good step in {n} trials. At the params the value is {value} "
            "and the slope {slope}, which should be below 0; the last trial missed "
            "the decrease by {decrease} and the curvature by {curvature}. Taken: {a}.",
            n=end.count,
            value=start.value,
            slope=start.slope,
            decrease=end.decrease_error,
            curvature=end.curvature_error,
            a=end.best.a,
        )

    missed = jnp.maximum(end.decrease_error, end.curvature_error)
    branch(missed > tol, line, lambda: None)
