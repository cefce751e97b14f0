"""SOAP: Adam in the eigenbasis of Shampoo's factors, AdamW for all other leaves.

Vyas et al., SOAP: improving and stabilizing Shampoo using Adam, 2024, arXiv:2409.11321
Eschenhagen et al., Purifying Shampoo, 2025, arXiv:2506.03595 (`fresh`)
"""

from collections.abc import Mapping
from typing import NamedTuple

import jax.numpy as jnp
from jax.typing import DTypeLike
from jaxtyping import Array, Bool, Int

from .. import check
from ..core import (
    Every,
    gives,
    GradientTransformationExtraArgs,
    Matrix,
    Real,
    Rule,
    ScalarOrSchedule,
    transformation,
    Updates,
)
from ..engine import lift, MaskOrFn, optimizer
from ..numerics import (
    bias_corrections,
    debias,
    ema,
    first_moment,
    increment,
    limited,
    root,
    second_moment,
    zero_count,
)
from ._groups import PLAIN, Words
from ._recipe import folded, grouped, NotMatrix, Rest
from ._sides import (
    Basis,
    first_bases,
    first_or_next_basis,
    LONGEST,
    new_factors,
    next_basis,
    rotated,
    rotated_back,
    Sides,
    zero_factors,
)


class ScaleBySoapState(NamedTuple):
    """State of SOAP: a step count, and six arrays per matrix."""

    count: Int[Array, ""]  # number of steps taken
    mu: Updates  # mean of g, in `mu_dtype`
    nu: Updates  # mean of the squares of the coordinates of g
    factors: Updates  # (L, R): means of g g^T and g^T g
    bases: Updates  # (Q_L, Q_R): about the eigenvectors of the factors


def adam_in_bases(
    g: Array,
    mu: Array,
    nu: Array,
    bases: Sides,
    *,
    b1: Real,
    b2: Real,
    eps: Real,
    c1: Array,
    c2: Array,
) -> tuple[Array, Array, Array]:
    """One step of Adam for the coordinates of a matrix, where `c = 1 - b^t`."""
    mu = ema(mu, g, b1)
    nu = ema(nu, jnp.square(rotated(g, bases)), b2)
    u = rotated(mu, bases) / (root(nu) + eps)
    return rotated_back(u, bases) * (root(c2) / c1), mu, nu


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
    c1: Array,
    c2: Array,
) -> tuple[Array, Array, Array, Sides, Sides]:
    """Adam in the bases of the last steps; then `g` enters the factors."""
    g = limited(g)
    u, mu, nu = adam_in_bases(g, mu, nu, bases, b1=b1, b2=b2, eps=eps, c1=c1, c2=c2)
    return u, mu, nu, new_factors(g, factors, factor_beta), bases


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
    c1: Array,
    c2: Array,
    first: Bool[Array, ""],
) -> tuple[Array, Array, Array, Sides, Sides]:
    """`soap_formula`, but the first step only begins the factors."""
    numbers = {"b1": b1, "b2": b2, "eps": eps, "c1": c1, "c2": c2}
    u, *new, factors, bases = soap_formula(
        g, mu, nu, factors, bases, factor_beta=factor_beta, **numbers
    )
    old = jnp.zeros_like(u), mu, nu
    pairs = zip(old, (u, *new), strict=True)
    u, mu, nu = (jnp.where(first, before, after) for before, after in pairs)
    return u, mu, nu, factors, bases


def fresh_factors(
    g: Array, factors: Sides, *, factor_beta_now: Array
) -> tuple[Array, Sides]:
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
    c1: Array,
    c2: Array,
) -> tuple[Array, Array, Array, Sides]:
    """Adam in bases that may depend on `g`."""
    u, mu, nu = adam_in_bases(g, mu, nu, bases, b1=b1, b2=b2, eps=eps, c1=c1, c2=c2)
    return u, mu, nu, bases


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


@transformation
def scale_by_soap(
    b1: Real = 0.95,
    b2: Real = 0.95,
    eps: Real = 1e-8,
    mu_dtype: DTypeLike | None = None,
    *,
    factor_beta: Real | None = None,
    frequency: int = 10,
    rolled: bool = True,
    fresh: bool = False,
    basis: Basis = "qr",
    one_sided: bool = False,
    longest: int = LONGEST,
    words: Words = PLAIN,
) -> GradientTransformationExtraArgs:
    """Run Adam on the coordinates of each matrix in a slowly changing basis.

        mu <- b1 mu + (1 - b1) g
        nu <- b2 nu + (1 - b2) (Q_L^T g Q_R)^2
        u   = Q_L [(Q_L^T mu Q_R) / (sqrt(nu) + eps)] Q_R^T sqrt(1 - b2^t) / (1 - b1^t)
        L  <- factor_beta L + (1 - factor_beta) g g^T
        R  <- factor_beta R + (1 - factor_beta) g^T g
        Q_L <- the Q of the QR decomposition of L Q_L, every `frequency` steps
        Q_R <- the Q of the QR decomposition of R Q_R, every `frequency` steps

    The paper keeps `mu` in the coordinates and converts it when a basis changes, which
    gives the same updates.

    Args:
        b1: decay rate of `mu`, in [0, 1).
        b2: decay rate of `nu`, in [0, 1).
        eps: keeps `u` finite where `nu` is zero.
        mu_dtype: dtype of `mu`; by default that of the params.
        factor_beta: decay rate of `L` and `R`, in [0, 1); by default `b2`.
        frequency: number of steps between two corrections of a basis.
        rolled: whether the matrices take turns, so that all steps take about as long.
            The bases then begin with the identity. If `False`, all bases change in the
            same step, as in the paper: the first step computes them from scratch, by
            `eigh`, and makes no update.
        fresh: whether `g` enters `L` and `R` before the bases change and are used, with
            bias correction of `factor_beta`, as in newer implementations. No step is
            skipped.
        basis: how a basis is corrected: `qr`, one step of orthogonal iteration; or
            `rotation`, by first-order rotations, which is faster on accelerators, and
            more precise if `frequency` is 1, but worse if it is above 2.
        one_sided: whether only the shorter side of a matrix has a basis.
        longest: a side with more elements has no basis.
        words: `in` or `out` for each of the last axes, equal words together. The layer
            sums over the axes called `in`; axes without a word index matrices.
    """
    name = "scale_by_soap"
    beta = b2 if factor_beta is None else factor_beta
    b1, b2, beta = check.fraction(name, b1=b1, b2=b2, factor_beta=beta)
    (eps,) = check.nonnegative(name, eps=eps)
    frequency, longest = check.period(name, frequency=frequency, longest=longest)
    check.dtype(name, mu_dtype=mu_dtype)
    check.flag(name, rolled=rolled, fresh=fresh, one_sided=one_sided)
    check.choice(name, ("qr", "rotation"), basis=basis)
    when = {"k": "frequency"} if rolled else {"due": "due"}
    change = next_basis if rolled else first_or_next_basis
    every = Every(change, writes=("bases",), sides=True, **when)
    if fresh:
        matrix = Matrix(fresh_formula, folded, every, before=fresh_factors)
        per_step = fresh_numbers
    else:
        matrix = Matrix(soap_formula if rolled else paper_formula, folded, every)
        per_step = bias_corrections if rolled else paper_numbers
    return lift(
        Rule(
            name,
            unchanged,
            ScaleBySoapState,
            memory={
                "mu": first_moment(mu_dtype),
                "nu": second_moment(),
                "factors": zero_factors,
                "bases": first_bases,
            },
            shared={"count": zero_count},
            numbers={
                "b1": b1,
                "b2": b2,
                "eps": eps,
                "factor_beta": beta,
                "frequency": frequency,
                "basis": basis,
                "one_sided": one_sided,
                "longest": longest,
                "words": words,
            },
            per_step=per_step,
            matrix=matrix,
            check_leaf=NotMatrix(len(words), "soap", real=True),
        )
    )


@optimizer
def soap(
    learning_rate: ScalarOrSchedule,
    b1: Real = 0.95,
    b2: Real = 0.95,
    eps: Real = 1e-8,
    weight_decay: ScalarOrSchedule = 0.01,
    weight_decay_mask: MaskOrFn | None = None,
    mu_dtype: DTypeLike | None = None,
    *,
    factor_beta: Real | None = None,
    frequency: int = 10,
    rolled: bool = True,
    fresh: bool = False,
    basis: Basis = "qr",
    one_sided: bool = False,
    longest: int = LONGEST,
    stacked: str | None = None,
    routes: Mapping[str, str] | None = None,
    adam_learning_rate: ScalarOrSchedule | None = None,
    adam_b1: Real = 0.95,
    adam_b2: Real = 0.95,
    adam_eps: Real = 1e-8,
    adam_weight_decay: ScalarOrSchedule | None = None,
    memory_dtype: DTypeLike | None = None,
    keep_count: bool = False,
) -> GradientTransformationExtraArgs:
    """SOAP for the matrices of hidden layers, AdamW for all other leaves.

        p <- p - learning_rate (u + weight_decay p)       u from `scale_by_soap`

    Which leaves are matrices, `stacked` and `routes`: see `muon`.
    `print(steepest.describe(tx, params))` shows the group of each leaf and the reason.

    Inside `jax.shard_map`, each device would treat its shard as a whole matrix. Gather
    the matrices first, or let `jit` handle the mesh axes that shard them.

    Args:
        learning_rate: a number, or a schedule (a function of the step count).
        b1: decay rate of the mean of the gradients, in [0, 1).
        b2: decay rate of the mean of the squares of their coordinates, in [0, 1).
        eps: keeps the updates finite where that mean is zero.
        weight_decay: weight decay coefficient of the matrices, multiplied by the
            learning rate.
        weight_decay_mask: the leaves to decay: a tree of booleans, a function of the
            params that returns one, or a regular expression for their paths; by
            default all but vectors, norms and biases.
        mu_dtype: dtype of the mean; by default that of the params.
        factor_beta: decay rate of the factors, in [0, 1); by default `b2`.
        frequency: number of steps between two corrections of a basis.
        rolled: whether the matrices take turns, so that all steps take about as long.
            If `False`, all bases change in the same step, and the first step computes
            them from scratch and makes no update, as in the paper.
        fresh: whether the gradient enters the factors before the bases change and are
            used, as in newer implementations.
        basis: how a basis is corrected: `qr`, one step of orthogonal iteration; or
            `rotation`, by first-order rotations, which is faster on accelerators, and
            more precise if `frequency` is 1, but worse if it is above 2.
        one_sided: whether only the shorter side of a matrix has a basis. It needs far
            less memory and time for long matrices.
        longest: a side with more elements has no basis.
        stacked: a regular expression for leaves whose first axis indexes layers.
        routes: maps a pattern to `"soap"`, `"adam"`, or a word for each of the last
            axes: `in` for those that the layer sums over, `out` for the others.
        adam_learning_rate: learning rate of AdamW; by default `learning_rate`.
        adam_b1: decay rate of AdamW's mean of the gradients, in [0, 1).
        adam_b2: decay rate of AdamW's mean of their squares, in [0, 1).
        adam_eps: `eps` of AdamW.
        adam_weight_decay: weight decay of AdamW; by default `weight_decay`.
        memory_dtype: dtype of the arrays in the state that have no option of their own,
            such as `mu_dtype`, or where it is `None`; by default that of the params, or
            wider. Factors and bases are always in float32 or wider.
        keep_count: whether to count the steps even if the learning rate is a number, so
            that a schedule can replace it later.

    >>> import jax.numpy as jnp, steepest
    >>> tx = steepest.soap(learning_rate=3e-3)
    >>> params = {"kernel": jnp.ones((8, 16)), "bias": jnp.ones(16)}
    >>> for line in steepest.describe(tx, params).lines:
    ...     print(line.path, line.shape, *line.groups, line.bytes)
    ['bias'] (16,) adam 128
    ['kernel'] (8, 16) soap 3584
    """

    def matrices(words: Words) -> list[GradientTransformationExtraArgs]:
        return [
            scale_by_soap(
                b1,
                b2,
                eps,
                mu_dtype,
                factor_beta=factor_beta,
                frequency=frequency,
                rolled=rolled,
                fresh=fresh,
                basis=basis,
                one_sided=one_sided,
                longest=longest,
                words=words,
            )
        ]

    return grouped(
        "soap",
        matrices,
        learning_rate,
        weight_decay,
        weight_decay_mask,
        mu_dtype,
        stacked,
        routes,
        Rest(adam_learning_rate, adam_b1, adam_b2, adam_eps, adam_weight_decay),
    )


def unchanged(g: Array) -> Array:
    """`u = g`: all is left to the matrix formula."""
    return g
