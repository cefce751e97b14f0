"""Piecewise schedules, defined by boundaries and scale factors."""

import math
from collections.abc import Mapping
from itertools import pairwise
from typing import Any, TypeAlias

import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from .. import check
from ..core import Real, Schedule, schedule
from ..numerics import at_least_float32
from ._counts import among, as_float, exact, of_count, reachable

BoundariesAndScales: TypeAlias = Mapping[Any, Real]  # step -> factor


@schedule
def piecewise_constant_schedule(
    init_value: Real, boundaries_and_scales: BoundariesAndScales | None = None
) -> Schedule:
    """Constant between the boundaries, and multiplied by a factor at each of them.

    Args:
        init_value: the value before the first boundary.
        boundaries_and_scales: `{step: factor}`: from that step on, the value is
            multiplied by that factor. Factors must be at least 0.

    >>> schedule = piecewise_constant_schedule(1.0, {10: 0.5, 20: 0.5})
    >>> [float(schedule(count)) for count in (9, 10, 20)]
    [1.0, 0.5, 0.25]
    """
    name = "piecewise_constant_schedule"
    (init_value,) = check.finite(name, init_value=init_value)
    parts = _sorted(name, boundaries_and_scales)
    if not parts:
        return lambda count: init_value

    def formula(count: Array) -> Array:
        count = among(count, *(boundary for boundary, _ in parts))
        value = jnp.full_like(as_float(count), init_value)
        for boundary, scale in parts:
            value = jnp.where(count >= boundary, value * scale, value)
        return value

    return of_count(formula)


@schedule
def piecewise_interpolate_schedule(
    interpolate_type: str,
    init_value: Real,
    boundaries_and_scales: BoundariesAndScales | None = None,
) -> Schedule:
    """Interpolate between the values at the boundaries.

        low + (high - low) w(t)     t: the fraction of the steps between two boundaries
        linear: w = t               cosine: w = (1 - cos(pi t)) / 2

    Args:
        interpolate_type: "linear" or "cosine".
        init_value: the value at step 0.
        boundaries_and_scales: `{step: factor}`: the value at that step is the value at
            the previous boundary times the factor. Factors must be at least 0.
    """
    return interpolated(
        "piecewise_interpolate_schedule",
        interpolate_type,
        init_value,
        boundaries_and_scales,
    )


def interpolated(
    name: str,
    interpolate_type: str,
    init_value: Real,
    boundaries_and_scales: BoundariesAndScales | None,
) -> Schedule:
    """`piecewise_interpolate_schedule`, for any schedule that is built on it.

    Args:
        name: name used in error messages.
        interpolate_type, init_value, boundaries_and_scales: as for
            `piecewise_interpolate_schedule`.
    """
    check.choice(name, _WAYS, interpolate_type=interpolate_type)
    way = _WAYS[interpolate_type]
    (init_value,) = check.finite(name, init_value=init_value)
    corners: list[tuple[Real, Real]] = [(0, init_value)]
    for boundary, scale in _sorted(name, boundaries_and_scales):
        corners.append((boundary, corners[-1][1] * scale))

    def schedule(count: ArrayLike) -> Float[Array, "..."]:
        steps = (boundary for boundary, _ in corners)
        t = among(at_least_float32(exact(count)), *steps)
        value = jnp.full_like(as_float(t), init_value)
        for (begin, low), (end, high) in pairwise(corners):
            share = as_float(t - begin) / ((end - begin) or 1)
            between = low + (high - low) * way(share)
            reached = jnp.where(t < end, between, high)
            value = jnp.where(t < begin, value, reached)
        return value

    return schedule


def _sorted(name: str, scales: BoundariesAndScales | None) -> list[tuple[Real, Real]]:
    """The boundaries and their factors, checked and in ascending order.

    Args:
        name: name used in error messages.
        scales: the argument `boundaries_and_scales`.
    """
    if scales is None:
        return []
    if not isinstance(scales, Mapping):
        raise TypeError(
            f"{name}: boundaries_and_scales is a {type(scales).__name__}, expected a "
            "dict {step: factor}."
        )
    steps = {f"boundary {k} in boundaries_and_scales": b for k, b in enumerate(scales)}
    named = {f"boundaries_and_scales[{b!r}]": s for b, s in scales.items()}
    boundaries = [reachable(b) for b in check.finite(name, **steps)]
    factors = check.nonnegative.must(name, **named)
    return sorted(zip(boundaries, factors, strict=True), key=lambda pair: pair[0])


_WAYS = {
    "linear": lambda t: t,
    "cosine": lambda t: (1 - jnp.cos(math.pi * t)) / 2,
}
