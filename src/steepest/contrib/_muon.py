"""Muon: orthogonalized momentum.

Jordan et al., Muon: an optimizer for hidden layers in neural networks, 2024,
kellerjordan.github.io/posts/muon
Bernstein and Newhouse, Old optimizer, new norm: an anthology, 2024, arXiv:2409.20325
(`adaptive`)
Liu et al., Muon is scalable for LLM training, 2025, arXiv:2502.16982 (`consistent_rms`)
"""

from collections.abc import Sequence
from functools import partial
from typing import Literal, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike
from jaxtyping import Array, Float, Int, PyTree

from .. import check
from ..combine import chain, partition
from ..core import (
    called_by_user,
    gives,
    GradientTransformationExtraArgs,
    like_optax,
    Matrix,
    Param,
    Params,
    Real,
    Rule,
    ScalarOrSchedule,
    transformation,
    Updates,
)
from ..engine import lift, MaskOrFn, optimizer
from ..numerics import (
    COEFFICIENTS,
    Coefficients,
    coefficients_of,
    debias,
    ema,
    first_moment,
    increment,
    inner,
    nesterov_mean,
    polar,
    PRECONDITIONINGS,
    zero_count,
)
from ..optimizers import adamw
from ..transforms import add_decayed_weights, scale_by_learning_rate
from ._dimension_numbers import map_numbers, NumbersOrFn, of_matrices

Preconditioning: TypeAlias = Literal["frobenius", "spectral", "aol", "schatten"]


@like_optax
class MuonDimensionNumbers(NamedTuple):
    """Which axes make a tensor the matrix `W` of a layer `y = x W`."""

    reduction_axis: int | Sequence[int] = 0  # summed over; the rows
    output_axis: int | Sequence[int] = 1  # the columns


@like_optax
class MuonState(NamedTuple):
    """State of Muon: a step count, one array per leaf, and the polynomials."""

    count: Int[Array, ""]  # t, the number of steps taken
    mu: Updates  # mean of g, in `mu_dtype`
    ns_coeffs: Float[Array, "3"] | Float[Array, "k 3"]


def begin_coefficients(*, coefficients: Coefficients) -> Array:
    """The polynomials, as an array."""
    return jnp.asarray(coefficients, float)


@gives("c1", "next_c1", "ns_coeffs")
def corrections(
    count: Array, ns_coeffs: Array, *, beta: Real
) -> tuple[dict[str, Array], Array, Array]:
    """`c1 = 1 - beta^t`, `next_c1 = 1 - beta^(t+1)`, and the polynomials."""
    t = increment(count)
    # Both at once: XLA compiles one loop.
    both = jax.vmap(partial(debias, beta))
    c1, next_c1 = both(jnp.stack([t, increment(t)]))
    return {"c1": c1, "next_c1": next_c1, "ns_coeffs": ns_coeffs}, t, ns_coeffs


def mean_formula(g: Array, mu: Array, *, beta: Real, c1: Array) -> tuple[Array, Array]:
    """The mean of the gradients, with bias correction."""
    mu = ema(mu, g, beta)
    return mu / c1, mu


def nesterov_formula(
    g: Array, mu: Array, *, beta: Real, c1: Array, next_c1: Array
) -> tuple[Array, Array]:
    """The mean of the gradients, with Nesterov momentum."""
    mu = ema(mu, g, beta)
    return nesterov_mean(mu, g, beta, c1, next_c1), mu


def matrix_formula(
    g: Array,
    *,
    ns_coeffs: Array,
    ns_steps: int | np.integer | Array,
    preconditioning: str,
    eps: Real,
    adaptive: bool,
) -> Array:
    """The nearest orthogonal matrix; with `adaptive`, times `<u, g>`."""
    u = polar(g, ns_coeffs, ns_steps, preconditioning, eps)
    return inner(u, g) * u if adaptive else u


def adaptive_formula(
    g: Array,
    mu: Array,
    *,
    beta: Real,
    c1: Array,
    next_c1: Array,
    ns_coeffs: Array,
    ns_steps: int | np.integer | Array,
    preconditioning: str,
    eps: Real,
    nesterov: bool,
) -> tuple[Array, Array]:
    """One step for a stack of matrices, where `<m, u>` is the sum over all of them."""
    mu = ema(mu, g, beta)
    m = nesterov_mean(mu, g, beta, c1, next_c1) if nesterov else mu / c1
    u = jax.vmap(lambda x: polar(x, ns_coeffs, ns_steps, preconditioning, eps))(m)
    return inner(u, m) * u, mu


@transformation
def scale_by_muon(
    ns_coeffs: Coefficients = COEFFICIENTS["standard"],
    ns_steps: int | np.integer | Array = 5,
    beta: Real = 0.95,
    eps: Real = 1e-8,
    mu_dtype: DTypeLike | None = None,
    *,
    nesterov: bool = True,
    adaptive: bool = False,
    preconditioning: Preconditioning = "frobenius",
    weight_dimension_numbers: NumbersOrFn | None = None,
) -> GradientTransformationExtraArgs:
    """Orthogonalize the mean of the gradients.

        mu <- beta mu + (1 - beta) g
        m   = mu / (1 - beta^t)
        u   = U V^T                     where m = U S V^T, by Newton-Schulz

    With `nesterov`, `m = beta mu / (1 - beta^(t+1)) + (1 - beta) g / (1 - beta^t)`.
    With `adaptive`, `u <- <m, u> u`: scaled by the dual norm of `m`.

    Inside `jax.shard_map`, each device would treat its shard as a whole matrix. Gather
    the matrices first, or let `jit` handle the mesh axes that shard them.

    Args:
        ns_coeffs: the polynomial `(a, b, c)` for all steps; or one for each step; or a
            name: `standard`, `dion`, `polar_express`, `cans` or `deepseek` (ten steps).
        ns_steps: the number of steps, at least the number of polynomials; if there are
            several, each is used once.
        beta: decay rate of `mu`, in [0, 1).
        eps: keeps `u` finite where the gradient is zero.
        mu_dtype: dtype of `mu`; by default that of the params.
        nesterov: whether to use Nesterov momentum.
        adaptive: whether to scale `u` by the dual norm of `m`.
        preconditioning: the divisor of `m` before the first step: `frobenius`, its
            Frobenius norm; `spectral`, its largest singular value; `schatten`, its
            Schatten-4 norm; `aol`, a separate bound for each row.
        weight_dimension_numbers: `MuonDimensionNumbers` in the structure of the params,
            or a function of the params that returns them. `None`, for a leaf or for
            all, means a matrix.
    """
    name = "scale_by_muon"
    (beta,) = check.fraction(name, beta=beta)
    (eps,) = check.nonnegative(name, eps=eps)
    (ns_steps,) = check.period(name, ns_steps=ns_steps)
    check.dtype(name, mu_dtype=mu_dtype)
    check.flag(name, nesterov=nesterov, adaptive=adaptive)
    check.choice(name, PRECONDITIONINGS, preconditioning=preconditioning)
    ndim = 2 if weight_dimension_numbers is None else 3  # 3: stacks of matrices
    # In a leaf with several matrices, `<m, u>` is the sum over all of them.
    alone = adaptive and ndim == 3
    mean = nesterov_formula if nesterov else mean_formula
    tx = lift(
        Rule(
            name,
            adaptive_formula if alone else mean,
            MuonState,
            memory={"mu": first_moment(mu_dtype)},
            shared={"count": zero_count, "ns_coeffs": begin_coefficients},
            numbers={
                "beta": beta,
                "eps": eps,
                "nesterov": nesterov,
                "adaptive": adaptive,
                "preconditioning": preconditioning,
                "ns_steps": ns_steps,
                "coefficients": _coefficients(name, ns_coeffs, ns_steps),
            },
            per_step=corrections,
            kind="whole" if alone else "elementwise",
            matrix=None if alone else Matrix(matrix_formula),
            check_leaf=partial(_no_matrix, ndim),
        )
    )
    if weight_dimension_numbers is None:
        return tx
    return of_matrices(name, tx, weight_dimension_numbers, memory=["mu"])


@optimizer
def muon(
    learning_rate: ScalarOrSchedule,
    ns_coeffs: Coefficients = COEFFICIENTS["standard"],
    ns_steps: int | np.integer | Array = 5,
    beta: Real = 0.95,
    eps: Real = 1e-8,
    weight_decay: ScalarOrSchedule = 0.0,
    weight_decay_mask: MaskOrFn | None = None,
    mu_dtype: DTypeLike | None = None,
    *,
    nesterov: bool = True,
    adaptive: bool = False,
    preconditioning: Preconditioning = "frobenius",
    adam_b1: Real = 0.9,
    adam_b2: Real = 0.999,
    adam_eps_root: Real = 0.0,
    adam_weight_decay: ScalarOrSchedule = 0.0,
    adam_learning_rate: ScalarOrSchedule | None = None,
    muon_weight_dimension_numbers: NumbersOrFn | None = None,
    consistent_rms: Real | None = None,
    memory_dtype: DTypeLike | None = None,
    keep_count: bool = False,
    reshard: str | Sequence[str] | None = None,
) -> GradientTransformationExtraArgs:
    """Muon for the matrices, AdamW for the rest.

        p <- p - learning_rate (c u + weight_decay p)       u from `scale_by_muon`
        c  = sqrt(max(1, columns / rows))

    With `consistent_rms`, `c = consistent_rms sqrt(max(rows, columns))`. Then the mean
    square of `c u` does not depend on the shape; with 0.2 it is about that of AdamW.

    Inside `jax.shard_map`, each device would treat its shard as a whole matrix. Gather
    the matrices first, or let `jit` handle the mesh axes that shard them.

    Args:
        learning_rate: a number, or a schedule (a function of the step count).
        ns_coeffs: the polynomial `(a, b, c)` for all steps; or one for each step; or a
            name: `standard`, `dion`, `polar_express`, `cans` or `deepseek` (ten steps).
        ns_steps: the number of steps, at least the number of polynomials; if there are
            several, each is used once.
        beta: decay rate of the mean of the gradients, in [0, 1).
        eps: keeps `u` finite where the gradient is zero; also for AdamW.
        weight_decay: weight decay coefficient of the matrices, multiplied by the
            learning rate.
        weight_decay_mask: the matrices to decay: a tree of booleans, a function of the
            params that returns one, or a regular expression for their paths; by
            default all.
        mu_dtype: dtype of the mean; by default that of the params; also for AdamW.
        nesterov: whether to use Nesterov momentum; also for AdamW.
        adaptive: whether to scale `u` by the dual norm of the mean.
        preconditioning: the divisor of the mean before the first step: `frobenius`, its
            Frobenius norm; `spectral`, its largest singular value; `schatten`, its
            Schatten-4 norm; `aol`, a separate bound for each row.
        adam_b1: decay rate of AdamW's mean of the gradients, in [0, 1).
        adam_b2: decay rate of AdamW's mean of their squares, in [0, 1).
        adam_eps_root: `eps_root` of AdamW.
        adam_weight_decay: weight decay of AdamW.
        adam_learning_rate: learning rate of AdamW; by default `learning_rate`.
        muon_weight_dimension_numbers: `MuonDimensionNumbers` in the structure of the
            params, with `None` for AdamW, or a function of the params that returns
            them. By default every leaf with two axes is a matrix.
        consistent_rms: root mean square of `c u`, for all shapes; see above.
        memory_dtype: dtype of the arrays in the state that have no option of their own,
            such as `mu_dtype`, or where it is `None`; by default that of the params, or
            wider. With "int8", "int4" or "float8", averages for large matrices are
            stored in 8 or 4 bits: see `keeping`.
        keep_count: whether to count the steps even if the learning rate is a number, so
            that a schedule can replace it later.
        reshard: names of mesh axes, whose devices share the matrices: each matrix is
            sent to one device and back, once in a step, inside `jax.set_mesh`. By
            default the compiler shards every product. See `keeping`.

    >>> import jax.numpy as jnp, steepest
    >>> tx = steepest.contrib.muon(learning_rate=0.1)
    >>> params = {"w": jnp.array([[3.0, 0.0], [0.0, -4.0]]), "b": jnp.array([5.0])}
    >>> updates, state = tx.update(params, tx.init(params), params)
    >>> [round(float(x), 1) for x in jnp.diag(updates["w"])]
    [-0.1, 0.1]
    """
    numbers = muon_weight_dimension_numbers
    if consistent_rms is not None:
        (consistent_rms,) = check.amount("muon", consistent_rms=consistent_rms)
    check.fraction("muon", adam_b1=adam_b1, adam_b2=adam_b2)
    check.nonnegative.must("muon", adam_eps_root=adam_eps_root)
    for name, x in (
        ("adam_weight_decay", adam_weight_decay),
        ("adam_learning_rate", adam_learning_rate),
    ):
        if not callable(x) and x is not None:
            check.finite("muon", **{name: x})
    if adam_learning_rate is None:
        adam_learning_rate = learning_rate
    matrices = chain(
        scale_by_muon(
            ns_coeffs,
            ns_steps,
            beta,
            eps,
            mu_dtype,
            nesterov=nesterov,
            adaptive=adaptive,
            preconditioning=preconditioning,
            weight_dimension_numbers=numbers,
        ),
        _scale_by_shape(consistent_rms, numbers),
        add_decayed_weights(weight_decay, weight_decay_mask),
        scale_by_learning_rate(check.rate_given("muon", learning_rate)),
    )
    rest = adamw(
        adam_learning_rate,
        adam_b1,
        adam_b2,
        eps,
        adam_eps_root,
        mu_dtype,
        adam_weight_decay,
        nesterov=nesterov,
    )
    groups = {"muon": matrices, "adam": rest}
    return partition(groups, partial(_labels, numbers))


def _no_matrix(ndim: int, g: Param) -> str | None:
    """The error message for a leaf that is not a matrix or stack, or `None`."""
    if g.ndim == ndim:
        return None
    return (
        f"has shape {g.shape}, expected a matrix. Pass `weight_dimension_numbers` for "
        "it, or use `muon`, which passes other leaves to AdamW."
    )


def _labels(numbers: NumbersOrFn | None, params: Params) -> PyTree:
    """The group of each leaf."""
    if numbers is None:
        ndim = lambda x: getattr(x, "ndim", 0)
        return jax.tree.map(lambda x: "muon" if ndim(x) == 2 else "adam", params)
    label = lambda number, _: "adam" if number is None else "muon"
    return map_numbers("muon", label, numbers, params)


def shape_formula(g: Array, *, consistent_rms: Real | None) -> Array:
    """`u = c g`, where `c` depends on the shape of the matrix; see `muon`."""
    rows, columns = g.shape[-2:]
    if consistent_rms is None:
        return max(1, columns / max(rows, 1)) ** 0.5 * g
    return consistent_rms * max(rows, columns) ** 0.5 * g


def _scale_by_shape(
    consistent_rms: Real | None, numbers: NumbersOrFn | None
) -> GradientTransformationExtraArgs:
    """Give matrices of all shapes steps of the same size; see `muon`."""

    options = {"consistent_rms": consistent_rms}
    tx = lift(Rule("scale_by_shape", shape_formula, numbers=options, kind="whole"))
    return tx if numbers is None else of_matrices("muon", tx, numbers)


def _coefficients(
    name: str, ns_coeffs: Coefficients, ns_steps: int | np.integer | Array
) -> object:
    """The polynomials, if there are not more of them than steps."""
    rows = coefficients_of(name, ns_coeffs=ns_coeffs)
    shape = check.array(name, ns_coeffs=rows)[0].shape
    count = shape[0] if len(shape) == 2 else 1
    if isinstance(ns_steps, int) and count > ns_steps:
        raise ValueError(
            f"{called_by_user(name)}: ns_coeffs has {count} polynomials and ns_steps "
            f"is {ns_steps}. Set ns_steps to {count}."
        )
    return rows
