"""Dion2: Muon on the rows of the momentum that matter most.

Ahn et al., Dion2: a simple method to shrink matrix in Muon, 2025, arXiv:2512.16928
"""

from collections.abc import Mapping, Sequence
from math import ceil
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
from jax.typing import DTypeLike
from jaxtyping import Array

from .. import check
from ..core import (
    GradientTransformationExtraArgs,
    Matrix,
    passed,
    Real,
    Rule,
    ScalarOrSchedule,
    transformation,
    Updates,
)
from ..engine import lift, MaskOrFn, optimizer
from ..numerics import (
    Coefficients,
    first_moment,
    orthogonal,
    Polynomials,
    polynomials,
    quick_dtype,
)
from ._groups import PLAIN, Words
from ._muon import scale_by_shape
from ._recipe import folded, grouped, NotMatrix, Rest, unchanged
from ._sizes import Scale, SCALES

Side = Literal["short", "in", "out"]


class ScaleByDion2State(NamedTuple):
    """State of Dion2: one array per leaf."""

    mu: Updates  # sum of the gradients; rows that were used have decayed


def dion2_formula(
    g: Array,
    mu: Array,
    *,
    beta: Real,
    eps: Real,
    polynomials: Polynomials,
    dtype: DTypeLike | None,
    fraction: int | float,
    side: str,
    words: Words,
) -> tuple[Array, Array]:
    """The polar factor of the largest rows of one matrix; see `scale_by_dion2`."""
    if g.size == 0:
        return g, mu
    m = mu.reshape(g.shape) + g
    turned = _picks_columns(g.shape, side, words)
    m = m.T if turned else m
    k = rows_of(len(m), fraction)
    _, rows = jax.lax.top_k(jnp.sum(jnp.abs(m), 1), k)
    s = m[rows]
    u = orthogonal(s, polynomials, dtype=dtype or quick_dtype(s), eps=eps)
    u = jnp.zeros_like(m).at[rows].set(u, unique_indices=True)
    m = m.at[rows].set(beta * s, unique_indices=True)
    u, m = (u.T, m.T) if turned else (u, m)
    return u, m.reshape(mu.shape)


def rows_of(side: int, fraction: int | float) -> int:
    """`ceil(fraction side)`: the number of rows to use.

    Rounded first: in floating point `0.1 * 30` is above 3.

    Args:
        side: the number of rows.
        fraction: the part of them to use.
    """
    return min(side, max(1, ceil(round(fraction * side, 9))))


def _picks_columns(shape: tuple[int, ...], side: str, words: Words) -> bool:
    """Whether the selected side is that of the columns."""
    rows, columns = shape
    if side == "short" and rows != columns:
        return columns < rows
    wanted = "out" if side == "short" else side
    return words[0] != wanted


@transformation
def scale_by_dion2(
    beta: Real = 0.95,
    fraction: int | float = 0.25,
    eps: Real = 1e-8,
    mu_dtype: DTypeLike | None = None,
    *,
    side: Side = "short",
    coefficients: Coefficients = "polar_express",
    steps: int | None = None,
    dtype: DTypeLike | None = None,
) -> GradientTransformationExtraArgs:
    """Orthogonalize the largest rows of the sum of the gradients.

        mu    <- mu + g
        K      = the ceil(fraction side) rows of `mu` with the largest L1 norms
        u[K]   = U V^T                      where mu[K] = U S V^T; all other rows are 0
        mu[K] <- beta mu[K]

    With `fraction=1/4` the polar factor takes at most a quarter of the multiplications
    of Muon, and a sixteenth for square matrices. Rows that are not used keep their sum
    until it is large enough.

    Inside `jax.shard_map`, each device would treat its shard as a whole matrix. Gather
    the matrices first, or let `jit` handle the mesh axes that shard them.

    Args:
        beta: what remains of the rows that were used, in [0, 1).
        fraction: the fraction of the rows to use, above 0 and at most 1. It decides the
            shapes of arrays, so it must be a Python number.
        eps: added to the Frobenius norm of the rows, which they are divided by first.
        mu_dtype: dtype of `mu`; by default that of the params.
        side: what a row is: `short`, along the shorter side of the matrix (`out`, if
            both are equal); or `in` or `out`, for matrices of shape (in, out).
        coefficients: the polynomials. Either a name: `polar_express`, `dion`, `cans`,
            `standard` (the original ones) or `deepseek` (ten steps, closest to 1); or
            one triple `(a, b, c)` for all steps; or one triple for each step.
        steps: the number of steps; by default the number of polynomials. Extra steps
            bring the singular values closer to 1.
        dtype: dtype of the polynomials. By default float16 on a GPU, bfloat16 on a TPU
            and float32 elsewhere; float64 and complex matrices keep their dtype.
    """
    return _dion2(
        beta, fraction, eps, mu_dtype, side, coefficients, steps, dtype, PLAIN
    )


@optimizer
def dion2(
    learning_rate: ScalarOrSchedule,
    beta: Real = 0.95,
    fraction: int | float = 0.25,
    weight_decay: ScalarOrSchedule = 0.01,
    weight_decay_mask: MaskOrFn | None = None,
    mu_dtype: DTypeLike | None = None,
    *,
    side: Side = "short",
    eps: Real = 1e-8,
    coefficients: Coefficients = "polar_express",
    steps: int | None = None,
    dtype: DTypeLike | None = None,
    scale: Scale = "spectral",
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
    """Dion2 for the matrices of hidden layers, AdamW for all other leaves.

        mu    <- mu + g
        K      = the ceil(fraction side) rows of `mu` with the largest L1 norms
        u[K]   = U V^T                      where mu[K] = U S V^T; all other rows are 0
        mu[K] <- beta mu[K]
        p     <- p - learning_rate (sqrt(out / in) u + weight_decay p)

    `in` and `out` are the sides of the whole matrix. With `fraction=1/4` the polar
    factor takes at most a quarter of the multiplications of Muon, and a sixteenth for
    square matrices.

    A leaf goes to AdamW if it has fewer than two axes, if its path names a norm, bias,
    embedding, head or router, or if one of its axes is as long as a vocabulary.
    `print(steepest.describe(tx, params))` shows the group of each leaf and the reason.
    Leaves with more than two axes go to AdamW by default. To use Dion2 for them, say
    what their axes are with `stacked` and `routes`.

    Inside `jax.shard_map`, each device would treat its shard as a whole matrix. Gather
    the matrices first, or let `jit` handle the mesh axes that shard them.

    Args:
        learning_rate: a number, or a schedule (a function of the step count).
        beta: what remains of the rows that were used, in [0, 1).
        fraction: the fraction of the rows to use, above 0 and at most 1. It decides the
            shapes of arrays, so it must be a Python number.
        weight_decay: weight decay coefficient of the matrices, multiplied by the
            learning rate.
        weight_decay_mask: the leaves to decay: a tree of booleans, a function of the
            params that returns one, or a regular expression for their paths; by
            default all but vectors, norms and biases.
        mu_dtype: dtype of `mu`; by default that of the params.
        side: what a row is: `short`, along the shorter side of the matrix (`out`, if
            both are equal); or `in` or `out`.
        eps: added to the Frobenius norm of the rows, which they are divided by first.
        coefficients: the polynomials. Either a name: `polar_express`, `dion`, `cans`,
            `standard` (the original ones) or `deepseek` (ten steps, closest to 1); or
            one triple `(a, b, c)` for all steps; or one triple for each step.
        steps: the number of steps; by default the number of polynomials. Extra steps
            bring the singular values closer to 1.
        dtype: dtype of the polynomials. By default float16 on a GPU, bfloat16 on a TPU
            and float32 elsewhere; float64 and complex matrices keep their dtype.
        scale: the factor of `u`: `spectral`, as above; `original`,
            `sqrt(max(1, out / in))`; or `rms`, `rms sqrt(max(in, out))`.
        rms: the number in the last of these.
        stacked: a regular expression for leaves whose first axis indexes layers.
        routes: maps a pattern to `"dion2"`, `"adam"`, or a word for each of the last
            axes, such as `"in in in out"`: `in` for those that the layer sums over. The
            axes before those index a stack of matrices. Patterns are regular
            expressions that may match anywhere in a path, such as `encoder/0/kernel`;
            the first that does decides, and overrides all rules above.
        adam_learning_rate: learning rate of AdamW; by default `learning_rate`.
        adam_b1: decay rate of AdamW's mean of the gradients, in [0, 1).
        adam_b2: decay rate of AdamW's mean of their squares, in [0, 1).
        adam_eps: `eps` of AdamW.
        adam_weight_decay: weight decay of AdamW; by default `weight_decay`.
        memory_dtype: dtype of the arrays in the state that have no option of their own,
            such as `mu_dtype`, or where it is `None`; by default that of the params, or
            wider. With "int8", "int4" or "float8", averages for large matrices are
            stored in 8 or 4 bits: see `keeping`.
        keep_count: whether to count the steps even if the learning rate is a number, so
            that a schedule can replace it later.
        reshard: names of mesh axes, whose devices share the matrices: each matrix is
            sent to one device and back, once in a step, inside `jax.set_mesh`. By
            default the compiler shards every product. See `keeping`.
        keep_stacks: whether matrices of equal shape share the arrays of the state,
            which saves copies on one GPU. See `keeping`.

    >>> import jax.numpy as jnp, steepest
    >>> tx = steepest.dion2(learning_rate=0.01, weight_decay=0.0)
    >>> g = jnp.arange(24.0).reshape(4, 6)
    >>> updates, _ = tx.update(g, tx.init(g), g)
    >>> jnp.any(updates != 0, axis=1).tolist()  # the largest of four rows
    [False, False, False, True]
    """
    name = "dion2"
    (rms,) = check.amount(name, rms=rms)
    check.choice(name, SCALES, scale=scale)

    def matrices(words: Words) -> list[GradientTransformationExtraArgs]:
        numbers = beta, fraction, eps, mu_dtype, side, coefficients, steps, dtype
        return [_dion2(*numbers, words), scale_by_shape(scale, rms, words)]

    rest = Rest(adam_learning_rate, adam_b1, adam_b2, adam_eps, adam_weight_decay)
    return grouped(
        name,
        matrices,
        learning_rate,
        weight_decay,
        weight_decay_mask,
        mu_dtype,
        stacked,
        routes,
        rest,
    )


def _dion2(
    beta: Real,
    fraction: int | float,
    eps: Real,
    mu_dtype: DTypeLike | None,
    side: str,
    coefficients: Coefficients,
    steps: int | None,
    dtype: DTypeLike | None,
    words: Words,
) -> GradientTransformationExtraArgs:
    """`scale_by_dion2` for tensors whose last axes have these words."""
    name = "scale_by_dion2"
    (beta,) = check.fraction(name, beta=beta)
    (eps,) = check.nonnegative(name, eps=eps)
    check.dtype(name, mu_dtype=mu_dtype, dtype=dtype)
    check.choice(name, ("short", "in", "out"), side=side)
    if not isinstance(fraction, int | float) or not 0 < fraction <= 1:
        raise ValueError(
            f"{passed(name, 'fraction', fraction)} is {fraction!r}, expected a Python "
            "number above 0 and at most 1."
        )
    return lift(
        Rule(
            name,
            unchanged,
            ScaleByDion2State,
            memory={"mu": first_moment(mu_dtype)},
            numbers={
                "beta": beta,
                "eps": eps,
                "polynomials": polynomials(name, coefficients, steps),
                "dtype": None if dtype is None else jnp.dtype(dtype),
                "fraction": float(fraction),
                "side": side,
                "words": words,
            },
            # The memory in its signature keeps the matrices from being transposed.
            matrix=Matrix(dion2_formula, fold=folded),
            check_leaf=NotMatrix(len(words), "dion2"),
        )
    )
