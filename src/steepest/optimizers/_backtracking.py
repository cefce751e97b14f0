"""Backtracking line search: shorten the step until the function decreases enough.

Armijo, Minimization of functions having Lipschitz continuous first partial derivatives,
1966, doi:10.2140/pjm.1966.16.1
Vaswani et al., Painless stochastic gradient: interpolation, line-search, and
convergence rates, 2019, arXiv:1905.09997 (each search starts a little above the last
step)
"""

from functools import partial
from typing import NamedTuple

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
from ..engine import branch, loop
from ._line import (
    asked,
    beginning,
    differentiable,
    Line,
    nothing_yet,
    number_dtype,
    ValueFn,
)


@like_optax
class BacktrackingLinesearchInfo(NamedTuple):
    """How the last search went."""

    num_linesearch_steps: Int[Array, ""]  # number of calls of the function
    decrease_error: Float[Array, ""]  # shortfall of the decrease; 0 if accepted


@like_optax
class ScaleByBacktrackingLinesearchState(NamedTuple):
    """The last step size, and the value and gradient at its end."""

    learning_rate: Float[Array, ""]
    value: Float[Array, ""]  # infinite if unknown
    grad: Updates | None  # stored with `store_grad`
    info: BacktrackingLinesearchInfo


class _Trial(NamedTuple):
    """A trial step and its result."""

    count: Array
    a: Array
    value: Array
    grad: Updates | None
    error: Array


class _Wanted(NamedTuple):
    """The options of a search."""

    most: Real  # largest number of reductions of the step
    slope: Real  # required fraction of the decrease predicted by the slope
    shrink: Real  # factor from one trial to the next
    grow: Real  # factor from the last step to the first trial
    longest: Real
    atol: Real
    rtol: Real


@transformation
def scale_by_backtracking_linesearch(
    max_backtracking_steps: Real,
    slope_rtol: Real = 1e-4,
    decrease_factor: Real = 0.8,
    increase_factor: Real = 1.5,
    max_learning_rate: Real = 1.0,
    atol: Real = 0.0,
    rtol: Real = 0.0,
    store_grad: bool = False,
    verbose: bool = False,
    *,
    axis_name: AxisName = None,
) -> GradientTransformationExtraArgs:
    """Multiply the updates `u` by a step size `a` that decreases the function enough.

        f(p + a u) <= (1 + rtol) f(p) + a slope_rtol <u, grad> + atol

    The first `a` is `increase_factor` times the last step size, at most
    `max_learning_rate`. Each further `a` is `decrease_factor` times the one before. If
    no `a` is accepted, the last one is used. If the function is not finite there, the
    update is 0 and the next search starts at 1.

    `update` needs the params and the keyword arguments `value`, `grad` and `value_fn`:
    the function, its value at the params, and its gradient as `jax.grad` returns it.
    Other extra arguments are passed to `value_fn`, which must accept them.

    Args:
        max_backtracking_steps: the largest number of reductions of the step size.
        slope_rtol: required fraction of the decrease predicted by the slope.
        decrease_factor: ratio of each trial step size to the one before, below 1.
        increase_factor: ratio of the first trial to the last accepted step size;
            infinite to always start at `max_learning_rate`.
        max_learning_rate: the largest step size.
        atol: absolute tolerance of the condition.
        rtol: tolerance relative to `f(p)`.
        store_grad: whether to store the gradient at the end of the step in the state,
            for `value_and_grad_from_state`.
        verbose: whether to print a message if no step size is accepted.
        axis_name: inside `jax.shard_map`, the mesh axes over which the params are
            sharded. `value` and `value_fn` must give the loss over all devices.
    """
    name = "scale_by_backtracking_linesearch"
    (most,) = check.whole(name, max_backtracking_steps=max_backtracking_steps)
    (c,) = check.fraction(name, slope_rtol=slope_rtol)
    (shrink,) = check.inside(name, decrease_factor=decrease_factor)
    grow, longest = check.positive(
        name, increase_factor=increase_factor, max_learning_rate=max_learning_rate
    )
    atol, rtol = check.nonnegative(name, atol=atol, rtol=rtol)
    check.flag(name, store_grad=store_grad, verbose=verbose)
    axes = mesh_axes(name, axis_name)

    want = _Wanted(most, c, shrink, grow, longest, atol, rtol)

    def update(
        updates: Updates,
        state: ScaleByBacktrackingLinesearchState,
        params: Params | None = None,
        *,
        value: ArrayLike | None = None,
        grad: Updates = None,
        value_fn: ValueFn | None = None,
        **extra_args: object,
    ) -> tuple[Updates, ScaleByBacktrackingLinesearchState]:
        check.state_of(name, ScaleByBacktrackingLinesearchState, state)
        f0 = asked(name, updates, params, value=value, grad=grad, value_fn=value_fn)
        assert value_fn is not None
        line = Line(name, updates, params, value_fn, extra_args, axes)
        last = jnp.asarray(state.learning_rate)
        start = _Trial(
            count=jnp.zeros((), int),
            a=last,
            value=f0.astype(last.dtype),
            grad=state.grad,
            error=jnp.full((), jnp.inf, last.dtype),
        )
        slope = line.slope(grad)
        end = _search(line, start, slope, want, store_grad)
        refused = jnp.isinf(end.error)
        a = jnp.where(refused, 0, end.a)
        if verbose:
            _say(name, end.error > atol, end, a, start.value, slope)
        return line.step(a), ScaleByBacktrackingLinesearchState(
            learning_rate=a,
            # A finite value belongs to a point that the params did not move to.
            value=jnp.where(refused & jnp.isfinite(end.value), jnp.inf, end.value),
            grad=end.grad,
            info=BacktrackingLinesearchInfo(end.count, end.error),
        )

    return GradientTransformationExtraArgs(partial(_init, name, store_grad), update)


def _init(
    name: str, store_grad: bool, params: Params
) -> ScaleByBacktrackingLinesearchState:
    differentiable(name, params)
    dtype = number_dtype(params)
    return ScaleByBacktrackingLinesearchState(
        learning_rate=jnp.ones((), dtype),
        value=jnp.full((), jnp.inf, dtype),
        grad=nothing_yet(params) if store_grad else None,
        info=BacktrackingLinesearchInfo(
            num_linesearch_steps=jnp.zeros((), int),
            decrease_error=jnp.full((), jnp.inf, dtype),
        ),
    )


def _search(
    line: Line, start: _Trial, slope: Array, want: _Wanted, store_grad: bool
) -> _Trial:
    """The first trial with enough decrease, or the last one tried.

    Args:
        line: the function along the direction.
        start: the last step size, and the value at the params.
        slope: slope of the function along the direction, at the params.
        want: the options of `scale_by_backtracking_linesearch`.
        store_grad: whether to also compute the gradient where the search ends.
    """
    last, f0 = start.a, start.value

    def goes_on(trial: _Trial) -> Array:
        return (trial.error > want.atol) & (trial.count <= want.most)

    def shorter(trial: _Trial) -> _Trial:
        a = jnp.where(
            trial.count == 0,
            jnp.minimum(want.grow * beginning(last), want.longest),
            want.shrink * trial.a,
        ).astype(last.dtype)
        if store_grad:
            f, pull = line.pullback(a)
        else:
            f, pull = line.value(a), lambda: None
        error = jnp.maximum(f - (1 + want.rtol) * f0 - a * want.slope * slope, 0)
        error = jnp.where(jnp.isnan(error), jnp.inf, error)
        new = _Trial(trial.count + 1, a, f, trial.grad, error)
        # The backward pass runs only where the search ends.
        return new._replace(grad=branch(goes_on(new), lambda: trial.grad, pull))

    return loop(goes_on, shorter, start)


def _say(
    name: str, failed: Array, end: _Trial, a: Array, value: Array, slope: Array
) -> None:
    def line() -> None:
        jax.debug.print(
            name + ": no step size was accepted in {n} trials. At the params the value "
            "is {value} and the slope is {slope}, expected a slope below 0. The last "
            "trial missed the decrease by {error}. Step size used: {a}.",
            n=end.count,
            value=value,
            slope=slope,
            error=end.error,
            a=a,
        )

    branch(failed, line, lambda: None)
