"""MuonH and AdamH: matrices of constant norm, with AdamW for all other leaves.

Wen, Dang, Lyu, Ma and Liang, Fantastic pretraining optimizers and where to find them
II: Hyperball optimization, 2026, arXiv:2606.16899
"""

from collections.abc import Callable, Mapping, Sequence

from jax.typing import DTypeLike

from ..combine import hyperball
from ..core import GradientTransformationExtraArgs, Real, ScalarOrSchedule
from ..engine import optimizer
from ..numerics import Coefficients
from ..optimizers import scale_by_adam
from ._groups import Sorting, Words
from ._muon import momentum, polar_of
from ._recipe import beside_adamw, check_rest, Rest


@optimizer
def muon_h(
    learning_rate: ScalarOrSchedule,
    adam_learning_rate: ScalarOrSchedule,
    beta: Real = 0.95,
    mu_dtype: DTypeLike | None = None,
    *,
    nesterov: bool = True,
    eps: Real = 1e-8,
    coefficients: Coefficients = "polar_express",
    steps: int | None = None,
    dtype: DTypeLike | None = None,
    radius: str = "init",
    stacked: str | None = None,
    routes: Mapping[str, str] | None = None,
    adam_b1: Real = 0.9,
    adam_b2: Real = 0.95,
    adam_eps: Real = 1e-8,
    adam_weight_decay: ScalarOrSchedule = 0.0,
    memory_dtype: DTypeLike | None = None,
    keep_count: bool = False,
    reshard: str | Sequence[str] | None = None,
) -> GradientTransformationExtraArgs:
    """MuonH: Muon for matrices that keep their norm, AdamW for all other leaves.

        w  = p - learning_rate R u / |u|        u from `scale_by_polar`
        p <- R w / |w|                          R = |p| at the start

    `learning_rate` is the size of a step relative to the matrix: 0.01 or 0.02 is usual,
    and `sqrt(learning_rate * weight_decay)` of `muon` a good start. AdamW has its own
    learning rate, since it has another unit.

    The groups are those of `muon`: a leaf goes to AdamW if it has fewer than two axes,
    if its path names a norm, bias, embedding, head or router, or if one of its axes is
    as long as a vocabulary. `print(steepest.describe(tx, params))` shows them.

    *A matrix of zeros stays zero.* `init` warns of it, unless it is traced. Start all
    matrices with about the same standard deviation, also projections that add to a
    residual stream, which usually start at zero or small.

    Args:
        learning_rate: the size of a step of a matrix relative to its norm: a number, or
            a schedule (a function of the step count).
        adam_learning_rate: learning rate of AdamW.
        beta: decay rate of the mean of the gradients, in [0, 1).
        mu_dtype: dtype of the mean; by default that of the params.
        nesterov: whether to use Nesterov momentum.
        eps: added to the Frobenius norm, which the matrix is divided by first.
        coefficients: the polynomials. Either a name: `polar_express`, `dion`, `cans`,
            `standard` (the original ones) or `deepseek` (ten steps, closest to 1); or
            one triple `(a, b, c)` for all steps; or one triple for each step.
        steps: the number of steps; by default the number of polynomials.
        dtype: dtype of the polynomials. By default float16 on a GPU, bfloat16 on a TPU
            and float32 elsewhere; float64 and complex matrices keep their dtype.
        radius: `"init"`, to hold each matrix at the norm it had when `init` was called,
            or `"now"`, at the norm it has before the step.
        stacked: a regular expression for leaves whose first axis indexes layers.
        routes: maps a pattern to `"muon_h"`, `"adam"`, or a word for each of the last
            axes, `in` or `out`; the axes before those index a stack of matrices, each
            with its own norm. Patterns are regular expressions that may match anywhere
            in a path; the first that does decides, and overrides all rules above.
        adam_b1: decay rate of AdamW's mean of the gradients, in [0, 1).
        adam_b2: decay rate of AdamW's mean of their squares, in [0, 1).
        adam_eps: `eps` of AdamW.
        adam_weight_decay: weight decay of AdamW, for all but vectors, norms and biases.
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
    >>> tx = steepest.muon_h(learning_rate=0.02, adam_learning_rate=1e-3)
    >>> params = {"kernel": jnp.eye(4), "bias": jnp.zeros(4)}
    >>> grads = {"kernel": jnp.ones((4, 4)), "bias": jnp.ones(4)}
    >>> updates, state = tx.update(grads, tx.init(params), params)
    >>> params = steepest.apply_updates(params, updates)
    >>> round(float(jnp.linalg.norm(params["kernel"])), 4)
    2.0
    """

    def direction(words: Words) -> GradientTransformationExtraArgs:
        name, numbers = "scale_by_polar", (beta, eps, mu_dtype, coefficients)
        formula = momentum(name, nesterov)
        return polar_of(name, "muon_h", formula, *numbers, steps, dtype, words)

    rates = learning_rate, adam_learning_rate, adam_weight_decay
    adam = adam_b1, adam_b2, adam_eps, mu_dtype
    return _held("muon_h", direction, *rates, *adam, radius, stacked, routes)


@optimizer
def adam_h(
    learning_rate: ScalarOrSchedule,
    adam_learning_rate: ScalarOrSchedule,
    b1: Real = 0.9,
    b2: Real = 0.95,
    eps: Real = 1e-8,
    mu_dtype: DTypeLike | None = None,
    *,
    radius: str = "init",
    stacked: str | None = None,
    routes: Mapping[str, str] | None = None,
    adam_weight_decay: ScalarOrSchedule = 0.0,
    memory_dtype: DTypeLike | None = None,
    keep_count: bool = False,
) -> GradientTransformationExtraArgs:
    """AdamH: Adam for matrices that keep their norm, AdamW for all other leaves.

        w  = p - learning_rate R u / |u|        u from `scale_by_adam`
        p <- R w / |w|                          R = |p| at the start

    `learning_rate` is the size of a step relative to the matrix: 0.01 is usual, and
    `sqrt(learning_rate * weight_decay)` of `adamw` a good start. AdamW has its own
    learning rate, since it has another unit.

    The groups are those of `muon`: a leaf goes to AdamW if it has fewer than two axes,
    if its path names a norm, bias, embedding, head or router, or if one of its axes is
    as long as a vocabulary. `print(steepest.describe(tx, params))` shows them.

    *A matrix of zeros stays zero.* `init` warns of it, unless it is traced. Start all
    matrices with about the same standard deviation, also projections that add to a
    residual stream, which usually start at zero or small.

    Args:
        learning_rate: the size of a step of a matrix relative to its norm: a number, or
            a schedule (a function of the step count).
        adam_learning_rate: learning rate of AdamW.
        b1: decay rate of the mean of the gradients, in [0, 1), for all leaves.
        b2: decay rate of the mean of their squares, in [0, 1), for all leaves.
        eps: keeps `u` finite where the gradient is zero, for all leaves.
        mu_dtype: dtype of the mean; by default that of the params.
        radius: `"init"`, to hold each matrix at the norm it had when `init` was called,
            or `"now"`, at the norm it has before the step.
        stacked: a regular expression for leaves whose first axis indexes layers.
        routes: maps a pattern to `"adam_h"`, `"adam"`, or a word for each of the last
            axes, `in` or `out`; the axes before those index a stack of matrices, each
            with its own norm. Patterns are regular expressions that may match anywhere
            in a path; the first that does decides, and overrides all rules above.
        adam_weight_decay: weight decay of AdamW, for all but vectors, norms and biases.
        memory_dtype: dtype of the arrays in the state that have no option of their own,
            such as `mu_dtype`, or where it is `None`; by default that of the params, or
            wider. With "int8", "int4" or "float8", averages for large matrices are
            stored in 8 or 4 bits: see `keeping`.
        keep_count: whether to count the steps even if the learning rate is a number, so
            that a schedule can replace it later.
    """

    def direction(words: Words) -> GradientTransformationExtraArgs:
        return scale_by_adam(b1, b2, eps, mu_dtype=mu_dtype)

    rates = learning_rate, adam_learning_rate, adam_weight_decay
    adam = b1, b2, eps, mu_dtype
    return _held("adam_h", direction, *rates, *adam, radius, stacked, routes)


def _held(
    name: str,
    direction: Callable[[Words], GradientTransformationExtraArgs],
    learning_rate: ScalarOrSchedule,
    adam_learning_rate: ScalarOrSchedule,
    adam_weight_decay: ScalarOrSchedule,
    adam_b1: Real,
    adam_b2: Real,
    adam_eps: Real,
    mu_dtype: DTypeLike | None,
    radius: str,
    stacked: str | None,
    routes: Mapping[str, str] | None,
) -> GradientTransformationExtraArgs:
    """`hyperball` for the matrices, and AdamW for the rest."""
    rest = Rest(adam_learning_rate, adam_b1, adam_b2, adam_eps, adam_weight_decay)
    check_rest(name, rest)
    sorting = Sorting(name, stacked, routes)
    parts = {
        label: hyperball(
            direction(words), learning_rate, radius=radius, ndim=len(words)
        )
        for label, words in sorting.sides.items()
    }
    rates = adam_learning_rate, adam_weight_decay
    return beside_adamw(sorting, parts, *rates, sorting.decaying, mu_dtype, rest)
