"""Shampoo: multiply by inverse roots of two factors, AdamW for all other leaves.

Gupta et al., Shampoo: preconditioned stochastic tensor optimization, 2018,
arXiv:1802.09568
Shi et al., A distributed data-parallel PyTorch implementation of the distributed
Shampoo optimizer, 2023, arXiv:2309.06497
Eschenhagen et al., Purifying Shampoo, 2025, arXiv:2506.03595 (`trace`)
Lin et al., Understanding and improving Shampoo and SOAP via Kullback-Leibler
minimization, 2025, arXiv:2509.03378 (`factors="kl"`)
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from jax.typing import DTypeLike
from jaxtyping import Array, Int

from .. import check
from ..core import (
    called_by_user,
    GradientTransformationExtraArgs,
    Matrix,
    Real,
    Rule,
    ScalarOrSchedule,
    transformation,
    Updates,
)
from ..engine import lift, MaskOrFn, optimizer
from ..numerics import first_moment, second_moment, zero_count
from ._groups import PLAIN, Words
from ._kl import (
    first_eigenvalues,
    kl_shampoo_formula,
    kl_shampoo_numbers,
    kl_shampoo_paper_formula,
)
from ._recipe import folded, grouped, in_blocks, NotMatrix, Rest, unchanged
from ._roots import (
    first_roots,
    first_tracked,
    Graft,
    GRAFTS,
    How,
    no_memory,
    ROOTS,
    shampoo_factors,
    shampoo_formula,
    shampoo_numbers,
)
from ._sides import (
    at_intervals,
    Factors,
    first_bases,
    first_or_next_basis,
    LONGEST,
    next_basis,
    zero_factors,
)


class ScaleByShampooState(NamedTuple):
    """State of Shampoo: a step count, and six arrays per matrix, five without `nu`."""

    count: Int[Array, ""]  # number of steps taken
    mu: Updates  # mean of g, in `mu_dtype`
    nu: Updates  # mean or sum of the squares of g; () if `graft` does not need it
    factors: Updates  # (L, R): means or sums of g g^T and g^T g
    # Their inverse roots, for rows and columns: an orthogonal matrix Q and a vector x,
    # for Q diag(x) Q^T; or the roots themselves.
    roots: Updates


class ScaleByKlShampooState(NamedTuple):
    """State of KL-Shampoo: a step count, five arrays and two vectors per matrix."""

    count: Int[Array, ""]  # number of steps taken
    mu: Updates  # mean of g, in `mu_dtype`
    factors: Updates  # (L, R): means of g R^-1 g^T / n and g^T L^-1 g / m
    bases: Updates  # (Q_L, Q_R): about the eigenvectors of the factors
    eigenvalues: Updates  # (lambda_L, lambda_R): about those of the factors


@transformation
def scale_by_shampoo(
    b1: Real = 0.9,
    b2: Real = 0.95,
    eps: Real = 1e-12,
    mu_dtype: DTypeLike | None = None,
    *,
    factors: Factors = "shampoo",
    factor_beta: Real | None = None,
    graft: Graft | None = None,
    graft_eps: Real = 1e-8,
    frequency: int = 10,
    start: int | None = None,
    rolled: bool = True,
    root: How = "basis",
    exponent: float | None = None,
    trace: bool = False,
    one_sided: bool = False,
    longest: int = LONGEST,
    words: Words = PLAIN,
) -> GradientTransformationExtraArgs:
    """Multiply the mean of the gradients by inverse roots of two factors.

        mu <- b1 mu + (1 - b1) g
        L  <- factor_beta L + (1 - factor_beta) g g^T
        R  <- factor_beta R + (1 - factor_beta) g^T g
        A   = (L / (1 - factor_beta^t) + eps I)^-exponent, every `frequency` steps
        B   = (R / (1 - factor_beta^t) + eps I)^-exponent, every `frequency` steps
        u   = A (mu / (1 - b1^t)) B

    With `graft="adam"`, `u` gets the norm of Adam's step, whose memory is `nu`:

        nu <- b2 nu + (1 - b2) g^2
        a   = (mu / (1 - b1^t)) / (sqrt(nu / (1 - b2^t)) + graft_eps)
        u  <- u |a| / |u|

    With `factors="kl"`, it is KL-Shampoo. For a matrix of m rows and n columns:

        u   = Q_L [(Q_L^T mu Q_R) s / (1 + eps s)] Q_R^T
        s_ij = (lambda_L,i lambda_R,j)^(-1/2)
        L  <- factor_beta L + (1 - factor_beta) g R^-1 g^T / n
        R  <- factor_beta R + (1 - factor_beta) g^T L^-1 g / m

    Here `Q` are the eigenvectors of `L` and `R`, `R^-1` is `Q_R lambda_R^-1 Q_R^T`, and
    `lambda_R` the running averages of the squares of the columns of
    `lambda_L^(-1/2) Q_L^T g Q_R`; `L^-1` and `lambda_L` likewise. All `lambda` begin at
    0.1, and count as at least `eps`. There is no bias correction and no grafting.

    For a square matrix in float32, the state has 24 bytes per element: `mu`, `nu`, two
    factors, and two roots. Without `nu`, also with `factors="kl"`, it has 20.

    Args:
        b1: decay rate of `mu`, in [0, 1).
        b2: decay rate of `nu`, in [0, 1).
        eps: added to the eigenvalues of the factors.
        mu_dtype: dtype of `mu`; by default that of the params.
        factors: `shampoo` or `kl`, as above.
        factor_beta: decay rate of `L` and `R`, in [0, 1]; by default `b2`. With 1, they
            are sums: `L <- L + g g^T`, and no bias is corrected.
        graft: the method whose norm `u` gets: `adam`; `rmsprop`, Adam without bias
            correction of `nu`; `adagrad`, where `nu` is a sum; `sgd`, the norm of the
            mean; or `none`, which leaves `u` alone. By default `adam`, and `none` with
            `factors="kl"`.
        graft_eps: keeps `a` finite where `nu` is zero.
        frequency: number of steps between two computations of a root.
        start: the first step that uses the roots; by default `frequency`. Before it,
            `u` is the step of `graft`.
        rolled: whether the matrices take turns, so that all steps take about as long.
            If `False`, all roots are computed in the same step, from step `start` on.
            With `factors="kl"`, it is then as in the paper: the first step computes the
            bases from scratch, by `eigh`, and makes no update; `g` enters `lambda` only
            after the update; and `lambda^(-1/2)` is at most the length of the side, but
            at least 10 and at most 4000.
        root: how the roots are computed: `basis`, by one step of orthogonal iteration
            for the eigenvectors; `eigh`, by all eigenvectors, which is slow on
            accelerators; or `newton`, by coupled Newton steps, if `1 / exponent` is a
            whole number.
        exponent: of the roots; by default 1/4. With 1/2, both factors are whole square
            roots, as in SOAP.
        trace: whether to divide each factor by the root of its trace first. With an
            `exponent` of 1/2, `u` then has the right length without grafting.
        one_sided: whether only the shorter side of a matrix has a factor.
        longest: a side with more elements has no factor.
        words: `in` or `out` for each of the last axes, equal words together. The layer
            sums over the axes called `in`; axes without a word index matrices.
    """
    name = "scale_by_shampoo"
    kl = check.choice(name, ("shampoo", "kl"), factors=factors)[0] == "kl"
    beta = b2 if factor_beta is None else factor_beta
    b1, b2, beta = check.fraction(name, b1=b1, b2=b2, factor_beta=beta)
    eps, graft_eps = check.nonnegative(name, eps=eps, graft_eps=graft_eps)
    frequency, longest = check.period(name, frequency=frequency, longest=longest)
    (begin,) = check.period(name, start=frequency if start is None else start)
    check.dtype(name, mu_dtype=mu_dtype)
    check.flag(name, rolled=rolled, trace=trace, one_sided=one_sided)
    check.choice(name, tuple(ROOTS), root=root)
    if graft is not None:
        check.choice(name, GRAFTS, graft=graft)
    (power,) = check.positive.must(
        name, exponent=0.25 if exponent is None else exponent
    )
    if root == "newton" and abs(1 / power - round(1 / power)) > 1e-6:
        raise ValueError(
            f"{called_by_user(name)}: exponent is {power}, expected 1/p for a whole "
            "number p. Use `root='basis'` for other roots."
        )
    shared = {
        "b1": b1,
        "b2": b2,
        "eps": eps,
        "factor_beta": beta,
        "frequency": frequency,
        "one_sided": one_sided,
        "longest": longest,
        "words": words,
    }
    memory = {"mu": first_moment(mu_dtype), "factors": zero_factors}
    if kl:
        if graft not in (None, "none") or root != "basis" or exponent or trace or start:
            raise ValueError(
                f"{called_by_user(name)}: factors is 'kl', expected no `graft`, "
                "`root`, `exponent`, `trace` or `start`. Leave them out: KL-Shampoo "
                "has none of them."
            )
        formula = kl_shampoo_formula if rolled else kl_shampoo_paper_formula
        change = next_basis if rolled else first_or_next_basis
        every = at_intervals(change, rolled)
        return lift(
            Rule(
                name,
                unchanged,
                ScaleByKlShampooState,
                {**memory, "bases": first_bases(), "eigenvalues": first_eigenvalues},
                {"count": zero_count},
                {**shared, "basis": "qr"},
                kl_shampoo_numbers,
                matrix=Matrix(formula, folded, every),
                check_leaf=NotMatrix(len(words), "shampoo", real=True),
            )
        )
    graft = "adam" if graft is None else graft
    every = at_intervals(ROOTS[root], rolled, writes=("roots",))
    return lift(
        Rule(
            name,
            unchanged,
            ScaleByShampooState,
            {
                **memory,
                "nu": no_memory if graft in ("sgd", "none") else second_moment(),
                "roots": first_tracked if root == "basis" else first_roots,
            },
            {"count": zero_count},
            {
                **shared,
                "graft": graft,
                "graft_eps": graft_eps,
                "start": begin,
                "exponent": power,
                "trace": trace,
            },
            shampoo_numbers,
            matrix=Matrix(shampoo_formula, folded, every, before=shampoo_factors),
            check_leaf=NotMatrix(len(words), "shampoo", real=True),
        )
    )


@optimizer
def shampoo(
    learning_rate: ScalarOrSchedule,
    b1: Real = 0.9,
    b2: Real = 0.95,
    eps: Real = 1e-12,
    weight_decay: ScalarOrSchedule = 0.01,
    weight_decay_mask: MaskOrFn | None = None,
    mu_dtype: DTypeLike | None = None,
    *,
    factors: Factors = "shampoo",
    factor_beta: Real | None = None,
    graft: Graft | None = None,
    graft_eps: Real = 1e-8,
    frequency: int = 10,
    start: int | None = None,
    rolled: bool = True,
    root: How = "basis",
    exponent: float | None = None,
    trace: bool = False,
    one_sided: bool = False,
    longest: int = LONGEST,
    block_size: int | None = None,
    stacked: str | None = None,
    routes: Mapping[str, str] | None = None,
    adam_learning_rate: ScalarOrSchedule | None = None,
    adam_b1: Real = 0.9,
    adam_b2: Real = 0.95,
    adam_eps: Real = 1e-8,
    adam_weight_decay: ScalarOrSchedule | None = None,
    memory_dtype: DTypeLike | None = None,
    keep_count: bool = False,
    reshard: str | Sequence[str] | None = None,
    keep_stacks: bool = False,
) -> GradientTransformationExtraArgs:
    """Shampoo for the matrices of hidden layers, AdamW for all other leaves.

        p <- p - learning_rate (u + weight_decay p)       u from `scale_by_shampoo`

    `factors="kl"` makes it KL-Shampoo. Which leaves are matrices, `stacked` and
    `routes`: see `muon`. `print(steepest.describe(tx, params))` shows the group of each
    leaf and the reason.

    Inside `jax.shard_map`, each device would treat its shard as a whole matrix. Gather
    the matrices first, or let `jit` handle the mesh axes that shard them.

    Args:
        learning_rate: a number, or a schedule (a function of the step count).
        b1: decay rate of the mean of the gradients, in [0, 1).
        b2: decay rate of the mean of their squares for `graft`, in [0, 1).
        eps: added to the eigenvalues of the factors.
        weight_decay: weight decay coefficient of the matrices, multiplied by the
            learning rate.
        weight_decay_mask: the leaves to decay: a tree of booleans, a function of the
            params that returns one, or a regular expression for their paths; by
            default all but vectors, norms and biases.
        mu_dtype: dtype of the mean; by default that of the params.
        factors: `shampoo`: the rows of a factor are weighted alike; or `kl`: they are
            whitened by the other factor, and the powers are -1/2.
        factor_beta: decay rate of the factors, in [0, 1]; by default `b2`. With 1, they
            are sums.
        graft: the method whose step length is used: `adam`, `rmsprop`, `adagrad`,
            `sgd` or `none`. By default `adam`, and `none` with `factors="kl"`.
        graft_eps: `eps` of that method.
        frequency: number of steps between two computations of a root.
        start: the first step that uses the roots; by default `frequency`. Steps before
            it are those of `graft`.
        rolled: whether the matrices take turns, so that all steps take about as long.
            If `False`, all roots are computed in the same step.
        root: how the roots are computed: `basis`, by one step of orthogonal iteration
            for the eigenvectors; `eigh`, by all eigenvectors, which is slow on
            accelerators; or `newton`, by coupled Newton steps.
        exponent: the factors get the power `-exponent`; by default 1/4.
        trace: whether to divide each factor by the root of its trace first. With an
            `exponent` of 1/2, steps then have the right length without grafting.
        one_sided: whether only the shorter side of a matrix has a factor. It needs far
            less memory and time for long matrices. An `exponent` of 1/2 suits it.
        longest: a side with more elements has no factor.
        block_size: cut matrices into blocks with sides of at most this; each block is
            a matrix of its own. By default they are not cut.
        stacked: a regular expression for leaves whose first axis indexes layers.
        routes: maps a pattern to `"shampoo"`, `"adam"`, or a word for each of the last
            axes: `in` for those that the layer sums over, `out` for the others.
        adam_learning_rate: learning rate of AdamW; by default `learning_rate`.
        adam_b1: decay rate of AdamW's mean of the gradients, in [0, 1).
        adam_b2: decay rate of AdamW's mean of their squares, in [0, 1).
        adam_eps: `eps` of AdamW.
        adam_weight_decay: weight decay of AdamW; by default `weight_decay`.
        memory_dtype: dtype of the arrays in the state that have no option of their own,
            such as `mu_dtype`, or where it is `None`; by default that of the params, or
            wider. Factors and roots are always in float32 or wider. With "int8", "int4"
            or "float8", averages for large matrices are stored in 8 or 4 bits: see
            `keeping`.
        keep_count: whether to count the steps even if the learning rate is a number, so
            that a schedule can replace it later.
        reshard: names of mesh axes, whose devices share the matrices: each matrix is
            sent to one device and back, once in a step, inside `jax.set_mesh`. By
            default the compiler shards every product. See `keeping`.
        keep_stacks: whether matrices of equal shape share the arrays of the state,
            which saves copies on one GPU. See `keeping`.

    >>> import jax.numpy as jnp, steepest
    >>> tx = steepest.shampoo(learning_rate=1e-3)
    >>> params = {"kernel": jnp.ones((8, 16)), "bias": jnp.ones(16)}
    >>> for line in steepest.describe(tx, params).lines:
    ...     print(line.path, line.shape, *line.groups, line.bytes)
    ['bias'] (16,) adam 128
    ['kernel'] (8, 16) shampoo 3680
    """

    def matrices(words: Words) -> list[GradientTransformationExtraArgs]:
        return [
            scale_by_shampoo(
                b1,
                b2,
                eps,
                mu_dtype,
                factors=factors,
                factor_beta=factor_beta,
                graft=graft,
                graft_eps=graft_eps,
                frequency=frequency,
                start=start,
                rolled=rolled,
                root=root,
                exponent=exponent,
                trace=trace,
                one_sided=one_sided,
                longest=longest,
                words=words,
            )
        ]

    return grouped(
        "shampoo",
        in_blocks("shampoo", matrices, block_size),
        learning_rate,
        weight_decay,
        weight_decay_mask,
        mu_dtype,
        stacked,
        routes,
        Rest(adam_learning_rate, adam_b1, adam_b2, adam_eps, adam_weight_decay),
    )
