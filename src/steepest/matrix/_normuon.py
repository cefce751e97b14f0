"""NorMuon: Muon whose output neurons all have steps of the same size.

Li et al., NorMuon: making Muon more efficient and scalable, 2025, arXiv:2510.05491
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import jax.numpy as jnp
from jax.typing import DTypeLike
from jaxtyping import Array

from .. import check
from ..core import (
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
    abs_sq,
    Coefficients,
    ema,
    first_moment,
    Polynomials,
    polynomials,
    root,
    wide_dtype,
)
from ._groups import PLAIN, Words
from ._muon import momentum, polar_formula
from ._recipe import folded, grouped, NotMatrix, Rest
from ._sizes import axes_of, resized, Scale, SCALES


class ScaleByNorMuonState(NamedTuple):
    """State of NorMuon: an array per leaf, and a number for each output neuron."""

    mu: Updates  # mean of g, in `mu_dtype`
    nu: Updates  # mean of |o|^2 over the inputs


def neurons(p: Param, *, words: Words) -> Array:
    """The initial `nu`: zeros, without the "in" axes of `p`.

    Args:
        p: the param.
        words: `in` or `out` for each of its last axes.
    """
    if p.ndim < len(words):
        return jnp.zeros((), wide_dtype([p]))  # the step raises the error
    # A sum, so that it is sharded like the other axes of `p`.
    return jnp.sum(jnp.zeros_like(p, dtype=wide_dtype([p])), axes_of(words, "in"))


def normuon_formula(
    g: Array,
    nu: Array,
    *,
    b2: Real,
    eps: Real,
    polynomials: Polynomials,
    dtype: DTypeLike | None,
    words: Words,
    scale: str | None,
    rms: Real,
) -> tuple[Array, Array]:
    """`u = o / sqrt(nu)`, with the norm of `o` or another one; see `normuon`."""
    o = polar_formula(g, eps=eps, polynomials=polynomials, dtype=dtype)
    words = words[0], words[-1]  # of the two sides
    (inputs,) = axes_of(words, "in")
    squares = jnp.sum(abs_sq(o), inputs) / max(g.shape[inputs], 1)
    new = ema(nu.reshape(squares.shape), squares, b2)
    x = o / (root(jnp.expand_dims(new, inputs)) + eps)
    u = resized(x, o, words=words, scale=scale, rms=rms, eps=eps)
    return u, new.reshape(nu.shape)


@transformation
def scale_by_normuon(
    beta: Real = 0.95,
    b2: Real = 0.95,
    eps: Real = 1e-8,
    mu_dtype: DTypeLike | None = None,
    *,
    nesterov: bool = True,
    coefficients: Coefficients = "polar_express",
    steps: int | None = None,
    dtype: DTypeLike | None = None,
) -> GradientTransformationExtraArgs:
    """Orthogonalize the mean of the gradients, and give all output neurons equal steps.

        o    = U V^T                        as `scale_by_polar` computes it
        nu  <- b2 nu + (1 - b2) mean(o^2)   mean over the inputs of each output
        x    = o / (sqrt(nu) + eps)
        u    = x |o| / (|x| + eps)          |.| is the Frobenius norm

    Matrices have shape (in, out), so `nu` has one number per column. All but `o` is
    computed in float32 or wider.

    Args:
        beta: decay rate of the mean of the gradients, in [0, 1).
        b2: decay rate of `nu`, in [0, 1).
        eps: as above; also added to the Frobenius norm of the mean, which it is divided
            by first.
        mu_dtype: dtype of the mean; by default that of the params.
        nesterov: whether to use Nesterov momentum.
        coefficients: the polynomials. Either a name: `polar_express`, `dion`, `cans`,
            `standard` (the original ones) or `deepseek` (ten steps, closest to 1); or
            one triple `(a, b, c)` for all steps; or one triple for each step.
        steps: the number of steps; by default the number of polynomials. Extra steps
            bring the singular values closer to 1.
        dtype: dtype of the polynomials. By default float16 on a GPU, bfloat16 on a TPU
            and float32 elsewhere; float64 and complex matrices keep their dtype.
    """
    return _normuon(
        beta, b2, eps, mu_dtype, nesterov, coefficients, steps, dtype, None, 0.0, PLAIN
    )


@optimizer
def normuon(
    learning_rate: ScalarOrSchedule,
    beta: Real = 0.95,
    b2: Real = 0.95,
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
    keep_stacks: bool = False,
) -> GradientTransformationExtraArgs:
    """NorMuon for the matrices of hidden layers, AdamW for all other leaves.

        o    = U V^T                        as for `muon`
        nu  <- b2 nu + (1 - b2) mean(o^2)   mean over the inputs of each output
        x    = o / (sqrt(nu) + eps)
        p   <- p - learning_rate (rms sqrt(in out) x / (|x| + eps) + weight_decay p)

    The root mean square of the step is `rms` for every shape, about the same as that of
    AdamW, so a learning rate and weight decay tuned for AdamW carry over. Besides the
    mean of the gradients, the state has one number for each output of a layer.

    A leaf goes to AdamW if it has fewer than two axes, if its path names a norm, bias,
    embedding, head or router, or if one of its axes is as long as a vocabulary.
    `print(steepest.describe(tx, params))` shows the group of each leaf and the reason.
    Leaves with more than two axes go to AdamW by default. To use NorMuon for them, say
    what their axes are with `stacked` and `routes`. Matrices have shape (in, out)
    unless `routes` says otherwise; with `"out in"` the outputs are the rows.

    Args:
        learning_rate: a number, or a schedule (a function of the step count).
        beta: decay rate of the mean of the gradients, in [0, 1).
        b2: decay rate of `nu`, in [0, 1).
        weight_decay: weight decay coefficient of the matrices, multiplied by the
            learning rate.
        weight_decay_mask: the leaves to decay: a tree of booleans, a function of the
            params that returns one, or a regular expression for their paths; by
            default all but vectors, norms and biases.
        mu_dtype: dtype of the mean; by default that of the params.
        nesterov: whether to use Nesterov momentum.
        eps: as above; also added to the Frobenius norm of the mean, which it is divided
            by first.
        coefficients: the polynomials. Either a name: `polar_express`, `dion`, `cans`,
            `standard` (the original ones) or `deepseek` (ten steps, closest to 1); or
            one triple `(a, b, c)` for all steps; or one triple for each step.
        steps: the number of steps; by default the number of polynomials. Extra steps
            bring the singular values closer to 1.
        dtype: dtype of the polynomials. By default float16 on a GPU, bfloat16 on a TPU
            and float32 elsewhere; float64 and complex matrices keep their dtype.
        scale: the size of a step: `rms`, as above; or `original` or `spectral`, where
            `x` gets the Frobenius norm of `o`, times `sqrt(max(1, out / in))` or
            `sqrt(out / in)`.
        rms: root mean square of a step with learning rate 1, for `scale="rms"`.
        stacked: a regular expression for leaves whose first axis indexes layers.
        routes: maps a pattern to `"normuon"`, `"adam"`, or a word for each of the last
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
    >>> tx = steepest.normuon(learning_rate=1e-3, weight_decay=0.0)
    >>> params = {"kernel": jnp.ones((8, 32)), "bias": jnp.ones(32)}
    >>> updates, _ = tx.update(params, tx.init(params), params)
    >>> round(float(jnp.sqrt(jnp.mean(updates["kernel"] ** 2))), 5)
    0.0002
    """
    name = "normuon"
    (rms,) = check.amount(name, rms=rms)
    check.choice(name, SCALES, scale=scale)

    def matrices(words: Words) -> list[GradientTransformationExtraArgs]:
        numbers = beta, b2, eps, mu_dtype, nesterov, coefficients, steps, dtype
        return [_normuon(*numbers, scale, rms, words)]

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


def _normuon(
    beta: Real,
    b2: Real,
    eps: Real,
    mu_dtype: DTypeLike | None,
    nesterov: bool,
    coefficients: Coefficients,
    steps: int | None,
    dtype: DTypeLike | None,
    scale: str | None,
    rms: Real,
    words: Words,
) -> GradientTransformationExtraArgs:
    """The rule of NorMuon."""
    name = "scale_by_normuon"
    beta, b2 = check.fraction(name, beta=beta, b2=b2)
    (eps,) = check.nonnegative(name, eps=eps)
    check.dtype(name, mu_dtype=mu_dtype, dtype=dtype)
    return lift(
        Rule(
            name,
            momentum(name, nesterov),
            ScaleByNorMuonState,
            memory={"mu": first_moment(mu_dtype), "nu": neurons},
            numbers={
                "beta": beta,
                "b2": b2,
                "eps": eps,
                "polynomials": polynomials(name, coefficients, steps),
                "dtype": None if dtype is None else jnp.dtype(dtype),
                "words": words,
                "scale": scale,
                "rms": rms,
            },
            matrix=Matrix(normuon_formula, fold=folded),
            check_leaf=NotMatrix(len(words), "normuon"),
        )
    )
