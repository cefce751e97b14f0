"""SOAP-Muon: the polar factor of SOAP's update, AdamW for all other leaves.

Records 44 to 46 of track 3, 2026, github.com/KellerJordan/modded-nanogpt
Vyas et al., SOAP: improving and stabilizing Shampoo using Adam, 2024, arXiv:2409.11321
Jordan et al., Muon: an optimizer for hidden layers in neural networks, 2024,
kellerjordan.github.io/posts/muon
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import jax.numpy as jnp
from jax.typing import DTypeLike
from jaxtyping import Array, Int

from .. import check
from ..core import (
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
    Coefficients,
    ema,
    first_moment,
    increment,
    leafwise_ema,
    limited,
    orthogonal,
    Polynomials,
    polynomials,
    quick_dtype,
    root,
    second_moment,
    stored,
    Sum,
    zero_count,
)
from ._groups import PLAIN, Words
from ._muon import Scale, scale_by_shape
from ._recipe import folded, grouped, in_blocks, NotMatrix, Rest, unchanged
from ._sides import (
    at_intervals,
    Basis,
    first_bases,
    first_or_next_basis,
    LONGEST,
    new_factors,
    next_basis,
    NORMALIZED,
    rotated,
    rotated_back,
    Sides,
    Sums,
    zero_factors,
)


class ScaleBySoapMuonState(NamedTuple):
    """State of SOAP-Muon: a step count, and six arrays per matrix."""

    count: Int[Array, ""]  # number of steps taken
    mu: Updates  # mean of g, in `mu_dtype`
    nu: Updates  # mean of the squares of the coordinates of m
    factors: Updates  # (L, R): means of g g^T and g^T g
    bases: Updates  # (Q_L, Q_R): about the eigenvectors of the factors


def soap_muon_formula(
    g: Array,
    mu: Array,
    nu: Array,
    factors: Sides,
    bases: Sides,
    *,
    beta: Real,
    b2: Real,
    eps: Real,
    factor_beta: Real,
    polynomials: Polynomials,
    dtype: DTypeLike | None,
) -> tuple[Array, Array, Array | Sum, Sums, Sides]:
    """The polar factor of scaled momentum; then `g` enters the factors."""
    g = limited(g)
    mu = stored(ema(mu, g, beta))
    m = rotated(ema(mu, g, beta), bases)
    squares = jnp.square(m)
    x = m / jnp.maximum(root(ema(nu, squares, b2)), eps)
    x = rotated_back(x, bases, size=NORMALIZED)
    u = orthogonal(x, polynomials, dtype=dtype or quick_dtype(x), eps=eps)
    sums = new_factors(g, factors, factor_beta)
    return u, mu, leafwise_ema(nu, squares, b2), sums, bases


@gives()
def counted(count: Array) -> tuple[dict[str, Array], Array]:
    """Only count the steps."""
    return {}, increment(count)


@gives("start", "due")
def basis_steps(count: Array, *, frequency: int) -> tuple[dict[str, Array], Array]:
    """After the first step, from scratch, and after every `frequency` steps."""
    due = (count > 0) & ((count - 1) % frequency == 0)
    return {"start": count == 1, "due": due}, increment(count)


@transformation
def scale_by_soap_muon(
    beta: Real = 0.95,
    b2: Real = 0.9,
    eps: Real = 1e-8,
    mu_dtype: DTypeLike | None = None,
    *,
    factor_beta: Real | None = None,
    frequency: int = 1,
    rolled: bool = True,
    basis: Basis = "qr",
    basis_dtype: DTypeLike | None = None,
    one_sided: bool = False,
    longest: int = LONGEST,
    coefficients: Coefficients = "polar_express",
    steps: int | None = None,
    dtype: DTypeLike | None = None,
    words: Words = PLAIN,
) -> GradientTransformationExtraArgs:
    """Scale momentum in a slowly changing basis as SOAP does, and orthogonalize it.

        mu <- beta mu + (1 - beta) g
        m   = Q_L^T (beta mu + (1 - beta) g) Q_R
        nu <- b2 nu + (1 - b2) m^2
        x   = Q_L [m / max(sqrt(nu), eps)] Q_R^T
        u   = U V^T                                 where x = U S V^T
        L  <- factor_beta L + (1 - factor_beta) g g^T
        R  <- factor_beta R + (1 - factor_beta) g^T g
        Q_L <- the Q of the QR decomposition of L Q_L, every `frequency` steps
        Q_R <- the Q of the QR decomposition of R Q_R, every `frequency` steps

    The original also gives `x` the norm of the momentum, which `u` does not depend on.

    Args:
        beta: decay rate of `mu`, in [0, 1).
        b2: decay rate of `nu`, in [0, 1).
        eps: the smallest divisor of `m`. Also added to `|x|`, which `x` is divided by.
        mu_dtype: dtype of `mu`; by default that of the params.
        factor_beta: decay rate of `L` and `R`, in [0, 1); by default `b2`.
        frequency: number of steps between two corrections of a basis.
        rolled: whether the matrices take turns, so that all steps take about as long.
            If `False`, all bases change in the same step: the second step computes them
            from scratch, by `eigh`.
        basis: how a basis is corrected: `qr`, one step of orthogonal iteration; or
            `rotation`, first-order rotations, which are products only. They are more
            precise if `frequency` is 1, and less precise if it is above 2.
        basis_dtype: dtype of the bases; by default float32 or wider. A GPU rounds them
            to float16 in products in any case, so `float16` saves memory.
        one_sided: whether only the shorter side of a matrix has a basis.
        longest: a side with more elements has no basis.
        coefficients: the polynomials. Either a name: `polar_express`, `dion`, `cans`,
            `standard` (Muon's original ones) or `deepseek` (ten steps, closest to 1);
            or one triple `(a, b, c)` for all steps; or one triple for each step.
        steps: the number of polynomials to apply; by default all of them, once.
        dtype: dtype of the polynomials. By default float16 on a GPU, bfloat16 on a TPU
            and float32 elsewhere; float64 matrices keep their dtype.
        words: `in` or `out` for each of the last axes, equal words together. The layer
            sums over the axes called `in`; axes without a word index matrices.
    """
    name = "scale_by_soap_muon"
    decay = b2 if factor_beta is None else factor_beta
    beta, b2, decay = check.fraction(name, beta=beta, b2=b2, factor_beta=decay)
    (eps,) = check.nonnegative(name, eps=eps)
    frequency, longest = check.period(name, frequency=frequency, longest=longest)
    check.dtype(name, mu_dtype=mu_dtype, basis_dtype=basis_dtype, dtype=dtype)
    check.flag(name, rolled=rolled, one_sided=one_sided)
    check.choice(name, ("qr", "rotation"), basis=basis)
    return lift(
        Rule(
            name,
            unchanged,
            ScaleBySoapMuonState,
            memory={
                "mu": first_moment(mu_dtype),
                "nu": second_moment(),
                "factors": zero_factors,
                "bases": first_bases(basis_dtype),
            },
            shared={"count": zero_count},
            numbers={
                "beta": beta,
                "b2": b2,
                "eps": eps,
                "factor_beta": decay,
                "frequency": frequency,
                "basis": basis,
                "one_sided": one_sided,
                "longest": longest,
                "polynomials": polynomials(name, coefficients, steps),
                "dtype": None if dtype is None else jnp.dtype(dtype),
                "words": words,
            },
            per_step=counted if rolled else basis_steps,
            matrix=Matrix(
                soap_muon_formula,
                folded,
                at_intervals(next_basis if rolled else first_or_next_basis, rolled),
            ),
            check_leaf=NotMatrix(len(words), "soap_muon", real=True),
        )
    )


@optimizer
def soap_muon(
    learning_rate: ScalarOrSchedule,
    beta: Real = 0.95,
    b2: Real = 0.9,
    eps: Real = 1e-8,
    weight_decay: ScalarOrSchedule = 0.1,
    weight_decay_mask: MaskOrFn | None = None,
    mu_dtype: DTypeLike | None = None,
    *,
    factor_beta: Real | None = None,
    frequency: int = 1,
    rolled: bool = True,
    basis: Basis = "qr",
    basis_dtype: DTypeLike | None = None,
    one_sided: bool = False,
    longest: int = LONGEST,
    block_size: int | None = None,
    coefficients: Coefficients = "polar_express",
    steps: int | None = None,
    dtype: DTypeLike | None = None,
    scale: Scale = "rms",
    rms: Real = 0.2,
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
    """SOAP-Muon for the matrices of hidden layers, AdamW for all other leaves.

        p <- p - learning_rate (c u + weight_decay p)   u from `scale_by_soap_muon`
        c  = rms sqrt(max(rows, columns))

    Which leaves are matrices, `stacked` and `routes`: see `muon`.
    `print(steepest.describe(tx, params))` shows the group of each leaf and the reason.

    Inside `jax.shard_map`, each device would treat its shard as a whole matrix. Gather
    the matrices first, or let `jit` handle the mesh axes that shard them.

    Args:
        learning_rate: a number, or a schedule (a function of the step count).
        beta: decay rate of the mean of the gradients, in [0, 1).
        b2: decay rate of the mean of the squares of the coordinates, in [0, 1).
        eps: keeps the updates finite where that mean is zero. Also added to the
            Frobenius norm, which the matrix is divided by.
        weight_decay: weight decay coefficient of the matrices, multiplied by the
            learning rate.
        weight_decay_mask: the leaves to decay: a tree of booleans, a function of the
            params that returns one, or a regular expression for their paths; by
            default all but vectors, norms and biases.
        mu_dtype: dtype of the mean; by default that of the params.
        factor_beta: decay rate of the factors, in [0, 1); by default `b2`.
        frequency: number of steps between two corrections of a basis.
        rolled: whether the matrices take turns, so that all steps take about as long.
            If `False`, all bases change in the same step: the second step computes them
            from scratch, by `eigh`.
        basis: how a basis is corrected: `qr`, one step of orthogonal iteration; or
            `rotation`, first-order rotations, which are products only. They are more
            precise if `frequency` is 1, and less precise if it is above 2.
        basis_dtype: dtype of the bases; by default float32 or wider. A GPU rounds them
            to float16 in products in any case, so `float16` saves memory.
        one_sided: whether only the shorter side of a matrix has a basis. It needs far
            less memory and time for long matrices.
        longest: a side with more elements has no basis.
        block_size: cut matrices into blocks with sides of at most this; each block is
            a matrix of its own, also in `c`. By default they are not cut.
        coefficients: the polynomials. Either a name: `polar_express`, `dion`, `cans`,
            `standard` (Muon's original ones) or `deepseek` (ten steps, closest to 1);
            or one triple `(a, b, c)` for all steps; or one triple for each step.
        steps: the number of polynomials to apply; by default all of them, once.
        dtype: dtype of the polynomials. By default float16 on a GPU, bfloat16 on a TPU
            and float32 elsewhere; float64 matrices keep their dtype.
        scale: how `c` is computed: `rms`, as above; `original`,
            `sqrt(max(1, out / in))`; `spectral`, `sqrt(out / in)`, where `in` is the
            size of the axes that the layer sums over.
        rms: root mean square of `c u`, for `scale="rms"`.
        stacked: a regular expression for leaves whose first axis indexes layers.
        routes: maps a pattern to `"soap_muon"`, `"adam"`, or a word for each of the
            last axes: `in` for those that the layer sums over, `out` for the others.
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
    >>> tx = steepest.soap_muon(learning_rate=1e-3)
    >>> params = {"kernel": jnp.ones((8, 8)), "bias": jnp.ones(8)}
    >>> for line in steepest.describe(tx, params).lines:
    ...     print(line.path, line.shape, *line.groups, line.bytes)
    ['bias'] (8,) adam 64
    ['kernel'] (8, 8) soap_muon 1536
    """
    name = "soap_muon"
    (rms,) = check.amount(name, rms=rms)
    check.choice(name, ("rms", "original", "spectral"), scale=scale)

    def matrices(words: Words) -> list[GradientTransformationExtraArgs]:
        return [
            scale_by_soap_muon(
                beta,
                b2,
                eps,
                mu_dtype,
                factor_beta=factor_beta,
                frequency=frequency,
                rolled=rolled,
                basis=basis,
                basis_dtype=basis_dtype,
                one_sided=one_sided,
                longest=longest,
                coefficients=coefficients,
                steps=steps,
                dtype=dtype,
                words=words,
            ),
            scale_by_shape(scale, rms, words),
        ]

    return grouped(
        name,
        in_blocks(name, matrices, block_size),
        learning_rate,
        weight_decay,
        weight_decay_mask,
        mu_dtype,
        stacked,
        routes,
        Rest(adam_learning_rate, adam_b1, adam_b2, adam_eps, adam_weight_decay),
    )
