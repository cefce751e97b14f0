"""The search for a step along a line: brackets, and interpolation in them.

Nocedal and Wright, Numerical optimization, 2006, algorithms 3.5 and 3.6,
doi:10.1007/978-0-387-40065-5
Hager and Zhang, A new conjugate gradient method with guaranteed descent and an
efficient line search, 2005, doi:10.1137/030601880 (the approximate decrease)

A function `phi` of one number falls at 0. Longer and longer steps are tried until two
of them, `low` and `high`, have a good step between them: that is a bracket. Then a step
inside is tried, and becomes one of the two ends, until it is good itself.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from ..core import Updates
from ..engine import loop


class Point(NamedTuple):
    """A step, and the function there."""

    a: Float[Array, ""]
    value: Float[Array, ""]
    slope: Float[Array, ""]
    grad: Updates = None  # the gradient of the whole function, where it is wanted


class Wanted(NamedTuple):
    """What is asked of a step, and how long to look for it. Numbers, maybe traced."""

    max_steps: Any
    max_a: Any  # the longest step, infinite if any will do
    tol: Any
    increase_factor: Any
    slope_rtol: Any
    curv_rtol: Any
    approx_dec_rtol: Any  # `None` where only the exact decrease counts
    precision: Any


class Search(NamedTuple):
    """How far the search has come."""

    count: Int[Array, ""]
    here: Point  # the last step tried
    decrease_error: Float[Array, ""]
    curvature_error: Float[Array, ""]
    low: Point  # the better end of the bracket; before there is one, the last step
    high: Point  # the other end, infinitely far before there is one
    third: Point  # the end that was given up last
    safe: Point  # a step with enough decrease; 0 if there is none
    good: Bool[Array, ""]  # `here` is all that is wanted
    ended: Bool[Array, ""]


Phi = Callable[[Array], Point]  # the function along the line


def search(phi: Phi, start: Point, guess: Array, want: Wanted) -> Search:
    """Look for a step with a large decrease and a small slope.

    Args:
        phi: the function, which also says the gradient.
        start: the function at 0.
        guess: the first step to try.
        want: when a step is good.
    """

    def body(state: Search) -> Search:
        a = proposed(state, guess, want)
        return judged(state, phi(a), start, want)

    nowhere = jnp.full_like(guess, jnp.inf)
    unknown = jnp.full_like(guess, jnp.nan)
    far = Point(nowhere, unknown, unknown)
    first = Search(
        count=jnp.zeros((), int),
        here=start._replace(a=jnp.zeros_like(guess)),
        decrease_error=nowhere,
        curvature_error=nowhere,
        low=_alone(start),
        high=far,
        third=far,
        safe=start,
        good=jnp.array(False),
        ended=jnp.array(False),
    )
    return loop(lambda state: ~state.ended, body, first)


@jax.jit
def proposed(state: Search, guess: Array, want: Wanted) -> Float[Array, ""]:
    """The next step to try."""
    longer = jnp.where(state.count == 0, guess, want.increase_factor * state.low.a)
    longer = jnp.minimum(longer, want.max_a)
    return jnp.where(bracketed(state), between(state), longer).astype(guess.dtype)


@jax.jit
def judged(state: Search, new: Point, start: Point, want: Wanted) -> Search:
    """The search after one more step was tried."""
    inside = bracketed(state)
    count = state.count + 1
    decrease, curvature = errors(new, start, want)
    good = (decrease <= want.tol) & (curvature <= want.tol)

    # The bracket: the same for `low` and `high` before there is one, since then
    # `high` is infinitely far ahead.
    low, high, tip = state.low, state.high, _alone(new)
    level = (new.value >= low.value) & (inside | (count > 1))
    rises = (decrease > 0) | level
    passed = new.slope * jnp.sign(high.a - low.a) >= 0  # the lowest point
    third = _choose(rises | passed, high, low)
    high = _choose(rises, tip, _choose(passed, low, high))
    low = _choose(rises, low, tip)

    lower = ~inside | (new.value < state.safe.value)
    safe = _choose((decrease <= want.tol) & lower, new, state.safe)
    width = jnp.abs(state.high.a - state.low.a)
    narrow = inside & (width <= want.precision) & (safe.a > 0)
    longest = ~jnp.isfinite(high.a) & (new.a >= want.max_a)
    return Search(
        count=count,
        here=new,
        decrease_error=decrease,
        curvature_error=curvature,
        low=low,
        high=high,
        third=third,
        safe=safe,
        good=good,
        ended=good | narrow | longest | (count >= want.max_steps),
    )


def taken(end: Search, start: Point) -> Point:
    """The step to take: a good one, else a safe one, else the last if it is finite."""
    last = _choose(jnp.isinf(end.decrease_error), start, end.here)
    return _choose(end.good, end.here, _choose(end.safe.a > 0, end.safe, last))


def errors(new: Point, start: Point, want: Wanted) -> tuple[Array, Array]:
    """By how much a step misses the two strong Wolfe conditions; 0 where it does not.

        phi(a) <= phi(0) + slope_rtol a phi'(0)             decrease
        |phi'(a)| <= curv_rtol |phi'(0)|                    curvature

    Where rounding hides the decrease, it is read off the slopes instead:

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
    """Whether there are two ends with a good step between them."""
    return jnp.isfinite(state.high.a)


def between(state: Search) -> Float[Array, ""]:
    """A step in the bracket.

    The lowest point of a cubic through all that is known, if it is not near the ends;
    otherwise that of a parabola; otherwise the middle.
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
    """Where the parabola with `p`'s value and slope, and `q`'s value, is lowest."""
    h = q.a - p.a
    curve = (q.value - p.value - p.slope * h) / (h * h)
    return p.a - p.slope / (2 * curve)


def lowest_of_cubic(p: Point, q: Point, r: Point) -> Float[Array, ""]:
    """Where the cubic with `p`'s value and slope, and the others' values, is lowest.

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


def _alone(point: Point) -> Point:
    return point._replace(grad=None)


def _choose(condition: Array, x: Point, y: Point) -> Point:
    return jax.tree.map(lambda x, y: jnp.where(condition, x, y), x, y)
