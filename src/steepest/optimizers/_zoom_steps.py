"""The search for a step size along a line, by bracketing and interpolation.

Nocedal and Wright, Numerical optimization, 2006, algorithms 3.5 and 3.6,
doi:10.1007/978-0-387-40065-5
Hager and Zhang, A new conjugate gradient method with guaranteed descent and an
efficient line search, 2005, doi:10.1137/030601880 (the approximate decrease)

The function `phi` of one number decreases at 0. The search tries growing steps until
two of them, `low` and `high`, have a good step between them: a bracket. It then tries a
step inside, which becomes one of the two ends, until the step itself is good.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike
from jaxtyping import Array, Bool, Float, Int

from ..core import Real, Updates
from ..engine import loop


class Point(NamedTuple):
    """A step size, and the function at it."""

    a: Float[Array, ""]
    value: Float[Array, ""]
    slope: Any = None  # if needed
    grad: Updates = None  # gradient with respect to the params, if needed


class Wanted(NamedTuple):
    """The options of a search: numbers, maybe traced."""

    max_steps: Real
    max_a: Real  # the largest step, infinite if unbounded
    tol: Real
    increase_factor: Real
    slope_rtol: Real
    curv_rtol: Real
    approx_dec_rtol: Real | None  # `None` to test only the exact decrease
    precision: Real


class Search(NamedTuple):
    """The progress of a search."""

    count: Int[Array, ""]
    decrease_error: Float[Array, ""]  # of the last trial
    curvature_error: Float[Array, ""]
    low: Point  # the better end of the bracket; the last step before there is one
    high: Point  # the other end; infinitely far before there is one
    third: Point  # the end that was replaced last
    best: Point  # the result if the search ends here
    safe: Bool[Array, ""]  # whether `best` has enough decrease
    ended: Bool[Array, ""]


class Carried(NamedTuple):
    """A search as the carry of a loop.

    All its numbers are in one array. Carried separately, each would need a kernel, and
    on a small problem the kernel launches dominate the time.
    """

    numbers: Float[Array, " n"]
    grad: Updates  # at the best point


# The search before the first step. Python numbers become constants of the kernel.
_ZERO: Any = 0.0
_INF: Any = np.inf
_FAR = Point(_INF, _ZERO + np.nan)
_FIRST = Search(
    count=_ZERO,
    decrease_error=_INF,
    curvature_error=_INF,
    low=Point(_ZERO, _ZERO, _ZERO),
    high=_FAR,
    third=_FAR,
    best=Point(_ZERO, _ZERO),
    safe=_ZERO,
    ended=_ZERO,
)

Phi = Callable[[Array], Point]  # the function along the line


def search(phi: Phi, start: Point, guess: Array, want: Wanted) -> Search:
    """Search for a step with a large decrease and a small slope.

    Args:
        phi: the function along the line; its points include the gradient.
        start: the point at 0.
        guess: the first step to try.
        want: the options of the search.
    """

    def body(carried: Carried) -> Carried:
        a = proposed(carried, guess, want)
        return judged(carried, phi(a), start, want)

    return unpacked(loop(goes_on, body, begun(start)))


@jax.jit
def begun(start: Point) -> Carried:
    """The search before the first step."""
    low = _FIRST.low._replace(value=start.value, slope=start.slope)
    best = _FIRST.best._replace(value=start.value, grad=start.grad)
    first = _FIRST._replace(low=low, best=best)
    return packed(first, start.value.dtype)


@jax.jit
def goes_on(carried: Carried) -> Bool[Array, ""]:
    """Whether to try another step."""
    return ~unpacked(carried).ended


@jax.jit
def proposed(carried: Carried, guess: Array, want: Wanted) -> Float[Array, ""]:
    """The next step to try."""
    state = unpacked(carried)
    longer = jnp.where(state.count == 0, guess, want.increase_factor * state.low.a)
    longer = jnp.minimum(longer, want.max_a)
    return jnp.where(bracketed(state), between(state), longer).astype(guess.dtype)


@jax.jit
def judged(carried: Carried, new: Point, start: Point, want: Wanted) -> Carried:
    """The search after trying the step `new`.

    The best step is a good one, else a safe one, else the last one if it is finite.
    """
    state = unpacked(carried)
    inside = bracketed(state)
    count = state.count + 1
    decrease, curvature = errors(new, start, want)
    enough = decrease <= want.tol
    good = enough & (curvature <= want.tol)

    # The same formulas work before there is a bracket, because `high` is then
    # infinitely far ahead.
    low, high = state.low, state.high
    level = (new.value >= low.value) & (inside | (count > 1))
    rises = (decrease > 0) | level
    passed = new.slope * jnp.sign(high.a - low.a) >= 0  # passed the minimum
    third = _choose(rises | passed, high, _place(low))
    high = _choose(rises, _place(new), _choose(passed, _place(low), high))
    low = _choose(rises, low, _line(new))

    safest = jnp.where(state.safe, state.best.value, start.value)
    safer = enough & (~inside | (new.value < safest))
    safe = jnp.where(safer, new.a > 0, state.safe)
    last = _choose(jnp.isinf(decrease), _end(start), _end(new))
    best = _choose(good | safer, _end(new), _choose(safe, state.best, last))

    width = jnp.abs(state.high.a - state.low.a)
    narrow = inside & (width <= want.precision) & safe
    longest = ~jnp.isfinite(high.a) & (new.a >= want.max_a)
    ended = good | narrow | longest | (count >= want.max_steps)
    after = Search(
        count, decrease, curvature, low, high, third, best, safe=safe, ended=ended
    )
    return packed(after, new.value.dtype)


def packed(state: Search, dtype: DTypeLike) -> Carried:
    """The numbers of a search as one array, with flags as 0 and 1."""
    numbers = jax.tree.leaves(state._replace(best=_place(state.best)))
    known = [0 if hasattr(x, "dtype") else x for x in numbers]
    array = jnp.asarray(known, dtype)
    # One kernel writes all of them; `jnp.stack` would need one for each.
    for k, x in enumerate(numbers):
        if hasattr(x, "dtype"):
            here = np.arange(len(numbers)) == k
            array = jnp.where(here, x.astype(dtype), array)
    return Carried(array, state.best.grad)


@jax.jit
def unpacked(carried: Carried) -> Search:
    """The inverse of `packed`."""
    state = jax.tree.unflatten(jax.tree.structure(_FIRST), list(carried.numbers))
    return state._replace(
        count=state.count.astype(int),
        best=state.best._replace(grad=carried.grad),
        safe=state.safe > 0,
        ended=state.ended > 0,
    )


def errors(new: Point, start: Point, want: Wanted) -> tuple[Array, Array]:
    """The violations of the two strong Wolfe conditions; 0 if they hold.

        phi(a) <= phi(0) + slope_rtol a phi'(0)             decrease
        |phi'(a)| <= curv_rtol |phi'(0)|                    curvature

    Where rounding hides the decrease, the slopes are tested instead:

        phi'(a) <= (2 slope_rtol - 1) phi'(0)   if  phi(a) <= phi(0) + approx |phi(0)|
    """
    rise = new.value - start.value
    decrease = rise - want.slope_rtol * new.a * start.slope
    if want.approx_dec_rtol is not None:
        flat = new.slope - (2 * want.slope_rtol - 1) * start.slope
        near = rise - want.approx_dec_rtol * jnp.abs(start.value)
        decrease = jnp.minimum(decrease, jnp.maximum(flat, near))
    curvature = jnp.abs(new.slope) - want.curv_rtol * jnp.abs(start.slope)
    return _error(decrease), _error(curvature)


def bracketed(state: Search) -> Bool[Array, ""]:
    """Whether `low` and `high` enclose a good step."""
    return jnp.isfinite(state.high.a)


def between(state: Search) -> Float[Array, ""]:
    """A step inside the bracket.

    The minimum of a cubic through the known points, unless it is close to an end; else
    the minimum of a parabola, with the same condition; else the midpoint.
    """
    low, high = state.low, state.high
    left, right = jnp.minimum(low.a, high.a), jnp.maximum(low.a, high.a)

    def well_inside(a: Array, margin: float) -> Array:
        room = margin * (right - left)
        return (a > left + room) & (a < right - room)

    cubic, square = lowest_of_cubic(low, high, state.third), lowest_of_square(low, high)
    middle = (left + right) / 2
    otherwise = jnp.where(well_inside(square, 0.1), square, middle)
    return jnp.where(well_inside(cubic, 0.2), cubic, otherwise)


def lowest_of_square(p: Point, q: Point) -> Float[Array, ""]:
    """The minimum of the parabola through `p`, with its slope, and `q`."""
    h = q.a - p.a
    curve = (q.value - p.value - p.slope * h) / (h * h)
    return p.a - p.slope / (2 * curve)


def lowest_of_cubic(p: Point, q: Point, r: Point) -> Float[Array, ""]:
    """The minimum of the cubic through `p`, with its slope, `q` and `r`.

    cubic(a) = third h^3 + second h^2 + p.slope h + p.value        h = a - p.a
    """
    h, k = q.a - p.a, r.a - p.a
    over_h = (q.value - p.value - p.slope * h) / (h * h)
    over_k = (r.value - p.value - p.slope * k) / (k * k)
    third = (over_h - over_k) / (h - k)
    second = over_h - third * h
    inside = second * second - 3 * third * p.slope
    return p.a + (jnp.sqrt(inside) - second) / (3 * third)


def _error(x: Array) -> Array:
    return jnp.where(jnp.isnan(x), jnp.inf, jnp.maximum(x, 0))


def _place(point: Point) -> Point:
    return Point(point.a, point.value)


def _line(point: Point) -> Point:
    return Point(point.a, point.value, slope=point.slope)


def _end(point: Point) -> Point:
    return Point(point.a, point.value, grad=point.grad)


def _choose(condition: Array, x: Point, y: Point) -> Point:
    return jax.tree.map(lambda x, y: jnp.where(condition, x, y), x, y)
