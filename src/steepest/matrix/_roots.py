"""The formulas of Shampoo, and inverse roots of the factors of a matrix.

Gupta et al., Shampoo: preconditioned stochastic tensor optimization, 2018,
arXiv:1802.09568
Shi et al., A distributed data-parallel PyTorch implementation of the distributed
Shampoo optimizer, 2023, arXiv:2309.06497
"""

from typing import Literal

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PyTree

from ..core import gives, Param, Real
from ..numerics import (
    debias,
    ema,
    exact_product,
    increment,
    iterated_basis,
    limited,
    matrix_inverse_pth_root,
    norms,
    root,
    stored,
)
from ._sides import (
    PerSide,
    rotated,
    rotated_back,
    Sides,
    summed_factors,
    Sums,
)

Square = Float[Array, "d d"]
# How a root is computed.
How = Literal["basis", "eigh", "newton"]
# A root is `Q diag(x) Q^T` by its basis `Q` and `x`, or it is stored as a matrix.
Tracked = tuple[Square, Float[Array, " d"]]
# For rows and columns; `None` if the side has none.
Roots = tuple[PyTree, PyTree]

# The method whose step length is used.
Graft = Literal["adam", "rmsprop", "adagrad", "sgd", "none"]
GRAFTS = ("adam", "rmsprop", "adagrad", "sgd", "none")

first_roots = PerSide(jnp.eye)
first_tracked = PerSide(lambda d: (jnp.eye(d), jnp.ones(d)))


def shampoo_factors(
    g: Array, factors: Sides, *, factor_beta: Real, factor_weight: Array
) -> tuple[Array, Sums]:
    """Let `g` enter the factors."""
    g = limited(g)
    return g, summed_factors(g, factors, factor_beta, factor_weight)


def shampoo_formula(
    g: Array,
    mu: Array,
    nu: Array | tuple[()],
    roots: Roots,
    *,
    b1: Real,
    b2: Real,
    graft: Graft,
    graft_eps: Real,
    c1: Array,
    c2: Array,
    begun: Bool[Array, ""],
) -> tuple[Array, Array, Array | tuple[()], Roots]:
    """Multiply the mean by both roots, with the length of another method's step."""
    mu = stored(ema(mu, g, b1))
    mean = mu / c1
    other = mean
    if not isinstance(nu, tuple):
        square = jnp.square(g)
        nu = stored(nu + square if graft == "adagrad" else ema(nu, square, b2))
        corrected = nu / c2 if graft == "adam" else nu
        other = mean / (root(corrected) + graft_eps)
    u = preconditioned(mean, roots)
    if graft != "none":
        u = u * (norms(other, 2) / (norms(u, 2) + 1e-16))
    return jnp.where(begun, u, other), mu, nu, roots


@gives("c1", "c2", "factor_c", "factor_weight", "begun", "due")
def shampoo_numbers(
    count: Array, *, b1: Real, b2: Real, factor_beta: Real, frequency: Real, start: Real
) -> tuple[dict[str, Array], Array]:
    """Bias corrections, those of sums being 1, and when the roots are used and due."""
    t = increment(count)
    is_sum = jnp.asarray(factor_beta == 1)
    return {
        "c1": debias(b1, t),
        "c2": debias(b2, t),
        "factor_c": jnp.where(is_sum, 1.0, debias(factor_beta, t)),
        "factor_weight": jnp.where(is_sum, 1.0, 1 - factor_beta),
        "begun": t >= start,
        "due": (t == start) | ((t > start) & (t % frequency == 0)),
    }, t


def no_memory(p: Param) -> tuple[()]:
    """Nothing to remember."""
    del p
    return ()


def preconditioned(x: Array, roots: Roots) -> Array:
    """`root_L x root_R`; the identity for a side without a root.

    Args:
        x: a matrix.
        roots: for rows and columns.
    """
    left, right = roots
    if not isinstance(right if left is None else left, tuple):
        x = x if left is None else left @ x
        return x if right is None else x @ right
    q_l, l = (None, None) if left is None else left
    q_r, r = (None, None) if right is None else right
    x = rotated(x, (q_l, q_r), any_size=True)
    x = x if l is None else l[:, None] * x
    x = x if r is None else x * r[None, :]
    return rotated_back(x, (q_l, q_r), any_size=True)


def root_in_basis(
    factors: Square,
    roots: Tracked,
    *,
    eps: Real,
    exponent: Real,
    trace: bool,
    factor_c: Array,
) -> tuple[Tracked]:
    """The root of a factor in a basis that is corrected by orthogonal iteration."""
    a, size = _scaled(factors / factor_c, trace)
    basis = iterated_basis(a, roots[0])
    values = jnp.sum(basis * exact_product(a, basis), axis=0)
    return ((basis, _power(values, size, eps, exponent)),)


def root_by_eigh(
    factors: Square,
    roots: Square,
    *,
    eps: Real,
    exponent: Real,
    trace: bool,
    factor_c: Array,
) -> Square:
    """The root of a factor by its eigenvectors, from scratch."""
    del roots
    a, size = _scaled(factors / factor_c, trace)
    values, basis = jnp.linalg.eigh(a)
    powers = _power(values, size, eps, exponent)
    return exact_product(basis * powers[None, :], basis.T)


def root_by_newton(
    factors: Square,
    roots: Square,
    *,
    eps: Real,
    exponent: float,
    trace: bool,
    factor_c: Array,
) -> Square:
    """The root of a factor by coupled Newton steps, which are only products."""
    del roots
    a, size = _scaled(factors / factor_c, trace)
    a = a + eps / size * jnp.eye(len(a), dtype=a.dtype)
    # For eigenvalues that are 0 but for rounding.
    ridge = 8 * float(jnp.finfo(a.dtype).eps)
    inverse, _ = matrix_inverse_pth_root(a, round(1 / exponent), ridge_epsilon=ridge)
    return inverse * size**-exponent


ROOTS = {"basis": root_in_basis, "eigh": root_by_eigh, "newton": root_by_newton}


def _scaled(a: Square, trace: bool) -> tuple[Square, Float[Array, ""]]:
    """`a` with elements of at most 1, and the number that it was divided by.

    With `trace`, that number times `a` is `a / sqrt(tr(a))`.
    """
    tiny = jnp.finfo(a.dtype).tiny
    size = jnp.maximum(jnp.max(jnp.abs(a), initial=0), tiny)
    a = a / size
    if trace:
        size = jnp.sqrt(size / jnp.maximum(jnp.trace(a), tiny))
    return a, jnp.maximum(size, tiny)


def _power(values: Array, size: Array, eps: Real, exponent: Real) -> Array:
    """`(size values + eps)^-exponent`, where negative values are due to rounding.

    All values are raised by as much as the least one is below 0.
    """
    values = values - jnp.minimum(jnp.min(values, initial=0), 0) + eps / size
    tiny = jnp.finfo(values.dtype).tiny
    return size**-exponent * jnp.maximum(values, tiny) ** -exponent
