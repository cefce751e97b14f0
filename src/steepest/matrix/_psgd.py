"""PSGD: whitened momentum for the matrices, AdamW for all other leaves.

Li, Preconditioned stochastic gradient descent, 2018, arXiv:1512.04202
Pooladzandi and Li, Curvature-informed SGD via general purpose Lie-group
preconditioners, 2024, arXiv:2402.04553
github.com/lixilinx/psgd_torch, 2026 (KWNS4: fitted with matrix products only)
"""

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

import jax.numpy as jnp
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
    ema,
    exact_gram,
    exact_product,
    first_moment,
    increment,
    length,
    more_symmetric,
    rms as rms_of,
    spectral_norm,
    zero_count,
)
from ..transforms import scale
from ._groups import PLAIN, Words
from ._recipe import grouped, in_blocks, Rest
from ._whitening import (
    as_matrix,
    balanced,
    excess,
    Factor,
    Factors,
    first_bounds,
    first_factors,
    is_due,
    mean_of,
    NotReal,
    times,
    whitened,
)

Whiten = Literal["momentum", "gradient"]
Bounds = tuple[Float[Array, ""] | None, Float[Array, ""] | None]

_RMS, _ELEMENT = 2.0, 10.0  # the largest root mean square and element of an update
_SPIKE = 10.0  # the largest root mean square in a fit
_BOUND_DECAY = 0.9
_FITS = 25  # after which the step size of a fit is half of the first one


class ScaleByPsgdState(NamedTuple):
    """State of PSGD: a step count, the mean, and two factors and bounds per matrix."""

    count: Int[Array, ""]  # number of steps taken
    mu: Updates  # mean of g, in `mu_dtype`
    factors: Updates  # (Q_rows, Q_columns)
    bounds: Updates  # for each factor, a bound of the curvature of its fit


def psgd_fit(
    g: Array,
    mu: Array,
    factors: Factors,
    bounds: Bounds,
    *,
    whiten: Whiten,
    rate: Array,
    damping: Real,
) -> tuple[Factors, Bounds]:
    """One step of both factors towards whitening."""
    x = mu.reshape(g.shape) if whiten == "momentum" else g
    noise = damping + jnp.finfo(x.dtype).eps * rms_of(x)
    rows, columns = (_squared(q) for q in factors)
    x = times(columns, times(rows, x).T).T
    # One spike would raise the bounds for hundreds of steps.
    extra = excess(x, _SPIKE)
    x, noise = x / extra, noise / extra
    fits = (
        _side_fit(x, factors[0], rows, noise * _size(columns), bounds[0], rate),
        _side_fit(x.T, factors[1], columns, noise * _size(rows), bounds[1], rate),
    )
    (q_rows, b_rows), (q_columns, b_columns) = fits
    return balanced((q_rows, q_columns)), (b_rows, b_columns)


def _side_fit(
    x: Array,
    q: Factor,
    p: Factor,
    noise: Array,
    bound: Float[Array, ""] | None,
    rate: Real,
) -> tuple[Factor, Float[Array, ""] | None]:
    """One step of the factor of the rows.

    Args:
        x: the whitened matrix.
        q: the factor.
        p: its square, `q^T q`.
        noise: the size of the noise that is added in expectation, whitened but for `p`.
        bound: the bound of the curvature.
        rate: the step size.
    """
    if q is None or p is None or bound is None:
        return q, bound
    wanted = x.shape[1]  # the sum of squares of a row of a white matrix
    if q.ndim == 1:
        found = jnp.sum(jnp.square(x), axis=1) + jnp.square(noise * p)
        norm = jnp.max(found, initial=0.0)
    else:
        y = jnp.concatenate([x, noise * p], axis=1)
        found = exact_gram(y)
        norm = spectral_norm(found)
    bound = jnp.maximum(ema(bound, norm + wanted, _BOUND_DECAY), norm + wanted)
    found, wanted = found / bound, wanted / bound
    if q.ndim == 1:
        return q - rate * (found - wanted) * q, bound
    q = q - rate * (exact_product(found, q) - wanted * q)
    return more_symmetric(q), bound


def _squared(q: Factor) -> Factor:
    """`q^T q`."""
    if q is None:
        return None
    return jnp.square(q) if q.ndim == 1 else exact_gram(q.T)


def _size(p: Factor) -> Real:
    """The Frobenius norm of a side's matrix."""
    return 1.0 if p is None else length(p)


def psgd_formula(g: Array, mu: Array, factors: Factors) -> tuple[Array, Array, Factors]:
    """The whitened mean, limited."""
    u = whitened(mu.reshape(g.shape), factors)
    return jnp.clip(u / excess(u, _RMS), -_ELEMENT, _ELEMENT), mu, factors


@gives("beta", "rate", "due")
def psgd_numbers(
    count: Array,
    *,
    b1: Real,
    frequency: int,
    rolled: bool,
    fit_rate: Real,
    first_fit_rate: Real,
) -> tuple[dict[str, Array], Array]:
    """The decay rate of a mean without bias; the step size of a fit; if one is due."""
    t = count.astype(float)
    fits = t / frequency if rolled else t
    return {
        "beta": jnp.minimum(t / (t + 1), b1),
        "rate": jnp.maximum(first_fit_rate / (1 + fits / _FITS), fit_rate),
        "due": is_due(count, frequency),
    }, increment(count)


@transformation
def scale_by_psgd(
    b1: Real = 0.9,
    mu_dtype: DTypeLike | None = None,
    *,
    whiten: Whiten = "momentum",
    frequency: int = 5,
    rolled: bool = True,
    fit_rate: Real = 0.1,
    first_fit_rate: Real = 0.5,
    damping: Real = 1e-9,
    max_skew: float = 1.0,
    longest: int = 8192,
    words: Words = PLAIN,
) -> GradientTransformationExtraArgs:
    """Whiten the mean of the gradients: multiply each matrix from both sides.

        mu <- beta mu + (1 - beta) g                     beta = min(1 - 1/t, b1)
        u   = P_rows mu P_columns                        P = Q^T Q

    so that the covariance of the rows and of the columns of `u` is the identity. `u` is
    scaled to a root mean square of at most 2, and its elements to at most 10.

    A factor `Q` is a square array, or its diagonal for long sides. Every `frequency`
    steps it takes a step of gradient descent, for rows:

        x  = P_rows mu P_columns
        Q <- Q - rate (x x^T - columns I) Q / bound
        Q <- (I + a R + a^2 R^2 / 2) Q          R = (Q^T - Q) / |Q^T - Q|

    `bound` is a running upper bound of `|x x^T| + columns`. The rotation keeps `Q`
    about symmetric. All of it is matrix products, and nothing is random. Vectors have a
    diagonal factor.

    Args:
        b1: decay rate of `mu`, in [0, 1).
        mu_dtype: dtype of `mu`; by default that of the params.
        whiten: what the factors are fitted to: `momentum`, which is `mu`; or
            `gradient`, which is `g`. Then `u` is smaller, the noisier `g` is.
        frequency: number of steps between two fits of a factor. Neighbouring values of
            `mu` are alike, so more fits than one in `1 / (1 - b1)` steps gain little,
            except in short runs.
        rolled: whether the matrices take turns, so that all steps take about as long.
            If `False`, all are fitted in the same steps: in every step at first, and
            less and less often after 500, down to every `frequency`-th.
        fit_rate: the last `rate`, above 0 and below 1.
        first_fit_rate: the first `rate`, above 0 and below 1. The rate falls from it to
            `fit_rate`, and is half of it after 25 fits.
        damping: the root mean square of the noise that the fit allows for in `mu`, as
            `eps` in Adam. It keeps the factors finite where `mu` is zero.
        max_skew: a side of length d has a square array if the other one has at least
            `d / max_skew` elements: 1 means the shorter side, or both if they are
            equal; infinity, both; 0, none.
        longest: a side with more elements has only a diagonal.
        words: `in` or `out` for each of the last axes, equal words together. The layer
            sums over the axes called `in`; axes without a word index matrices.
    """
    name = "scale_by_psgd"
    (b1,) = check.fraction(name, b1=b1)
    rates = check.inside(name, fit_rate=fit_rate, first_fit_rate=first_fit_rate)
    (damping,) = check.measurable.must(name, damping=damping)
    (max_skew,) = check.nonnegative.must(name, max_skew=max_skew)
    frequency, longest = check.period(name, frequency=frequency, longest=longest)
    check.dtype(name, mu_dtype=mu_dtype)
    check.flag(name, rolled=rolled)
    check.choice(name, ("momentum", "gradient"), whiten=whiten)
    k, due = ("frequency", None) if rolled else (None, "due")
    every = Every(psgd_fit, ("factors", "bounds"), k, due, "frequency")
    return lift(
        Rule(
            name,
            mean_of,
            ScaleByPsgdState,
            memory={
                "mu": first_moment(mu_dtype),
                "factors": first_factors,
                "bounds": first_bounds,
            },
            shared={"count": zero_count},
            numbers={
                "b1": b1,
                "whiten": whiten,
                "frequency": frequency,
                "rolled": rolled,
                "fit_rate": rates[0],
                "first_fit_rate": rates[1],
                "damping": damping,
                "max_skew": max_skew,
                "longest": longest,
                "words": words,
            },
            per_step=psgd_numbers,
            matrix=Matrix(psgd_formula, as_matrix, every),
            check_leaf=NotReal(len(words), "psgd"),
        )
    )


@optimizer
def psgd(
    learning_rate: ScalarOrSchedule,
    b1: Real = 0.9,
    weight_decay: ScalarOrSchedule = 0.01,
    weight_decay_mask: MaskOrFn | None = None,
    mu_dtype: DTypeLike | None = None,
    *,
    whiten: Whiten = "momentum",
    frequency: int = 5,
    rolled: bool = True,
    fit_rate: Real = 0.1,
    first_fit_rate: Real = 0.5,
    damping: Real = 1e-9,
    max_skew: float = 1.0,
    longest: int = 8192,
    block_size: int | None = None,
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
    """PSGD for the matrices of hidden layers, AdamW for all other leaves.

        p <- p - learning_rate (rms u + weight_decay p)       u from `scale_by_psgd`

    The root mean square of `rms u` is then about that of AdamW's updates, so a learning
    rate and weight decay tuned for AdamW carry over.

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
        whiten: what the factors are fitted to: the mean (`momentum`) or the gradients
            (`gradient`), which makes the updates smaller, the noisier they are.
        frequency: number of steps between two fits of a factor. For a few hundred steps
            in all, 1 is best.
        rolled: whether the matrices take turns, so that all steps take about as long.
            If `False`, all are fitted in the same steps: in every step at first, and
            less and less often after 500, down to every `frequency`-th.
        fit_rate: the last step size of the fits, above 0 and below 1.
        first_fit_rate: their first step size, above 0 and below 1.
        damping: the root mean square of the noise that the fit allows for.
        max_skew: a side of length d has a square array if the other one has at least
            `d / max_skew` elements: 1 means the shorter side, or both if they are
            equal; infinity, both; 0, none.
        longest: a side with more elements has only a diagonal.
        block_size: cut matrices into blocks with sides of at most this; each block is
            a matrix of its own. By default they are not cut.
        rms: the root mean square of white updates.
        stacked: a regular expression for leaves whose first axis indexes layers.
        routes: maps a pattern to `"psgd"`, `"adam"`, or a word for each of the last
            axes: `in` for those that the layer sums over, `out` for the others.
        adam_learning_rate: learning rate of AdamW; by default `learning_rate`.
        adam_b1: decay rate of AdamW's mean of the gradients, in [0, 1).
        adam_b2: decay rate of AdamW's mean of their squares, in [0, 1).
        adam_eps: `eps` of AdamW.
        adam_weight_decay: weight decay of AdamW; by default `weight_decay`.
        memory_dtype: dtype of the arrays in the state that have no option of their own,
            such as `mu_dtype`, or where it is `None`; by default that of the params, or
            wider. Factors are always in float32 or wider. With "int8", "int4" or
            "float8", averages for large matrices have 8 or 4 bits: see `keeping`.
        keep_count: whether to count the steps even if the learning rate is a number, so
            that a schedule can replace it later.
        reshard: names of mesh axes, whose devices share the matrices: each matrix is
            sent to one device and back, once in a step, inside `jax.set_mesh`. By
            default the compiler shards every product. See `keeping`.
        keep_stacks: whether matrices of equal shape share the arrays of the state,
            which saves copies on one GPU. See `keeping`.

    >>> import jax.numpy as jnp, steepest
    >>> tx = steepest.psgd(learning_rate=1e-3)
    >>> params = {"kernel": jnp.ones((8, 16)), "bias": jnp.ones(16)}
    >>> for line in steepest.describe(tx, params).lines:
    ...     print(line.path, line.shape, *line.groups, line.bytes)
    ['bias'] (16,) adam 128
    ['kernel'] (8, 16) psgd 840
    """
    check.finite("psgd", rms=rms)

    def matrices(words: Words) -> list[GradientTransformationExtraArgs]:
        white = scale_by_psgd(
            b1,
            mu_dtype,
            whiten=whiten,
            frequency=frequency,
            rolled=rolled,
            fit_rate=fit_rate,
            first_fit_rate=first_fit_rate,
            damping=damping,
            max_skew=max_skew,
            longest=longest,
            words=words,
        )
        return [white, scale(rms)]

    return grouped(
        "psgd",
        in_blocks("psgd", matrices, block_size),
        learning_rate,
        weight_decay,
        weight_decay_mask,
        mu_dtype,
        stacked,
        routes,
        Rest(adam_learning_rate, adam_b1, adam_b2, adam_eps, adam_weight_decay),
    )
