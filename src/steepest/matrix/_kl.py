"""Factors that minimize a KL divergence: each is whitened by the factor of the other
side.

Lin et al., Understanding and improving Shampoo and SOAP via Kullback-Leibler
minimization, 2025, arXiv:2509.03378
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from ..core import gives, Real
from ..numerics import (
    ema,
    exact_gram,
    exact_product,
    increment,
    limited,
    Sum,
    WeightedSum,
)
from ._rotated_adam import adam_in_bases, where_first
from ._sides import (
    Basis,
    first_or_next_basis,
    next_basis,
    PerSide,
    rotated,
    rotated_back,
    Sides,
    Sums,
)

# For rows and columns: a vector, or `None` if the side has none.
Vectors = tuple[Float[Array, " m"] | None, Float[Array, " n"] | None]

FIRST = 0.1  # the eigenvalues before the first step

first_eigenvalues = PerSide(lambda d: jnp.full(d, FIRST))


class KL(NamedTuple):
    """What a gradient changes."""

    coordinates: Array  # Q_L^T g Q_R
    factors: Sums
    eigenvalues: Vectors  # running averages, in the bases given


def new_kl(
    g: Array,
    factors: Sides,
    bases: Sides,
    eigenvalues: Vectors,
    roots: Vectors,
    beta: Real,
) -> KL:
    """Let `g` enter the factors and the eigenvalues.

        L   <- beta L   + (1 - beta) g R^-1 g^T / n            R^-1 = Q_R r^2 Q_R^T
        R   <- beta R   + (1 - beta) g^T L^-1 g / m            L^-1 = Q_L l^2 Q_L^T
        lambda_L <- beta lambda_L + (1 - beta) mean((Q_L^T g Q_R r)^2 of each row)
        lambda_R <- beta lambda_R + (1 - beta) mean((l Q_L^T g Q_R)^2 of each column)

    Args:
        g: the gradient of a matrix of m rows and n columns.
        factors: `L` and `R`.
        bases: `Q_L` and `Q_R`.
        eigenvalues: `lambda_L` and `lambda_R`.
        roots: `l` and `r`, the inverse roots of the eigenvalues.
        beta: decay rate.
    """
    m, n = g.shape
    q_l, q_r = bases
    # A side without a basis has the identity as its factor.
    l = 1.0 if roots[0] is None else roots[0][:, None]
    r = 1.0 if roots[1] is None else roots[1][None, :]
    right = g if q_r is None else exact_product(g, q_r)
    left = g if q_l is None else exact_product(q_l.T, g)
    both = right if q_l is None else exact_product(q_l.T, right)
    x, y = limited(right * r), limited(l * left)
    terms = exact_gram(x) / n, exact_gram(y.T) / m
    squares = (
        jnp.mean(jnp.square(limited(both * r)), axis=1),
        jnp.mean(jnp.square(limited(l * both)), axis=0),
    )
    mean = lambda a, x: ema(a, x, beta)
    means = jax.tree.map(mean, eigenvalues, _known(squares, eigenvalues))
    rows, columns = (
        None if x is None else WeightedSum(beta, 1 - beta, x)
        for x in _known(terms, factors)
    )
    return KL(both, (rows, columns), means)


def _known(new: tuple[Array, Array], old: Sides | Vectors) -> Sides | Vectors:
    """The values of the sides that had one."""
    rows, columns = (
        None if was is None else x for x, was in zip(new, old, strict=True)
    )
    return rows, columns


def inverse_roots(eigenvalues: Vectors, least: Real = 0.0) -> Vectors:
    """`eigenvalues^(-1/2)`, of eigenvalues of at least `least`."""

    def inverse(x: Array) -> Array:
        return 1 / jnp.sqrt(jnp.maximum(x, jnp.maximum(least, jnp.finfo(x.dtype).tiny)))

    return jax.tree.map(inverse, eigenvalues)


def bounded(eigenvalues: Vectors) -> Vectors:
    """Eigenvalues whose inverse roots are at most the length of the side.

    But at least 10, and at most 4000. This is the bound of the authors.
    """
    largest = lambda d: max(10, min(d, 4000))
    return jax.tree.map(lambda x: jnp.maximum(x, largest(len(x)) ** -2.0), eigenvalues)


def kl_soap_formula(
    g: Array,
    mu: Array,
    nu: Array,
    factors: Sides,
    bases: Sides,
    eigenvalues: Vectors,
    *,
    b1: Real,
    b2: Real,
    eps: Real,
    factor_beta: Real,
    bounded: bool,
    c1: Array,
    c2: Array,
) -> tuple[Array, Array, Array | Sum, Sums, Sides, Vectors]:
    """Adam in the bases of the last steps; then `g` enters factors and eigenvalues."""
    g = limited(g)
    roots = inverse_roots(eigenvalues, eps)
    new = new_kl(g, factors, bases, eigenvalues, roots, factor_beta)
    numbers = {"b1": b1, "b2": b2, "eps": eps, "bounded": bounded, "c1": c1, "c2": c2}
    results = adam_in_bases(g, mu, nu, bases, new.coordinates, **numbers)
    return *results, new.factors, bases, new.eigenvalues


def kl_soap_paper_formula(
    g: Array,
    mu: Array,
    nu: Array,
    factors: Sides,
    bases: Sides,
    eigenvalues: Vectors,
    *,
    b1: Real,
    b2: Real,
    eps: Real,
    factor_beta: Real,
    bounded: bool,
    first: Bool[Array, ""],
) -> tuple[Array, Array, Array, Sums, Sides, Vectors]:
    """`kl_soap_formula` without bias correction; the first step begins the factors."""
    g = limited(g)
    new = paper_kl(g, factors, bases, eigenvalues, factor_beta, first)
    numbers = {"b1": b1, "b2": b2, "eps": eps, "bounded": bounded}
    numbers |= {"c1": jnp.ones(()), "c2": jnp.ones(())}
    results = adam_in_bases(g, mu, nu, bases, new.coordinates, **numbers)
    u, mu, nu = where_first(first, (jnp.zeros_like(g), mu, nu), results)
    return u, mu, nu, new.factors, bases, new.eigenvalues


def kl_shampoo_formula(
    g: Array,
    mu: Array,
    factors: Sides,
    bases: Sides,
    eigenvalues: Vectors,
    *,
    b1: Real,
    eps: Real,
    factor_beta: Real,
) -> tuple[Array, Array, Sums, Sides, Vectors]:
    """Let `g` enter factors and eigenvalues; then divide by the roots of the latter.

    In this order a large gradient after many small ones makes no large step.
    """
    g = limited(g)
    mu = ema(mu, g, b1)
    roots = inverse_roots(eigenvalues, eps)
    new = new_kl(g, factors, bases, eigenvalues, roots, factor_beta)
    u = divided(mu, bases, inverse_roots(new.eigenvalues, eps), eps)
    return u, mu, new.factors, bases, new.eigenvalues


def kl_shampoo_paper_formula(
    g: Array,
    mu: Array,
    factors: Sides,
    bases: Sides,
    eigenvalues: Vectors,
    *,
    b1: Real,
    eps: Real,
    factor_beta: Real,
    first: Bool[Array, ""],
) -> tuple[Array, Array, Sums, Sides, Vectors]:
    """Divide first; the first step only begins the factors."""
    g = limited(g)
    mean = ema(mu, g, b1)
    u = divided(mean, bases, inverse_roots(eigenvalues), eps)
    new = paper_kl(g, factors, bases, eigenvalues, factor_beta, first)
    u, mu = where_first(first, (jnp.zeros_like(g), mu), (u, mean))
    return u, mu, new.factors, bases, new.eigenvalues


@gives("first", "start", "due")
def kl_shampoo_numbers(
    count: Array, *, frequency: Real
) -> tuple[dict[str, Array], Array]:
    """When the bases change, if all change in the same step."""
    return {
        "first": count == 0,
        "start": count == 1,
        "due": (count > 0) & ((count - 1) % frequency == 0),
    }, increment(count)


def paper_kl(
    g: Array,
    factors: Sides,
    bases: Sides,
    eigenvalues: Vectors,
    beta: Real,
    first: Bool[Array, ""],
) -> KL:
    """`new_kl`, but the first gradient is not whitened, and keeps the eigenvalues."""
    roots = jax.tree.map(lambda x: jnp.where(first, 1, x), inverse_roots(eigenvalues))
    new = new_kl(g, factors, bases, eigenvalues, roots, beta)
    later = jax.tree.map(
        lambda x, y: jnp.where(first, x, y), eigenvalues, bounded(new.eigenvalues)
    )
    return new._replace(eigenvalues=later)


def divided(x: Array, bases: Sides, roots: Vectors, eps: Real) -> Array:
    """`Q_L [(Q_L^T x Q_R) s / (1 + eps s)] Q_R^T`, where `s = l r^T`."""
    l = 1.0 if roots[0] is None else roots[0][:, None]
    r = 1.0 if roots[1] is None else roots[1][None, :]
    s = l * r
    return rotated_back(rotated(x, bases) * (s / (1 + eps * s)), bases)


def fresh_kl_factors(
    g: Array,
    factors: Sides,
    bases: Sides,
    eigenvalues: Vectors,
    *,
    eps: Real,
    factor_beta_now: Array,
) -> tuple[Array, Sums, Sides, Vectors]:
    """Let `g` enter the factors first, whitened by eigenvalues of at least `eps`."""
    g = limited(g)
    roots = inverse_roots(eigenvalues, eps)
    new = new_kl(g, factors, bases, eigenvalues, roots, factor_beta_now)
    return g, new.factors, bases, eigenvalues


def next_eigenbasis(
    factors: Array, bases: Array, eigenvalues: Array, *, basis: Basis
) -> tuple[Array, Array]:
    """The next basis of one side, and the eigenvalues of the factor in it."""
    del eigenvalues
    return _with_eigenvalues(factors, next_basis(factors, bases, basis=basis))


def first_or_next_eigenbasis(
    factors: Array,
    bases: Array,
    eigenvalues: Array,
    *,
    basis: Basis,
    start: Bool[Array, ""],
) -> tuple[Array, Array]:
    """The eigenvectors from scratch at the start, and corrections later."""
    del eigenvalues
    new = first_or_next_basis(factors, bases, basis=basis, start=start)
    return _with_eigenvalues(factors, new)


def _with_eigenvalues(a: Array, basis: Array) -> tuple[Array, Array]:
    return basis, jnp.sum(basis * exact_product(a, basis), axis=0)
