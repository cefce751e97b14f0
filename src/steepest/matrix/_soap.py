"""SOAP: Adam in the eigenbasis of Shampoo's factors, AdamW for all other leaves.

Vyas et al., SOAP: improving and stabilizing Shampoo using Adam, 2024, arXiv:2409.11321
Eschenhagen et al., Purifying Shampoo, 2025, arXiv:2506.03595 (`fresh`)
Lin et al., Understanding and improving Shampoo and SOAP via Kullback-Leibler
minimization, 2025, arXiv:2509.03378 (`factors="kl"`)
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from jax.typing import DTypeLike
from jaxtyping import Array, Int

from .. import check
from ..core import (
    GradientTransformationExtraArgs,
    Matrix,
    PerStep,
    Real,
    Rule,
    ScalarOrSchedule,
    transformation,
    Updates,
)
from ..engine import lift, MaskOrFn, optimizer
from ..numerics import (
    bias_corrections,
    first_moment,
    second_moment,
    zero_count,
)
from ._groups import PLAIN, Words
from ._kl import (
    first_eigenvalues,
    first_or_next_eigenbasis,
    fresh_kl_factors,
    kl_soap_formula,
    kl_soap_paper_formula,
    next_eigenbasis,
)
from ._recipe import folded, grouped, in_blocks, NotMatrix, Rest, unchanged
from ._rotated_adam import (
    fresh_factors,
    fresh_formula,
    fresh_numbers,
    paper_formula,
    paper_numbers,
    soap_formula,
)
from ._sides import (
    at_intervals,
    Basis,
    Factors,
    first_bases,
    first_or_next_basis,
    LONGEST,
    next_basis,
    zero_factors,
)


class ScaleBySoapState(NamedTuple):
    """State of SOAP: a step count, and six arrays per matrix."""

    count: Int[Array, ""]  # number of steps taken
    mu: Updates  # mean of g, in `mu_dtype`
    nu: Updates  # mean of the squares of the coordinates of g
    factors: Updates  # (L, R): means of g g^T and g^T g
    bases: Updates  # (Q_L, Q_R): about the eigenvectors of the factors


class ScaleByKlSoapState(NamedTuple):
    """State of KL-SOAP: that of SOAP, and two vectors per matrix."""

    count: Int[Array, ""]  # number of steps taken
    mu: Updates  # mean of g, in `mu_dtype`
    nu: Updates  # mean of the squares of the coordinates of g
    factors: Updates  # (L, R): means of g R^-1 g^T / n and g^T L^-1 g / m
    bases: Updates  # (Q_L, Q_R): about the eigenvectors of the factors
    eigenvalues: Updates  # (lambda_L, lambda_R): about those of the factors


@transformation
def scale_by_soap(
    b1: Real = 0.95,
    b2: Real = 0.95,
    eps: Real = 1e-8,
    mu_dtype: DTypeLike | None = None,
    *,
    factors: Factors = "shampoo",
    factor_beta: Real | None = None,
    frequency: int = 10,
    rolled: bool = True,
    fresh: bool = False,
    bounded: bool | None = None,
    basis: Basis = "qr",
    basis_dtype: DTypeLike | None = None,
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
    gives the same updates. With `factors="kl"`, for a matrix of m rows and n columns:

        L <- factor_beta L + (1 - factor_beta) g R^-1 g^T / n
        R <- factor_beta R + (1 - factor_beta) g^T L^-1 g / m

    Here `R^-1` is `Q_R lambda_R^-1 Q_R^T`, and `lambda_R` the running averages of the
    squares of the columns of `lambda_L^(-1/2) Q_L^T g Q_R`; `L^-1` likewise.

    If `bounded`, `(Q_L^T mu Q_R) / (sqrt(nu) + eps)`, corrected for bias, is limited to
    what it can be in bases that do not change: 1 if `b1 = b2`, otherwise the smaller of
    `(1 - b1) / sqrt((1 - b2) (1 - b1^2 / b2))` and `1 / sqrt(1 - b2)`. `nu` keeps the
    coordinates of old bases. Without the bound, a change of the bases makes some
    updates thousands of times as large as others if gradients have a low rank, most of
    all if `fresh`.

    Args:
        b1: decay rate of `mu`, in [0, 1).
        b2: decay rate of `nu`, in [0, 1).
        eps: keeps `u` finite where `nu` is zero.
        mu_dtype: dtype of `mu`; by default that of the params.
        factors: `shampoo` or `kl`, as above.
        factor_beta: decay rate of `L` and `R`, in [0, 1); by default `b2`.
        frequency: number of steps between two corrections of a basis.
        rolled: whether the matrices take turns, so that all steps take about as long.
            The bases then begin with the identity. If `False`, all bases change in the
            same step, as in the paper: the first step computes them from scratch, by
            `eigh`, and makes no update. With `factors="kl"`, the bias of `mu` and `nu`
            is then not corrected, and `lambda^(-1/2)` is at most the length of the
            side, but at least 10 and at most 4000; otherwise `lambda` counts as at
            least `eps`.
        fresh: whether `g` enters `L` and `R` before the bases change and are used, with
            bias correction of `factor_beta`, as in newer implementations. No step is
            skipped, and `eps` is added after the bias correction of `nu`. With
            `factors="kl"`, `lambda` are then the eigenvalues of the factors when a
            basis changed last.
        bounded: whether the quotient is limited, as above. By default it is, except in
            the paper's order: `rolled=False` without `fresh`.
        basis: how a basis is corrected: `qr`, one step of orthogonal iteration; or
            `rotation`, first-order rotations, which are products only. They are more
            precise if `frequency` is 1, and less precise if it is above 2.
        basis_dtype: dtype of the bases; by default float32 or wider. A GPU rounds them
            to float16 in products in any case, so `float16` saves memory.
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
    check.dtype(name, mu_dtype=mu_dtype, basis_dtype=basis_dtype)
    bounded = rolled or fresh if bounded is None else bounded
    check.flag(name, rolled=rolled, fresh=fresh, bounded=bounded, one_sided=one_sided)
    check.choice(name, ("qr", "rotation"), basis=basis)
    check.choice(name, ("shampoo", "kl"), factors=factors)
    parts = (_kl_parts if factors == "kl" else _parts)(rolled, fresh)
    extra = {"eigenvalues": first_eigenvalues} if factors == "kl" else {}
    return lift(
        Rule(
            name,
            unchanged,
            ScaleByKlSoapState if extra else ScaleBySoapState,
            memory={
                "mu": first_moment(mu_dtype),
                "nu": second_moment(),
                "factors": zero_factors,
                "bases": first_bases(basis_dtype),
                **extra,
            },
            shared={"count": zero_count},
            numbers={
                "b1": b1,
                "b2": b2,
                "eps": eps,
                "factor_beta": beta,
                "frequency": frequency,
                "bounded": bounded,
                "basis": basis,
                "one_sided": one_sided,
                "longest": longest,
                "words": words,
            },
            per_step=parts.per_step,
            matrix=parts.matrix,
            check_leaf=NotMatrix(len(words), "soap", real=True),
        )
    )


class _Parts(NamedTuple):
    matrix: Matrix
    per_step: PerStep


def _parts(rolled: bool, fresh: bool) -> _Parts:
    """What a rule of SOAP consists of."""
    every = at_intervals(next_basis if rolled else first_or_next_basis, rolled)
    if fresh:
        matrix = Matrix(fresh_formula, folded, every, before=fresh_factors)
        return _Parts(matrix, fresh_numbers)
    matrix = Matrix(soap_formula if rolled else paper_formula, folded, every)
    return _Parts(matrix, bias_corrections if rolled else paper_numbers)


def _kl_parts(rolled: bool, fresh: bool) -> _Parts:
    """What a rule of KL-SOAP consists of."""
    if fresh:
        change = next_eigenbasis if rolled else first_or_next_eigenbasis
        every = at_intervals(change, rolled, writes=("bases", "eigenvalues"))
        matrix = Matrix(fresh_formula, folded, every, before=fresh_kl_factors)
        return _Parts(matrix, fresh_numbers)
    every = at_intervals(next_basis if rolled else first_or_next_basis, rolled)
    formula = kl_soap_formula if rolled else kl_soap_paper_formula
    per_step = bias_corrections if rolled else paper_numbers
    return _Parts(Matrix(formula, folded, every), per_step)


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
    factors: Factors = "shampoo",
    factor_beta: Real | None = None,
    frequency: int = 10,
    rolled: bool = True,
    fresh: bool = False,
    bounded: bool | None = None,
    basis: Basis = "qr",
    basis_dtype: DTypeLike | None = None,
    one_sided: bool = False,
    longest: int = LONGEST,
    block_size: int | None = None,
    stacked: str | None = None,
    routes: Mapping[str, str] | None = None,
    adam_learning_rate: ScalarOrSchedule | None = None,
    adam_b1: Real = 0.95,
    adam_b2: Real = 0.95,
    adam_eps: Real = 1e-8,
    adam_weight_decay: ScalarOrSchedule | None = None,
    memory_dtype: DTypeLike | None = None,
    keep_count: bool = False,
    reshard: str | Sequence[str] | None = None,
    keep_stacks: bool = False,
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
        factors: `shampoo`: the rows of a factor are weighted alike; or `kl`: they are
            whitened by the other factor, which makes the bases more precise.
        factor_beta: decay rate of the factors, in [0, 1); by default `b2`.
        frequency: number of steps between two corrections of a basis.
        rolled: whether the matrices take turns, so that all steps take about as long.
            If `False`, all bases change in the same step, and the first step computes
            them from scratch and makes no update, as in the paper.
        fresh: whether the gradient enters the factors before the bases change and are
            used, as in newer implementations.
        bounded: whether the update's coordinates are limited to what Adam can reach in
            bases that do not change, 1 if `b1 = b2`. Without it, a change of the bases
            can cause a huge update. By default they are, except in the paper's order:
            `rolled=False` without `fresh`.
        basis: how a basis is corrected: `qr`, one step of orthogonal iteration; or
            `rotation`, first-order rotations, which are products only. They are more
            precise if `frequency` is 1, and less precise if it is above 2.
        basis_dtype: dtype of the bases; by default float32 or wider. A GPU rounds them
            to float16 in products in any case, so `float16` saves memory.
        one_sided: whether only the shorter side of a matrix has a basis. It needs far
            less memory and time for long matrices.
        longest: a side with more elements has no basis.
        block_size: cut matrices into blocks with sides of at most this; each block is
            a matrix of its own. By default they are not cut.
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
            wider. Factors and bases are in float32 or wider. With "int8", "int4" or
            "float8", averages for large matrices are stored in 8 or 4 bits, and bases
            in float16: see `keeping`.
        keep_count: whether to count the steps even if the learning rate is a number, so
            that a schedule can replace it later.
        reshard: names of mesh axes, whose devices share the matrices: each matrix is
            sent to one device and back, once in a step, inside `jax.set_mesh`. By
            default the compiler shards every product. See `keeping`.
        keep_stacks: whether matrices of equal shape share the arrays of the state,
            which saves copies on one GPU. See `keeping`.

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
                factors=factors,
                factor_beta=factor_beta,
                frequency=frequency,
                rolled=rolled,
                fresh=fresh,
                bounded=bounded,
                basis=basis,
                basis_dtype=basis_dtype,
                one_sided=one_sided,
                longest=longest,
                words=words,
            )
        ]

    return grouped(
        "soap",
        in_blocks("soap", matrices, block_size),
        learning_rate,
        weight_decay,
        weight_decay_mask,
        mu_dtype,
        stacked,
        routes,
        Rest(adam_learning_rate, adam_b1, adam_b2, adam_eps, adam_weight_decay),
    )
