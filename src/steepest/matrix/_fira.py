"""Fira: Adam in the main directions of the gradient, scaled SGD in all others.

Chen et al., Fira: can we achieve full-rank training of LLMs under low-rank constraint?,
2024, arXiv:2410.01623
"""

from collections.abc import Mapping
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.typing import DTypeLike
from jaxtyping import Array, Int

from ..core import (
    Every,
    GradientTransformationExtraArgs,
    Matrix,
    Param,
    Real,
    Rule,
    ScalarOrSchedule,
    transformation,
    Updates,
)
from ..engine import lift, MaskOrFn, optimizer
from ..numerics import (
    first_moment,
    limited,
    norms,
    norms_along,
    quotient,
    zero_count,
)
from ._groups import PLAIN, Words
from ._low_rank import (
    adam_small,
    corrections,
    is_wide,
    Small,
    with_limited_growth,
)
from ._recipe import folded, grouped, NotMatrix, Rest


class ScaleByFiraState(NamedTuple):
    """State of Fira: a step count, and per matrix three small arrays and a number."""

    count: Int[Array, ""]  # number of steps taken
    basis: Updates  # P, of shape (*stack, short, rank)
    mu: Updates  # mean of P^T g, in `mu_dtype`
    norm: Updates  # norm of the last step outside the main directions
    nu: Updates  # mean of |P^T g|^2


def begin_basis(p: Param, *, rank: int, words: Words) -> Array:
    """The first unit vectors: (*stack, short, rank).

    They are used if the gradient is missing in the first step.
    """
    *stack, m, n = folded(p.shape, words=words)
    first = jnp.eye(min(m, n), min(rank, m, n), dtype=first_moment().usual(p))
    return jnp.broadcast_to(first, (*stack, *first.shape))


def basis_formula(g: Array, basis: Array) -> Array:
    """The first singular vectors of `g`, on its shorter side.

    Each has the sign that is nearer to the old vector, since the moments are kept.
    Derivatives do not flow through them.
    """
    x = jax.lax.stop_gradient(g if is_wide(g) else g.mT)
    most = jnp.max(jnp.abs(x), initial=0)
    left, _, _ = jnp.linalg.svd(quotient(x, most), full_matrices=False)
    new = left[:, : basis.shape[1]]
    along = jnp.sum(basis * new.conj(), 0, keepdims=True)
    sign = jnp.where(along == 0, 1, quotient(along, jnp.abs(along)))
    return new * sign


_FAR = 10  # times the norm that `s` has if all directions of `g` are alike


def fira_formula(
    g: Array,
    mu: Array,
    nu: Array,
    norm: Array,
    basis: Array,
    *,
    b1: Real,
    b2: Real,
    eps: Real,
    growth: Real,
    c: Array,
) -> tuple[Array, Array, Array, Array, Array]:
    """One step of Fira for one matrix."""
    x = g if is_wide(g) else g.mT
    r = basis.conj().T @ x
    a, mu, nu = adam_small(r, mu, nu, b1, b2, eps)
    phi = quotient(norms_along(a, 0), norms_along(r, 0))
    # Where `g` is almost orthogonal to the basis, `r` is no more than rounding errors.
    first = _FAR * (len(x) / max(len(r), 1)) ** 0.5 * norms(a, 2).reshape(())
    rest, norm = with_limited_growth((x - basis @ r) * phi, norm, growth, first)
    u = c * (basis @ a + rest)
    return u if is_wide(g) else u.mT, mu, nu, norm, basis


@transformation
def scale_by_fira(
    rank: int = 128,
    b1: Real = 0.9,
    b2: Real = 0.999,
    eps: Real = 1e-6,
    mu_dtype: DTypeLike | None = None,
    *,
    update_proj_gap: Real = 200,
    growth: Real = 1.01,
) -> GradientTransformationExtraArgs:
    """Adam in the main directions of a matrix; others get the same size of step.

        P   <- the first `rank` left singular vectors of g, in some steps
        r    = P^T g                            g transposed if it is tall
        mu  <- b1 mu + (1 - b1) r
        nu  <- b2 nu + (1 - b2) |r|^2
        a    = mu / (sqrt(nu) + eps)
        phi  = |a_j| / |r_j|                    for each column j
        s    = phi (g - P r)                    limited to |s| <= growth |last s|
        u    = (P a + s) sqrt(1 - b2^t) / (1 - b1^t)

    The limit comes before the bias correction, as in the authors' code. After a step of
    zero, the limit is `10 sqrt(m / rank) |a|` for `m` rows; theirs has none. The signs
    of the singular vectors, which a decomposition leaves open, are those nearer to the
    old ones.

    Inside `jax.shard_map`, each device would treat its shard as a whole matrix. Gather
    the matrices first, or let `jit` handle the mesh axes that shard them.

    Args:
        rank: the number of singular vectors to project to. A side that is shorter keeps
            its own size.
        b1: decay rate of `mu`, in [0, 1).
        b2: decay rate of `nu`, in [0, 1).
        eps: keeps `u` finite where the gradient is zero.
        mu_dtype: dtype of `mu`; by default that of the params.
        update_proj_gap: the number of steps between two singular value decompositions.
            The moments are not converted to the new directions.
        growth: the largest growth of the norm of `s`, from one step to the next.
    """
    small = Small(rank, b1, b2, eps, mu_dtype, update_proj_gap, growth)
    return _scale_by_fira(small)


@optimizer
def fira(
    learning_rate: ScalarOrSchedule,
    rank: int = 128,
    b1: Real = 0.9,
    b2: Real = 0.999,
    eps: Real = 1e-6,
    weight_decay: ScalarOrSchedule = 0.0,
    weight_decay_mask: MaskOrFn | None = None,
    mu_dtype: DTypeLike | None = None,
    *,
    update_proj_gap: Real = 200,
    growth: Real = 1.01,
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
    """Fira for the matrices of hidden layers, AdamW for all other leaves.

        p <- p - learning_rate (u + weight_decay p)       u from `scale_by_fira`

    A matrix of `m x n` params, `m <= n`, has `rank (2 n + m) + 1` numbers of state,
    where AdamW has `2 m n`. The authors use a learning rate of 0.01, and a quarter of
    the smallest side as `rank`.

    Leaves are sorted as by `muon`: vectors, norms, biases, embeddings, heads, routers
    and leaves with more than two axes go to AdamW, unless `stacked` or `routes` says
    otherwise. `print(steepest.describe(tx, params))` shows the group of each leaf and
    the reason.

    Inside `jax.shard_map`, each device would treat its shard as a whole matrix. Gather
    the matrices first, or let `jit` handle the mesh axes that shard them.

    Args:
        learning_rate: a number, or a schedule (a function of the step count).
        rank: the number of singular vectors to project to. A side that is shorter keeps
            its own size.
        b1: decay rate of the mean of the projected gradients, in [0, 1).
        b2: decay rate of the mean of their squares, in [0, 1).
        eps: keeps the steps finite where the gradient is zero.
        weight_decay: weight decay coefficient of the matrices, multiplied by the
            learning rate.
        weight_decay_mask: the leaves to decay: a tree of booleans, a function of the
            params that returns one, or a regular expression for their paths; by
            default all but vectors, norms and biases.
        mu_dtype: dtype of the mean; by default that of the params.
        update_proj_gap: the number of steps between two singular value decompositions.
            The moments are not converted to the new directions.
        growth: the largest growth of the norm of a matrix's steps, from one to the
            next.
        stacked: a regular expression for leaves whose first axis indexes layers.
        routes: maps a pattern to `"fira"`, `"adam"`, or a word for each of the last
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
    >>> state = steepest.fira(0.01, rank=64).init(params)
    >>> state.inner_states["fira"].inner_state[0].basis["kernel"].shape
    (256, 64)
    """
    small = Small(rank, b1, b2, eps, mu_dtype, update_proj_gap, growth)

    def matrices(words: Words) -> list[GradientTransformationExtraArgs]:
        return [_scale_by_fira(small, words)]

    return grouped(
        "fira",
        matrices,
        learning_rate,
        weight_decay,
        weight_decay_mask,
        mu_dtype,
        stacked,
        routes,
        Rest(adam_learning_rate, adam_b1, adam_b2, adam_eps, adam_weight_decay),
    )


def _scale_by_fira(
    small: Small, words: Words = PLAIN
) -> GradientTransformationExtraArgs:
    """`scale_by_fira` for tensors whose last axes have these words."""
    name = "scale_by_fira"
    return lift(
        Rule(
            name,
            limited,
            ScaleByFiraState,
            memory={"basis": begin_basis, **small.memory},
            shared={"count": zero_count},
            numbers={**small.checked(name), "words": words},
            per_step=corrections,
            matrix=Matrix(
                fira_formula,
                folded,
                Every(basis_formula, ("basis",), due="due", period="update_proj_gap"),
            ),
            check_leaf=NotMatrix(len(words), "fira"),
        )
    )
