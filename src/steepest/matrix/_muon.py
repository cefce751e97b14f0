"""Muon: orthogonalized momentum for the hidden layers, AdamW for the rest.

Jordan et al., Muon: an optimizer for hidden layers in neural networks, 2024,
kellerjordan.github.io/posts/muon
Liu et al., Muon is scalable for LLM training, 2025, arXiv:2502.16982 (`scale="rms"`)
Bernstein and Newhouse, Old optimizer, new norm: an anthology, 2024, arXiv:2409.20325
(`scale="spectral"`)
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import jax.numpy as jnp
from jax.typing import DTypeLike
from jaxtyping import Array

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
from ..numerics import (
    Coefficients,
    computed_again,
    ema,
    first_moment,
    orthogonal,
    Polynomials,
    polynomials,
    quick_dtype,
)
from ._groups import PLAIN, Words
from ._recipe import folded, grouped, NotMatrix, Rest
from ._sizes import Scale, SCALES, shape_factor


class ScaleByPolarState(NamedTuple):
    """State of Muon: one array per leaf."""

    mu: Updates  # mean of g, in `mu_dtype`


def mean_formula(g: Array, mu: Array, *, beta: Real) -> tuple[Array, Array]:
    """`u = mu`, the mean of the gradients."""
    mu = ema(mu, g, beta)
    return mu, mu


def nesterov_formula(g: Array, mu: Array, *, beta: Real) -> tuple[Array, Array]:
    """The mean of the gradients, with Nesterov momentum."""
    mu = ema(mu, g, beta)
    return ema(mu, computed_again(g), beta), mu


def polar_formula(
    g: Array, *, eps: Real, polynomials: Polynomials, dtype: DTypeLike | None
) -> Array:
    """`U V^T` for one matrix `g = U S V^T`."""
    return orthogonal(g, polynomials, dtype=dtype or quick_dtype(g), eps=eps)


@transformation
def scale_by_polar(
    beta: Real = 0.95,
    eps: Real = 1e-8,
    mu_dtype: DTypeLike | None = None,
    *,
    nesterov: bool = True,
    coefficients: Coefficients = "polar_express",
    steps: int | None = None,
    dtype: DTypeLike | None = None,
) -> GradientTransformationExtraArgs:
    """Orthogonalize the mean of the gradients: take its polar factor.

        mu <- beta mu + (1 - beta) g
        m   = beta mu + (1 - beta) g      with `nesterov`, else m = mu
        u   = U V^T                       where m = U S V^T

    `u` is computed by `steps` matrix polynomials, so its singular values are only close
    to 1: with `polar_express` they are in [0.84, 1.13] where those of `m` are above 1%
    of `|m|`, its Frobenius norm.

    Inside `jax.shard_map`, each device would treat its shard as a whole matrix. Gather
    the matrices first, or let `jit` handle the mesh axes that shard them.

    Args:
        beta: decay rate of `mu`, in [0, 1).
        eps: added to `|m|`, which `m` is divided by first.
        mu_dtype: dtype of `mu`; by default that of the params.
        nesterov: whether to use Nesterov momentum.
        coefficients: the polynomials. Either a name: `polar_express`, `dion`, `cans`,
            `standard` (the original ones) or `deepseek` (ten steps, closest to 1); or
            one triple `(a, b, c)` for all steps; or one triple for each step.
        steps: the number of steps; by default the number of polynomials. Extra steps
            bring the singular values closer to 1.
        dtype: dtype of the polynomials. By default float16 on a GPU, bfloat16 on a TPU
            and float32 elsewhere; float64 and complex matrices keep their dtype.
    """
    name = "scale_by_polar"
    formula = momentum(name, nesterov)
    return polar_of(
        name, "muon", formula, beta, eps, mu_dtype, coefficients, steps, dtype
    )


@optimizer
def muon(
    learning_rate: ScalarOrSchedule,
    beta: Real = 0.95,
    weight_decay: ScalarOrSchedule = 0.1,
    weight_decay_mask: MaskOrFn | None = None,
    mu_dtype: DTypeLike | None = None,
    *,
    nesterov: bool = True,
    eps: Real = 1e-8,
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
) -> GradientTransformationExtraArgs:
    """Muon for the matrices of hidden layers, AdamW for all other leaves.

        p <- p - learning_rate (c u + weight_decay p)       u from `scale_by_polar`
        c  = rms sqrt(max(rows, columns))

    The mean square of `c u` is then about the same as that of AdamW's updates for every
    shape, so a learning rate and weight decay tuned for AdamW carry over.

    A leaf goes to AdamW if it has fewer than two axes, if its path names a norm, bias,
    embedding, head or router, or if one of its axes is as long as a vocabulary.
    `print(steepest.describe(tx, params))` shows the group of each leaf and the reason.
    Leaves with more than two axes go to AdamW by default. To use Muon for them, say
    what their axes are:

        muon(1e-3, stacked="^layers/")                      # `scan`: layers come first
        muon(1e-3, routes={
            "(query|key|value)/kernel": "in out out",       # flax's heads
            "conv": "in in in out",                         # Equinox: "out in in in"
            "experts": "in out",                            # a stack of matrices
            "adapter": "adam",
            "embed": "muon",                                # overrides the default
        })

    Inside `jax.shard_map`, each device would treat its shard as a whole matrix. Gather
    the matrices first, or let `jit` handle the mesh axes that shard them.

    Args:
        learning_rate: a number, or a schedule (a function of the step count).
        beta: decay rate of the mean of the gradients, in [0, 1).
        weight_decay: weight decay coefficient of the matrices, multiplied by the
            learning rate.
        weight_decay_mask: the leaves to decay: a tree of booleans, a function of the
            params that returns one, or a regular expression for their paths; by
            default all but vectors, norms and biases.
        mu_dtype: dtype of the mean; by default that of the params.
        nesterov: whether to use Nesterov momentum.
        eps: added to the Frobenius norm, which the matrix is divided by first.
        coefficients: the polynomials. Either a name: `polar_express`, `dion`, `cans`,
            `standard` (the original ones) or `deepseek` (ten steps, closest to 1); or
            one triple `(a, b, c)` for all steps; or one triple for each step.
        steps: the number of steps; by default the number of polynomials. Extra steps
            bring the singular values closer to 1.
        dtype: dtype of the polynomials. By default float16 on a GPU, bfloat16 on a TPU
            and float32 elsewhere; float64 and complex matrices keep their dtype.
        scale: how `c` is computed: `rms`, as above; `original`,
            `sqrt(max(1, out / in))`; `spectral`, `sqrt(out / in)`, where `in` is the
            size of the axes that the layer sums over.
        rms: root mean square of `c u`, for `scale="rms"`.
        stacked: a regular expression for leaves whose first axis indexes layers.
        routes: maps a pattern to `"muon"`, `"adam"`, or a word for each of the last
            axes; the axes before those index a stack of matrices. Patterns are regular
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

    >>> import jax, jax.numpy as jnp, steepest
    >>> tx = steepest.muon(learning_rate=1e-3, stacked="layers")
    >>> params = {
    ...     "embed": jnp.ones((50, 8)),
    ...     "layers": {"kernel": jnp.ones((12, 8, 32)), "bias": jnp.ones((12, 32))},
    ...     "head": jnp.ones((8, 50)),
    ... }
    >>> for line in steepest.describe(tx, params).lines:
    ...     print(line.path, line.shape, *line.groups, "because:", line.why)
    ['embed'] (50, 8) adam because: embeds: 'embed' in its path
    ['head'] (8, 50) adam because: a head: 'head' in its path
    ['layers']['bias'] (12, 32) adam because: a vector
    ['layers']['kernel'] (12, 8, 32) muon because: a matrix in each layer
    """
    name = "muon"
    (rms,) = check.amount(name, rms=rms)
    check.choice(name, SCALES, scale=scale)
    polar = "scale_by_polar"
    formula = momentum(polar, nesterov)

    def matrices(words: Words) -> list[GradientTransformationExtraArgs]:
        numbers = beta, eps, mu_dtype, coefficients, steps, dtype, words
        return [
            polar_of(polar, name, formula, *numbers),
            scale_by_shape(scale, rms, words),
        ]

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


def momentum(name: str, nesterov: bool) -> Callable[..., object]:
    """The formula of the mean of the gradients.

    Args:
        name: name used in error messages.
        nesterov: whether to use Nesterov momentum.
    """
    check.flag(name, nesterov=nesterov)
    return nesterov_formula if nesterov else mean_formula


def polar_of(
    name: str,
    recipe: str,
    formula: Callable[..., object],
    beta: Real,
    eps: Real,
    mu_dtype: DTypeLike | None,
    coefficients: Coefficients,
    steps: int | None,
    dtype: DTypeLike | None,
    words: Words = PLAIN,
) -> GradientTransformationExtraArgs:
    """The polar factor of what `formula` returns.

    Args:
        name: name used in error messages.
        recipe: the optimizer that passes other leaves to AdamW.
        formula: `(g, mu, *, beta) -> (m, mu)`.
        beta, eps, mu_dtype, coefficients, steps, dtype: as for `scale_by_polar`.
        words: the words for the last axes of the leaves.
    """
    (beta,) = check.fraction(name, beta=beta)
    (eps,) = check.nonnegative(name, eps=eps)
    check.dtype(name, mu_dtype=mu_dtype, dtype=dtype)
    return lift(
        Rule(
            name,
            formula,
            ScaleByPolarState,
            memory={"mu": first_moment(mu_dtype)},
            numbers={
                "beta": beta,
                "eps": eps,
                "polynomials": polynomials(name, coefficients, steps),
                "dtype": None if dtype is None else jnp.dtype(dtype),
                "words": words,
            },
            matrix=Matrix(polar_formula, fold=folded),
            check_leaf=NotMatrix(len(words), recipe),
        )
    )


def shape_formula(g: Array, *, scale: str, rms: Real, words: Words) -> Array:
    """`u = c g`, where `c` depends on the shape of the matrices; see `muon`."""
    return shape_factor(g.shape, words, scale, rms) * g


def scale_by_shape(
    scale: str, rms: Real, words: Words
) -> GradientTransformationExtraArgs:
    """Give matrices of all shapes steps of the same size; see `muon`.

    Args:
        scale: `rms`, `original` or `spectral`.
        rms: root mean square of the result, for `scale="rms"`.
        words: the words for the last axes of the leaves.
    """
    numbers = {"scale": scale, "rms": rms, "words": words}
    return lift(Rule("scale_by_shape", shape_formula, numbers=numbers, kind="whole"))
