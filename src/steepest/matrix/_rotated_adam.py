"""Adam on the coordinates of a matrix: the formulas of SOAP."""

import jax.numpy as jnp
from jaxtyping import Array, Bool

from ..core import gives, Real
from ..numerics import (
    debias,
    ema,
    increment,
    leafwise_ema,
    limited,
    root,
    stored,
    Sum,
)
from ._sides import (
    all_rotated,
    new_factors,
    NORMALIZED,
    rotated,
    rotated_back,
    Sides,
    Sums,
)


def adam_in_bases(
    g: Array,
    mu: Array,
    nu: Array,
    bases: Sides,
    coordinates: Array | None = None,
    *,
    b1: Real,
    b2: Real,
    eps: Real,
    bounded: bool,
    c1: Array,
    c2: Array,
) -> tuple[Array, Array, Array | Sum]:
    """One step of Adam for the coordinates of a matrix, where `c = 1 - b^t`.

    `coordinates` are those of `g`, if they are known. `nu` stays in coordinates of old
    bases. So where a basis changes, `mu` may be large and `nu` almost zero; if
    `bounded`, the quotient is limited to what it can be in a basis that does not.
    """
    mu = stored(ema(mu, g, b1))
    if coordinates is None:
        coordinates, mean = all_rotated([g, mu], bases)
    else:
        mean = rotated(mu, bases)
    squares = jnp.square(coordinates)
    u = mean / (root(ema(nu, squares, b2)) + eps) * (root(c2) / c1)
    if bounded:
        most = largest_quotient(b1, b2)
        u = jnp.clip(u, -most, most)
    u = rotated_back(u, bases, size=NORMALIZED)
    return u, mu, leafwise_ema(nu, squares, b2)


def largest_quotient(b1: Real, b2: Real) -> Array:
    """The most that Adam's `mu / sqrt(nu)` can be, after both bias corrections.

        (1 - b1) / sqrt((1 - b2) (1 - b1^2 / b2))

    By the inequality of Cauchy and Schwarz, whatever the gradients are. It is 1 if the
    decay rates are equal. If `b2` is not larger than `b1^2`, there is no such bound.
    The result is never above `1 / sqrt(1 - b2)`, the quotient if `mu` is as large as
    the last gradient, and all others were zero.
    """
    left = 1 - b1 * b1 / jnp.maximum(b2, 1e-30)  # both may be 0
    return (1 - b1) / jnp.sqrt((1 - b2) * jnp.maximum(left, (1 - b1) ** 2))


def where_first(
    first: Array, old: tuple[Array, ...], new: tuple[Array | Sum, ...]
) -> tuple[Array, ...]:
    """`old` in the first step, `new` later."""
    pairs = zip(old, new, strict=True)
    value = lambda x, y: y.after(x) if isinstance(y, Sum) else y
    return tuple(jnp.where(first, x, value(x, y)) for x, y in pairs)


def soap_formula(
    g: Array,
    mu: Array,
    nu: Array,
    factors: Sides,
    bases: Sides,
    *,
    b1: Real,
    b2: Real,
    eps: Real,
    factor_beta: Real,
    bounded: bool,
    c1: Array,
    c2: Array,
) -> tuple[Array, Array, Array | Sum, Sums, Sides]:
    """Adam in the bases of the last steps; then `g` enters the factors."""
    g = limited(g)
    numbers = {"b1": b1, "b2": b2, "eps": eps, "bounded": bounded, "c1": c1, "c2": c2}
    results = adam_in_bases(g, mu, nu, bases, **numbers)
    return *results, new_factors(g, factors, factor_beta), bases


def paper_formula(
    g: Array,
    mu: Array,
    nu: Array,
    factors: Sides,
    bases: Sides,
    *,
    b1: Real,
    b2: Real,
    eps: Real,
    factor_beta: Real,
    bounded: bool,
    c1: Array,
    c2: Array,
    first: Bool[Array, ""],
) -> tuple[Array, Array, Array, Sums, Sides]:
    """`soap_formula`, but the first step only begins the factors."""
    numbers = {"b1": b1, "b2": b2, "eps": eps, "bounded": bounded, "c1": c1, "c2": c2}
    u, *new, sums, bases = soap_formula(
        g, mu, nu, factors, bases, factor_beta=factor_beta, **numbers
    )
    u, mu, nu = where_first(first, (jnp.zeros_like(u), mu, nu), (u, *new))
    return u, mu, nu, sums, bases


def fresh_factors(
    g: Array, factors: Sides, *, factor_beta_now: Array
) -> tuple[Array, Sums]:
    """Let `g` enter the factors first."""
    g = limited(g)
    return g, new_factors(g, factors, factor_beta_now)


def fresh_formula(
    g: Array,
    mu: Array,
    nu: Array,
    bases: Sides,
    *,
    b1: Real,
    b2: Real,
    eps: Real,
    bounded: bool,
    c1: Array,
    c2: Array,
) -> tuple[Array, Array, Array | Sum, Sides]:
    """Adam in bases that may depend on `g`; `eps` is added to `sqrt(nu / c2)`."""
    numbers = {"b1": b1, "b2": b2, "bounded": bounded, "c1": c1, "c2": c2}
    return *adam_in_bases(g, mu, nu, bases, eps=eps * root(c2), **numbers), bases


@gives("c1", "c2", "first", "start", "due")
def paper_numbers(
    count: Array, *, b1: Real, b2: Real, frequency: Real
) -> tuple[dict[str, Array], Array]:
    """Adam's corrections without the first step, and when the bases change.

    The paper computes them at the end of a step, and this at the start of the next.
    """
    t = jnp.maximum(count, 1)
    return {
        "c1": debias(b1, t),
        "c2": debias(b2, t),
        "first": count == 0,
        "start": count == 1,
        "due": (count > 0) & ((count - 1) % frequency == 0),
    }, increment(count)


@gives("c1", "c2", "factor_beta_now", "start", "due")
def fresh_numbers(
    count: Array, *, b1: Real, b2: Real, factor_beta: Real, frequency: Real
) -> tuple[dict[str, Array], Array]:
    """Adam's corrections, and a decay rate of the factors that corrects their bias."""
    t = increment(count)
    return {
        "c1": debias(b1, t),
        "c2": debias(b2, t),
        "factor_beta_now": 1 - (1 - factor_beta) / debias(factor_beta, t),
        "start": count == 0,
        "due": count % frequency == 0,
    }, t
