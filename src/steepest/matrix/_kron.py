"""Kron: PSGD with triangular factors, AdamW for all other leaves.

Li, Preconditioned stochastic gradient descent, 2018, arXiv:1512.04202
Pooladzandi and Li, Curvature-informed SGD via general purpose Lie-group
preconditioners, 2024, arXiv:2402.04553
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.scipy.linalg import solve_triangular
from jax.typing import DTypeLike
from jaxtyping import Array, Float, Int

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
    debias,
    exact_gram,
    exact_product,
    first_moment,
    increment,
    zero_count,
)
from ..transforms import scale
from ._groups import PLAIN, Words
from ._recipe import grouped, Rest
from ._whitening import (
    as_matrix,
    balanced,
    excess,
    Factor,
    Factors,
    first_factors,
    is_due,
    mean_of,
    NotReal,
    times,
    whitened,
)

_RMS = 1.1  # the largest root mean square of an update
_LARGEST = 1e12  # of a matrix whose squares are summed


class ScaleByKronState(NamedTuple):
    """State of Kron: a step count, the mean, and two factors per matrix."""

    count: Int[Array, ""]  # number of steps taken
    mu: Updates  # mean of g, in `mu_dtype`
    factors: Updates  # (Q_rows, Q_columns), upper triangular


def kron_fit(
    g: Array,
    mu: Array,
    factors: Factors,
    *,
    fit_rate: Real,
    damping: Real,
    seed: int,
    t: Int[Array, ""],
    c1: Array,
) -> tuple[Factors]:
    """One step of both factors; `c1 = 1 - b1^t`."""
    v = probe(seed, t, g.shape, g.dtype)
    x = mu.reshape(g.shape) / c1
    x = x + (damping + _root_eps(x) * jnp.mean(jnp.abs(x))) * v
    rows, columns = factors
    a = times(columns, times(rows, x).T).T  # Q_rows x Q_columns^T
    b = _over(columns, _over(rows, v).T).T  # Q_rows^-T v Q_columns^-1
    a, b = a / excess(a, _LARGEST), b / excess(b, _LARGEST)
    rows = _side_fit(a, b, rows, fit_rate)
    columns = _side_fit(a.T, b.T, columns, fit_rate)
    return (balanced((rows, columns)),)


def probe(
    seed: int, t: Int[Array, ""], shape: tuple[int, ...], dtype: DTypeLike
) -> Array:
    """Random numbers, which depend on the seed and the step.

    Matrices of equal shape get the same ones: each only needs new ones at each step.

    Args:
        seed: the seed.
        t: the number of the step.
        shape: shape of the result.
        dtype: dtype of the result.
    """
    return jax.random.normal(jax.random.fold_in(jax.random.key(seed), t), shape, dtype)


def _root_eps(x: Array) -> float:
    return float(jnp.finfo(x.dtype).eps) ** 0.5


def _over(q: Factor, x: Array) -> Array:
    """`q^-T x`."""
    if q is None:
        return x
    return x / q[:, None] if q.ndim == 1 else solve_triangular(q, x, trans=1)


def _side_fit(a: Array, b: Array, q: Factor, rate: Real) -> Factor:
    """One step of the factor of the rows, towards equal covariances of `a` and `b`."""
    if q is None:
        return None
    if q.ndim == 1:
        found, wanted = (jnp.sum(jnp.square(x), axis=1) for x in (a, b))
        norm = jnp.max(found + wanted)
        return q - rate * ((found - wanted) / norm) * q
    found, wanted = exact_gram(a), exact_gram(b)
    norm = _lower_bound(found + wanted)
    return q - rate * exact_product(jnp.triu(found - wanted) / norm, q)


def _lower_bound(a: Float[Array, "d d"]) -> Float[Array, ""]:
    """About the largest eigenvalue: a step of the power method from the largest row."""
    largest = jnp.max(jnp.abs(a))
    a = a / largest
    x = a[jnp.argmax(jnp.sum(a * a, axis=1))] @ a
    return largest * jnp.sqrt(jnp.sum(jnp.square(a @ x)) / jnp.sum(jnp.square(x)))


def kron_formula(
    g: Array, mu: Array, factors: Factors, *, c1: Array
) -> tuple[Array, Array, Factors]:
    """The whitened mean, limited."""
    u = whitened(mu.reshape(g.shape) / c1, factors)
    return u / excess(u, _RMS), mu, factors


@gives("beta", "c1", "t", "due")
def kron_numbers(
    count: Array, *, b1: Real, frequency: int
) -> tuple[dict[str, Array], Array]:
    """The bias correction of the mean, and whether the factors are fitted."""
    t = increment(count)
    c1 = debias(b1, t)
    return {
        "beta": jnp.asarray(b1, c1.dtype),
        "c1": c1,
        "t": count,
        "due": is_due(count, frequency),
    }, t


@transformation
def scale_by_kron(
    b1: Real = 0.9,
    mu_dtype: DTypeLike | None = None,
    *,
    frequency: int = 33,
    rolled: bool = False,
    fit_rate: Real = 0.1,
    damping: Real = 1e-9,
    longest: int = 8192,
    seed: int = 0,
    words: Words = PLAIN,
) -> GradientTransformationExtraArgs:
    """Whiten the mean of the gradients: multiply each matrix from both sides.

        mu <- b1 mu + (1 - b1) g                m = mu / (1 - b1^t)
        u   = P_rows m P_columns                P = Q^T Q

    so that the covariance of the rows and of the columns of `u` is the identity. `u` is
    scaled to a root mean square of at most 1.1.

    A factor `Q` is upper triangular, or its diagonal for long sides. A fit draws a
    matrix `v` of normal random numbers, and takes a step of gradient descent, for rows:

        a  = Q_rows m Q_columns^T               b = Q_rows^-T v Q_columns^-1
        Q <- Q - fit_rate triu(a a^T - b b^T) Q / |a a^T + b b^T|

    This is the older way to fit. `scale_by_psgd` needs no triangular solves and no
    random numbers, and begins faster.

    Args:
        b1: decay rate of `mu`, in [0, 1).
        mu_dtype: dtype of `mu`; by default that of the params.
        frequency: number of steps between two fits of a factor, after about 4000 steps.
        rolled: whether the matrices take turns from the start, each at every
            `frequency`-th step, so that all steps take about as long. If `False`, all
            are fitted in the same steps: in every step at first, and less and less
            often after 500. The factors begin with the identity and change by a tenth
            in each fit, so they need the early ones.
        fit_rate: the step size of a fit, above 0 and below 1.
        damping: the size of the noise added to `m` in a fit, besides a small fraction
            of `m`. It keeps the factors finite where `m` is zero.
        longest: a side with more elements has only a diagonal.
        seed: seed of the random numbers. They depend on it, the step and the shape.
        words: `in` or `out` for each of the last axes, equal words together. The layer
            sums over the axes called `in`; axes without a word index matrices.
    """
    name = "scale_by_kron"
    (b1,) = check.fraction(name, b1=b1)
    (fit_rate,) = check.inside(name, fit_rate=fit_rate)
    (damping,) = check.measurable.must(name, damping=damping)
    frequency, longest = check.period(name, frequency=frequency, longest=longest)
    (seed,) = check.whole(name, seed=seed)
    check.dtype(name, mu_dtype=mu_dtype)
    check.flag(name, rolled=rolled)
    k, due = ("frequency", None) if rolled else (None, "due")
    every = Every(kron_fit, ("factors",), k, due, "frequency")
    return lift(
        Rule(
            name,
            mean_of,
            ScaleByKronState,
            memory={"mu": first_moment(mu_dtype), "factors": first_factors},
            shared={"count": zero_count},
            numbers={
                "b1": b1,
                "frequency": frequency,
                "fit_rate": fit_rate,
                "damping": damping,
                "longest": longest,
                "seed": seed,
                "words": words,
            },
            per_step=kron_numbers,
            matrix=Matrix(kron_formula, as_matrix, every),
            check_leaf=NotReal(len(words), "kron"),
        )
    )


@optimizer
def kron(
    learning_rate: ScalarOrSchedule,
    b1: Real = 0.9,
    weight_decay: ScalarOrSchedule = 0.01,
    weight_decay_mask: MaskOrFn | None = None,
    mu_dtype: DTypeLike | None = None,
    *,
    frequency: int = 33,
    rolled: bool = False,
    fit_rate: Real = 0.1,
    damping: Real = 1e-9,
    longest: int = 8192,
    seed: int = 0,
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
    """Kron for the matrices of hidden layers, AdamW for all other leaves.

        p <- p - learning_rate (rms u + weight_decay p)       u from `scale_by_kron`

    The root mean square of `rms u` is then about that of AdamW's updates. For the
    learning rates of other implementations, pass `rms=1`.

    `psgd` is the newer optimizer of this kind.

    Which leaves are matrices, `stacked` and `routes`: see `muon`.
    `print(steepest.describe(tx, params))` shows the group of each leaf and the reason.

    Inside `jax.shard_map`, each device would treat its shard as a whole matrix. Gather
    the matrices first, or let `jit` handle the mesh axes that shard them.

    Args:
        learning_rate: a number, or a schedule (a function of the step count).
        b1: decay rate of the mean of the gradients, in [0, 1).
        weight_decay: weight decay coefficient of the matrices, multiplied by the
            learning rate.
        weight_decay_mask: the leaves to decay: a tree of booleans, a function of the
            params that returns one, or a regular expression for their paths; by
            default all but vectors, norms and biases.
        mu_dtype: dtype of the mean; by default that of the params.
        frequency: number of steps between two fits of a factor, after about 4000 steps.
        rolled: whether the matrices take turns from the start, each at every
            `frequency`-th step, so that all steps take about as long. If `False`, all
            are fitted in the same steps: in every step at first, and less and less
            often after 500.
        fit_rate: the step size of a fit, above 0 and below 1.
        damping: the size of the noise added to the mean in a fit. It keeps the factors
            finite where the mean is zero.
        longest: a side with more elements has only a diagonal.
        seed: seed of the random numbers. They depend on it, the step and the shape.
        rms: the root mean square of white updates.
        stacked: a regular expression for leaves whose first axis indexes layers.
        routes: maps a pattern to `"kron"`, `"adam"`, or a word for each of the last
            axes: `in` for those that the layer sums over, `out` for the others.
        adam_learning_rate: learning rate of AdamW; by default `learning_rate`.
        adam_b1: decay rate of AdamW's mean of the gradients, in [0, 1).
        adam_b2: decay rate of AdamW's mean of their squares, in [0, 1).
        adam_eps: `eps` of AdamW.
        adam_weight_decay: weight decay of AdamW; by default `weight_decay`.
        memory_dtype: dtype of the arrays in the state that have no option of their own,
            such as `mu_dtype`, or where it is `None`; by default that of the params, or
            wider. Factors are always in float32 or wider. With "int8", "int4" or
            "float8", averages for large matrices are stored in 8 or 4 bits: see
            `keeping`.
        keep_count: whether to count the steps even if the learning rate is a number, so
            that a schedule can replace it later.
        reshard: names of mesh axes, whose devices share the matrices: each matrix is
            sent to one device and back, once in a step, inside `jax.set_mesh`. By
            default the compiler shards every product. See `keeping`.
        keep_stacks: whether matrices of equal shape share the arrays of the state,
            which saves copies on one GPU. See `keeping`.

    >>> import jax.numpy as jnp, steepest
    >>> tx = steepest.kron(learning_rate=1e-3)
    >>> params = {"kernel": jnp.ones((8, 16)), "bias": jnp.ones(16)}
    >>> for line in steepest.describe(tx, params).lines:
    ...     print(line.path, line.shape, *line.groups, line.bytes)
    ['bias'] (16,) adam 128
    ['kernel'] (8, 16) kron 1792
    """
    check.finite("kron", rms=rms)

    def matrices(words: Words) -> list[GradientTransformationExtraArgs]:
        white = scale_by_kron(
            b1,
            mu_dtype,
            frequency=frequency,
            rolled=rolled,
            fit_rate=fit_rate,
            damping=damping,
            longest=longest,
            seed=seed,
            words=words,
        )
        return [white, scale(rms)]

    return grouped(
        "kron",
        matrices,
        learning_rate,
        weight_decay,
        weight_decay_mask,
        mu_dtype,
        stacked,
        routes,
        Rest(adam_learning_rate, adam_b1, adam_b2, adam_eps, adam_weight_decay),
    )
