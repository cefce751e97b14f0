"""APOLLO: learning rates for the channels of a matrix from a random projection.

Zhu et al., APOLLO: SGD-like memory, AdamW-level performance, 2024, arXiv:2412.05270
Chen et al., Fira: can we achieve full-rank training of LLMs under low-rank constraint?,
2024, arXiv:2410.01623 (the limit of the norm)
"""

from collections.abc import Mapping
from typing import Literal, NamedTuple

import jax
from jax.typing import DTypeLike
from jaxtyping import Array, Int

from .. import check
from ..core import (
    GradientTransformationExtraArgs,
    Matrix,
    Real,
    Rule,
    ScalarOrSchedule,
    transformation,
    Updates,
)
from ..engine import lift, MaskOrFn, optimizer
from ..numerics import limited, norms_along, quotient, zero_count
from ._groups import PLAIN, Words
from ._low_rank import (
    adam_small,
    corrections,
    is_wide,
    Small,
    with_limited_growth,
)
from ._recipe import folded, grouped, NotMatrix, Rest

ScaleType = Literal["channel", "tensor"]


class ScaleByApolloState(NamedTuple):
    """State of APOLLO: a step count, and per matrix two small arrays and a number."""

    count: Int[Array, ""]  # number of steps taken
    mu: Updates  # mean of P^T g, in `mu_dtype`
    norm: Updates  # norm of the last step
    nu: Updates  # mean of |P^T g|^2


def random_projection(
    size: int, rank: int, seed: int, turn: Array, dtype: DTypeLike
) -> Array:
    """A matrix of shape (size, rank) with elements from N(0, 1 / rank).

    Args:
        size: the number of rows.
        rank: the number of columns.
        seed: a whole number.
        turn: the number of projections before this one.
        dtype: a real dtype.
    """
    key = jax.random.fold_in(jax.random.key(seed), turn)
    return jax.random.normal(key, (size, rank), dtype) * max(rank, 1) ** -0.5


def apollo_formula(
    g: Array,
    mu: Array,
    nu: Array,
    norm: Array,
    *,
    b1: Real,
    b2: Real,
    eps: Real,
    scale: Real,
    scale_type: ScaleType,
    growth: Real,
    seed: int,
    c: Array,
    turn: Array,
) -> tuple[Array, Array, Array, Array]:
    """One step of APOLLO for one matrix."""
    x = g if is_wide(g) else g.mT
    rank = mu.shape[0]
    projection = random_projection(x.shape[0], rank, seed, turn, nu.dtype)
    r = projection.T @ x
    a, mu, nu = adam_small(r, mu, nu, b1, b2, eps)
    axis = 0 if scale_type == "channel" else None
    phi = quotient(norms_along(a, axis), norms_along(r, axis))
    u, norm = with_limited_growth(g * (phi if is_wide(g) else phi.mT), norm, growth)
    return scale**0.5 * c * u, mu, nu, norm


@transformation
def scale_by_apollo(
    rank: int = 256,
    b1: Real = 0.9,
    b2: Real = 0.999,
    eps: Real = 1e-6,
    mu_dtype: DTypeLike | None = None,
    *,
    update_proj_gap: Real = 200,
    scale: Real = 1.0,
    scale_type: ScaleType = "channel",
    growth: Real = 1.01,
    seed: int = 0,
) -> GradientTransformationExtraArgs:
    """Scale the channels of a matrix as Adam scales those of its random projection.

        P    = random, (short, rank), from N(0, 1 / rank)
        r    = P^T g                            g transposed if it is tall
        mu  <- b1 mu + (1 - b1) r
        nu  <- b2 nu + (1 - b2) |r|^2
        a    = mu / (sqrt(nu) + eps)
        phi  = |a_j| / |r_j|                    for each column j; or |a| / |r|
        u    = phi g                            limited to |u| <= growth |last u|
        u   <- sqrt(scale) u sqrt(1 - b2^t) / (1 - b1^t)

    `P` is made again in each step, from `seed` and the step count, so the state does
    not hold it. Matrices with equal shorter sides share it. The limit comes before the
    bias correction, as in the authors' code, and does not apply after a step of zero.

    Inside `jax.shard_map`, each device would treat its shard as a whole matrix. Gather
    the matrices first, or let `jit` handle the mesh axes that shard them.

    Args:
        rank: the number of dimensions to project the shorter side to. A shorter side
            keeps its own size.
        b1: decay rate of `mu`, in [0, 1).
        b2: decay rate of `nu`, in [0, 1).
        eps: keeps `u` finite where the gradient is zero.
        mu_dtype: dtype of `mu`; by default that of the params.
        update_proj_gap: the number of steps until another `P`. The moments are not
            converted to it.
        scale: `sqrt(scale)` multiplies the steps.
        scale_type: `channel` for one `phi` per column of a wide matrix, and per row of
            a tall one; `tensor` for one per matrix.
        growth: the largest growth of the norm of the steps, from one to the next.
        seed: a whole number that determines all projections.
    """
    small = Small(rank, b1, b2, eps, mu_dtype, update_proj_gap, growth)
    return _scale_by_apollo(small, scale, scale_type, seed, "apollo")


@optimizer
def apollo(
    learning_rate: ScalarOrSchedule,
    rank: int = 256,
    b1: Real = 0.9,
    b2: Real = 0.999,
    eps: Real = 1e-6,
    weight_decay: ScalarOrSchedule = 0.0,
    weight_decay_mask: MaskOrFn | None = None,
    mu_dtype: DTypeLike | None = None,
    *,
    update_proj_gap: Real = 200,
    scale: Real = 1.0,
    scale_type: ScaleType = "channel",
    growth: Real = 1.01,
    seed: int = 0,
    stacked: str | None = None,
    routes: Mapping[str, str] | None = None,
    adam_learning_rate: ScalarOrSchedule | None = None,
    adam_b1: Real = 0.9,
    adam_b2: Real = 0.999,
    adam_eps: Real = 1e-8,
    adam_weight_decay: ScalarOrSchedule | None = None,
    memory_dtype: DTypeLike | None = None,
    keep_count: bool = False,
) -> GradientTransformationExtraArgs:
    """APOLLO for the matrices of hidden layers, AdamW for all other leaves.

        p <- p - learning_rate (u + weight_decay p)       u from `scale_by_apollo`

    A matrix of `m x n` params, `m <= n`, has `2 rank n + 1` numbers of state, where
    AdamW has `2 m n`. The authors use a learning rate of 0.01, and a quarter of the
    smallest side as `rank`.

    Leaves are sorted as by `muon`: vectors, norms, biases, embeddings, heads, routers
    and leaves with more than two axes go to AdamW, unless `stacked` or `routes` says
    otherwise. `print(steepest.describe(tx, params))` shows the group of each leaf and
    the reason.

    Inside `jax.shard_map`, each device would treat its shard as a whole matrix. Gather
    the matrices first, or let `jit` handle the mesh axes that shard them.

    Args:
        learning_rate: a number, or a schedule (a function of the step count).
        rank: the number of dimensions to project the shorter side to. A shorter side
            keeps its own size.
        b1: decay rate of the mean of the projected gradients, in [0, 1).
        b2: decay rate of the mean of their squares, in [0, 1).
        eps: keeps the steps finite where the gradient is zero.
        weight_decay: weight decay coefficient of the matrices, multiplied by the
            learning rate.
        weight_decay_mask: the leaves to decay: a tree of booleans, a function of the
            params that returns one, or a regular expression for their paths; by
            default all but vectors, norms and biases.
        mu_dtype: dtype of the mean; by default that of the params.
        update_proj_gap: the number of steps until another projection. The moments are
            not converted to it.
        scale: `sqrt(scale)` multiplies the steps of matrices.
        scale_type: `channel` for one learning rate per column of a wide matrix, and per
            row of a tall one; `tensor` for one per matrix.
        growth: the largest growth of the norm of a matrix's steps, from one to the
            next.
        seed: a whole number that determines all projections.
        stacked: a regular expression for leaves whose first axis indexes layers.
        routes: maps a pattern to `"apollo"`, `"adam"`, or a word for each of the last
            axes, `in` or `out`; the axes before those index a stack of matrices.
            Patterns are regular expressions that may match anywhere in a path, such as
            `encoder/0/kernel`; the first that does decides, and overrides all rules
            above.
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

    >>> import jax.numpy as jnp, steepest
    >>> params = {"kernel": jnp.ones((256, 1024))}
    >>> state = steepest.apollo(0.01, rank=64).init(params)
    >>> state.inner_states["apollo"].inner_state[0].mu["kernel"].shape
    (64, 1024)
    """

    small = Small(rank, b1, b2, eps, mu_dtype, update_proj_gap, growth)

    def matrices(words: Words) -> list[GradientTransformationExtraArgs]:
        return [_scale_by_apollo(small, scale, scale_type, seed, "apollo", words)]

    return grouped(
        "apollo",
        matrices,
        learning_rate,
        weight_decay,
        weight_decay_mask,
        mu_dtype,
        stacked,
        routes,
        Rest(adam_learning_rate, adam_b1, adam_b2, adam_eps, adam_weight_decay),
    )


@optimizer
def apollo_mini(
    learning_rate: ScalarOrSchedule,
    b1: Real = 0.9,
    b2: Real = 0.999,
    eps: Real = 1e-6,
    weight_decay: ScalarOrSchedule = 0.0,
    weight_decay_mask: MaskOrFn | None = None,
    mu_dtype: DTypeLike | None = None,
    *,
    update_proj_gap: Real = 200,
    scale: Real = 128.0,
    growth: Real = 1.01,
    seed: int = 0,
    stacked: str | None = None,
    routes: Mapping[str, str] | None = None,
    adam_learning_rate: ScalarOrSchedule | None = None,
    adam_b1: Real = 0.9,
    adam_b2: Real = 0.999,
    adam_eps: Real = 1e-8,
    adam_weight_decay: ScalarOrSchedule | None = None,
    memory_dtype: DTypeLike | None = None,
    keep_count: bool = False,
) -> GradientTransformationExtraArgs:
    """APOLLO-Mini: `apollo` with rank 1 and one learning rate per matrix.

        p <- p - learning_rate (u + weight_decay p)       u from `scale_by_apollo`

    A matrix of `m x n` params, `m <= n`, has `2 n + 1` numbers of state. The authors
    use a learning rate of 0.01.

    Leaves are sorted as by `muon`: vectors, norms, biases, embeddings, heads, routers
    and leaves with more than two axes go to AdamW, unless `stacked` or `routes` says
    otherwise. `print(steepest.describe(tx, params))` shows the group of each leaf and
    the reason.

    Inside `jax.shard_map`, each device would treat its shard as a whole matrix. Gather
    the matrices first, or let `jit` handle the mesh axes that shard them.

    Args:
        learning_rate: a number, or a schedule (a function of the step count).
        b1: decay rate of the mean of the projected gradients, in [0, 1).
        b2: decay rate of the mean of their squares, in [0, 1).
        eps: keeps the steps finite where the gradient is zero.
        weight_decay: weight decay coefficient of the matrices, multiplied by the
            learning rate.
        weight_decay_mask: the leaves to decay: a tree of booleans, a function of the
            params that returns one, or a regular expression for their paths; by
            default all but vectors, norms and biases.
        mu_dtype: dtype of the mean; by default that of the params.
        update_proj_gap: the number of steps until another projection. The moments are
            not converted to it.
        scale: `sqrt(scale)` multiplies the steps of matrices.
        growth: the largest growth of the norm of a matrix's steps, from one to the
            next.
        seed: a whole number that determines all projections.
        stacked: a regular expression for leaves whose first axis indexes layers.
        routes: maps a pattern to `"apollo_mini"`, `"adam"`, or a word for each of the
            last axes, `in` or `out`; the axes before those index a stack of matrices.
            Patterns are regular expressions that may match anywhere in a path, such as
            `encoder/0/kernel`; the first that does decides, and overrides all rules
            above.
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
    """

    small = Small(1, b1, b2, eps, mu_dtype, update_proj_gap, growth)

    def matrices(words: Words) -> list[GradientTransformationExtraArgs]:
        return [_scale_by_apollo(small, scale, "tensor", seed, "apollo_mini", words)]

    return grouped(
        "apollo_mini",
        matrices,
        learning_rate,
        weight_decay,
        weight_decay_mask,
        mu_dtype,
        stacked,
        routes,
        Rest(adam_learning_rate, adam_b1, adam_b2, adam_eps, adam_weight_decay),
    )


def _scale_by_apollo(
    small: Small,
    scale: Real,
    scale_type: ScaleType,
    seed: int,
    recipe: str,
    words: Words = PLAIN,
) -> GradientTransformationExtraArgs:
    """`scale_by_apollo` for tensors whose last axes have these words."""
    name = "scale_by_apollo"
    (scale,) = check.nonnegative(name, scale=scale)
    (seed,) = check.whole(name, seed=seed)
    check.choice(name, ("channel", "tensor"), scale_type=scale_type)
    numbers = {"scale": scale, "scale_type": scale_type, "seed": seed, "words": words}
    return lift(
        Rule(
            name,
            limited,
            ScaleByApolloState,
            memory=small.memory,
            shared={"count": zero_count},
            numbers=small.checked(name) | numbers,
            per_step=corrections,
            matrix=Matrix(apollo_formula, fold=folded),
            check_leaf=NotMatrix(len(words), recipe),
        )
    )
