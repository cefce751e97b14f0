"""Muon: momentum, made orthogonal, for the hidden layers; AdamW for the rest.

Jordan et al., Muon: an optimizer for hidden layers in neural networks, 2024,
kellerjordan.github.io/posts/muon
Liu et al., Muon is scalable for LLM training, 2025, arXiv:2502.16982 (`scale="rms"`)
Bernstein and Newhouse, Old optimizer, new norm: an anthology, 2024, arXiv:2409.20325
(`scale="spectral"`)
"""

from collections.abc import Mapping
from functools import partial
from math import prod
from typing import Any, Literal, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array

from .. import check
from ..combine import chain, partition
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
    ema,
    first_moment,
    orthogonal,
    Polynomials,
    polynomials,
    quick_dtype,
)
from ..transforms import add_decayed_weights
from ._adam import adamw
from ._descend import descend
from ._matrices import ADAM, PLAIN, Sorting

Words = tuple[str, ...]
Scale = Literal["rms", "original", "spectral"]


class ScaleByPolarState(NamedTuple):
    """State of Muon: one array per leaf."""

    mu: Updates  # mean of g, in `mu_dtype`


def mean_formula(g: Array, mu: Array, *, beta: Real) -> tuple[Array, Array]:
    """`u = mu`, the mean of the gradients."""
    mu = ema(mu, g, beta)
    return mu, mu


def nesterov_formula(g: Array, mu: Array, *, beta: Real) -> tuple[Array, Array]:
    """The mean of the gradients, one step ahead."""
    mu = ema(mu, g, beta)
    return ema(mu, g, beta), mu


def polar_formula(
    g: Array, *, eps: Real, polynomials: Polynomials, dtype: Any
) -> Array:
    """`U V^T`, where `g = U S V^T`: for one matrix."""
    return orthogonal(g, polynomials, dtype=dtype or quick_dtype(g), eps=eps)


def folded(shape: tuple[int, ...], *, words: Words) -> tuple[int, ...]:
    """The shape of the matrices in a tensor whose last axes have these words.

    Args:
        shape: of the tensor.
        words: `in` or `out`, for each of its last axes.
    """
    first = len(shape) - len(words)
    second = first + words.count(words[0])
    return *shape[:first], prod(shape[first:second]), prod(shape[second:])


@transformation
def scale_by_polar(
    beta: Real = 0.95,
    eps: Real = 1e-8,
    mu_dtype: Any = None,
    *,
    nesterov: bool = True,
    coefficients: Any = "polar_express",
    steps: int | None = None,
    dtype: Any = None,
) -> GradientTransformationExtraArgs:
    """The polar factor of a mean of the gradients: the nearest orthogonal matrix.

        mu <- beta mu + (1 - beta) g
        m   = beta mu + (1 - beta) g      with `nesterov`, else m = mu
        u   = U V^T                       where m = U S V^T

    `u` comes from `steps` matrix polynomials, and its singular values are not all 1:
    with `polar_express` they are in [0.84, 1.13] where those of `m` are above a
    hundredth of `|m|`, the root of its sum of squares.

    Inside `jax.shard_map`, each device would treat its shard as a whole matrix. Gather
    the matrices first, or let `jit` handle the mesh axes that shard them.

    Args:
        beta: decay rate of `mu`, in [0, 1).
        eps: added to `|m|`, by which `m` is divided first.
        mu_dtype: the dtype of `mu`; by default that of the params.
        nesterov: whether to use Nesterov momentum.
        coefficients: the polynomials by name: `polar_express`, `dion`, `cans`,
            `standard` (the first ones), `deepseek` (ten steps, nearest to 1); or
            `(a, b, c)` for every step; or one such triple for each.
        steps: how many; by default as many as there are polynomials. More polish.
        dtype: what they are computed in. By default float16 on a GPU, bfloat16 on a TPU
            and float32 elsewhere; float64 and complex matrices as they are.
    """
    return _polar(beta, eps, mu_dtype, nesterov, coefficients, steps, dtype)


@optimizer
def muon(
    learning_rate: ScalarOrSchedule,
    beta: Real = 0.95,
    weight_decay: ScalarOrSchedule = 0.1,
    weight_decay_mask: MaskOrFn | None = None,
    mu_dtype: Any = None,
    *,
    nesterov: bool = True,
    eps: Real = 1e-8,
    coefficients: Any = "polar_express",
    steps: int | None = None,
    dtype: Any = None,
    scale: Scale = "rms",
    rms: Real = 0.2,
    stacked: str | None = None,
    routes: Mapping[str, str] | None = None,
    adam_learning_rate: ScalarOrSchedule | None = None,
    adam_b1: Real = 0.9,
    adam_b2: Real = 0.95,
    adam_eps: Real = 1e-8,
    adam_weight_decay: ScalarOrSchedule | None = None,
    memory_dtype: Any = None,
    keep_count: bool = False,
) -> GradientTransformationExtraArgs:
    """Muon for the matrices of hidden layers, AdamW for all else.

        p <- p - learning_rate (c u + weight_decay p)       u from `scale_by_polar`
        c  = rms sqrt(max(rows, columns))

    So the mean square of `c u` is about that of AdamW's updates, whatever the shape,
    and what is known of its learning rate and decay can be used again.

    A leaf goes to AdamW if it has less than two axes, or if its path says that it is a
    norm, a bias, an embedding, a head or a router, or if one of its sides is as long as
    a vocabulary. `print(steepest.describe(tx, params))` shows which leaf goes where,
    and why. Of more than two axes AdamW is safe; to have Muon, say what they are:

        muon(1e-3, stacked="^layers/")                      # of `scan`: layers first
        muon(1e-3, routes={
            "(query|key|value)/kernel": "in out out",       # flax's heads
            "conv": "in in in out",                         # Equinox: "out in in in"
            "experts": "in out",                            # a stack of matrices
            "adapter": "adam",
            "embed": "muon",                                # although it embeds
        })

    Inside `jax.shard_map`, each device would treat its shard as a whole matrix. Gather
    the matrices first, or let `jit` handle the mesh axes that shard them.

    Args:
        learning_rate: a number, or a schedule (a function of the step count).
        beta, mu_dtype, nesterov, eps, coefficients, steps, dtype: as for
            `scale_by_polar`.
        weight_decay: the pull towards zero, of matrices; the learning rate multiplies
            it too.
        weight_decay_mask: which leaves decay, as for `masked`; by default all but
            vectors, norms and biases.
        scale: what `c` is: `rms` as above; `original`, `sqrt(max(1, out / in))`;
            `spectral`, `sqrt(out / in)`, where `in` is what the layer sums over.
        rms: see above; for `scale="rms"`.
        stacked: a regular expression for the leaves whose first axis counts layers.
        routes: pattern -> `"muon"`, `"adam"`, or a word for each of the last axes; what
            stands before those is a stack of matrices. The first pattern that is found
            in a path decides, before anything above. Patterns are as for `route`.
        adam_learning_rate: AdamW's; by default the same.
        adam_b1, adam_b2, adam_eps: as for `adamw`.
        adam_weight_decay: AdamW's; by default the same.
        memory_dtype, keep_count: as for `keeping`.

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
    check.choice(name, ("rms", "original", "spectral"), scale=scale)
    check.fraction(name, adam_b1=adam_b1, adam_b2=adam_b2)
    check.nonnegative(name, adam_eps=adam_eps)
    adams = {
        "adam_learning_rate": adam_learning_rate,
        "adam_weight_decay": adam_weight_decay,
    }
    for key, x in adams.items():
        if not callable(x) and x is not None:
            check.finite(name, **{key: x})
    sorting = Sorting(name, stacked, routes)
    decays = sorting.decaying if weight_decay_mask is None else weight_decay_mask

    def matrices(words: Words) -> GradientTransformationExtraArgs:
        return chain(
            _polar(beta, eps, mu_dtype, nesterov, coefficients, steps, dtype, words),
            _scale_by_shape(scale, rms, words),
            add_decayed_weights(weight_decay, decays),
            descend(name, learning_rate),
        )

    parts = {label: matrices(words) for label, words in sorting.sides.items()}
    rest = adamw(
        learning_rate if adam_learning_rate is None else adam_learning_rate,
        adam_b1,
        adam_b2,
        adam_eps,
        mu_dtype=mu_dtype,
        weight_decay=weight_decay if adam_weight_decay is None else adam_weight_decay,
        mask=decays,
    )
    return partition({**parts, ADAM: rest}, sorting)


def _polar(
    beta: Real,
    eps: Real,
    mu_dtype: Any,
    nesterov: bool,
    coefficients: Any,
    steps: Any,
    dtype: Any,
    words: Words = PLAIN,
) -> GradientTransformationExtraArgs:
    """`scale_by_polar` of tensors whose last axes have these words."""
    name = "scale_by_polar"
    (beta,) = check.fraction(name, beta=beta)
    (eps,) = check.nonnegative(name, eps=eps)
    check.dtype(name, mu_dtype=mu_dtype, dtype=dtype)
    check.flag(name, nesterov=nesterov)
    return lift(
        Rule(
            name,
            nesterov_formula if nesterov else mean_formula,
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
            check_leaf=partial(_no_matrix, len(words)),
        )
    )


def _no_matrix(ndim: int, g: Any) -> str | None:
    """What is wrong with a leaf that has too few axes."""
    if g.ndim >= ndim:
        return None
    return (
        f"has shape {g.shape}, expected a matrix. Use `muon`, which gives the others "
        "to AdamW."
    )


def shape_formula(g: Array, *, scale: str, rms: Real, words: Words) -> Array:
    """`u = c g`, where `c` depends on the shape of the matrices: see `muon`."""
    rows, columns = folded(g.shape, words=words)[-2:]
    if scale == "rms":
        return rms * max(rows, columns) ** 0.5 * g
    fan_in, fan_out = (rows, columns) if words[0] == "in" else (columns, rows)
    c = (fan_out / max(fan_in, 1)) ** 0.5
    return (max(1, c) if scale == "original" else c) * g


def _scale_by_shape(
    scale: str, rms: Real, words: Words
) -> GradientTransformationExtraArgs:
    """Steps of one size for matrices of all sizes: see `muon`."""
    numbers = {"scale": scale, "rms": rms, "words": words}
    return lift(Rule("scale_by_shape", shape_formula, numbers=numbers, kind="whole"))
