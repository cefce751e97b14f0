"""Adam-mini: Adam with one mean square per row instead of one per element.

Zhang et al., Adam-mini: use fewer learning rates to gain more, 2024, arXiv:2406.16793
"""

from collections.abc import Mapping
from functools import partial
from math import prod
from typing import NamedTuple

import jax.numpy as jnp
from jax.typing import DTypeLike
from jaxtyping import Array, Int

from .. import check
from ..combine import chain, partition
from ..core import (
    GradientTransformationExtraArgs,
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
    bias_corrections,
    ema,
    first_moment,
    limited,
    root,
    sharded_like,
    wide_dtype,
    zero_count,
)
from ..optimizers import adamw
from ..transforms import add_decayed_weights, scale_by_learning_rate
from ._averages import averaged, Averages, Indivisible, words_of
from ._groups import ADAM, Words


class ScaleByAdamMiniState(NamedTuple):
    """State of Adam-mini: a step count, and per leaf an array and a few numbers."""

    count: Int[Array, ""]  # number of steps taken
    mu: Updates  # mean of g, in `mu_dtype`
    nu: Updates  # mean of |g|^2, over the averaged axes too, which have size 1


def begin_nu(p: Param, *, words: Words) -> Array:
    """Zeros, in the shape of `nu`."""
    wrong = Indivisible(words)(p)
    if wrong is not None:
        raise ValueError(f"scale_by_adam_mini: a leaf {wrong}")
    shape, axes = averaged(p.shape, words)
    dtype = wide_dtype([p])
    if shape != p.shape:
        small = [1 if axis in axes else n for axis, n in enumerate(shape)]
        return jnp.zeros(small, dtype)
    # A sum gives it the same sharding as the mean of the gradients will have.
    return jnp.sum(jnp.zeros_like(p, dtype=dtype), axes, keepdims=True)


def mini_formula(
    g: Array,
    mu: Array,
    nu: Array,
    *,
    words: Words,
    b1: Real,
    b2: Real,
    eps: Real,
    c1: Array,
    c2: Array,
) -> tuple[Array, Array, Array]:
    """One step of Adam-mini for one array, where `c = 1 - b^t`."""
    g = limited(g)
    mu = ema(mu, g, b1)
    nu = ema(nu, sharded_like(nu, partial(_mean_squares, words), g), b2)
    sizes = root(nu / c2) + eps
    return sharded_like(g, partial(_divided, words), mu / c1, sizes), mu, nu


def _mean_squares(words: Words, g: Array) -> Array:
    """The mean of `|g|^2` over the averaged axes."""
    shape, axes = averaged(g.shape, words)
    size = max(prod(shape[axis] for axis in axes), 1)  # an axis may be empty
    return jnp.sum(abs_sq(g).reshape(shape), axes, keepdims=True) / size


def _divided(words: Words, m: Array, sizes: Array) -> Array:
    """`m`, divided by a number for each row."""
    shape, _ = averaged(m.shape, words)
    return (m.reshape(shape) / sizes).reshape(m.shape)


@transformation
def scale_by_adam_mini(
    b1: Real = 0.9,
    b2: Real = 0.999,
    eps: Real = 1e-8,
    mu_dtype: DTypeLike | None = None,
    *,
    axes: str = "in out",
) -> GradientTransformationExtraArgs:
    """Divide the mean of the gradients by the root mean square of their row.

        mu <- b1 mu + (1 - b1) g
        nu <- b2 nu + (1 - b2) mean(|g|^2)      over the averaged axes
        u   = mu / (1 - b1^t) / (sqrt(nu / (1 - b2^t)) + eps)

    A leaf with fewer axes than `axes` has words has no averaged axes: it is handled as
    by `scale_by_adam`.

    Inside `jax.shard_map`, each device averages over its shard. Gather the leaves
    first, or let `jit` handle the mesh axes that shard them.

    Args:
        b1: decay rate of `mu`, in [0, 1).
        b2: decay rate of `nu`, in [0, 1).
        eps: keeps `u` finite where the gradient is zero.
        mu_dtype: dtype of `mu`; by default that of the params.
        axes: a word for each of the last axes, separated by spaces. `in` axes are
            averaged, and `out` axes are not. If there is a `head`, its axis is the only
            one that is not averaged. `out/12` is an axis that holds 12 heads. Axes
            before those index a stack, and are not averaged.
    """
    return _mini(b1, b2, eps, mu_dtype, words_of("scale_by_adam_mini", "axes", axes))


@optimizer
def adam_mini(
    learning_rate: ScalarOrSchedule,
    b1: Real = 0.9,
    b2: Real = 0.999,
    eps: Real = 1e-8,
    mu_dtype: DTypeLike | None = None,
    weight_decay: ScalarOrSchedule = 0.0,
    weight_decay_mask: MaskOrFn | None = None,
    *,
    stacked: str | None = None,
    routes: Mapping[str, str] | None = None,
    memory_dtype: DTypeLike | None = None,
    keep_count: bool = False,
) -> GradientTransformationExtraArgs:
    """Adam-mini: AdamW with one mean square for each output of a layer.

        p <- p - learning_rate (u + weight_decay p)    u from `scale_by_adam_mini`

    Its state is half as large as that of AdamW. A learning rate and a weight decay
    tuned for AdamW carry over.

    A matrix has one mean square for each of its outputs: for each column, or for each
    row if its path ends in `weight`, as in Equinox and torch. Embeddings and heads have
    one for each token. Vectors, norms and biases have one for each element, as in
    AdamW, and so do leaves with more than two axes, unless you say what their axes are.
    Queries and keys should have one for each head:

        adam_mini(1e-3, stacked="^layers/")             # `scan`: layers come first
        adam_mini(1e-3, routes={
            "(query|key)/kernel": "in head out",        # flax
            "value/kernel": "in out out",
            "out/kernel": "in in out",
            "(query|key)_proj/weight": "out/12 in",     # Equinox, with 12 heads
            "conv": "in in in out",
            "adapter": "adam",                          # one for each element
        })

    `print(steepest.describe(tx, params))` shows the words for the axes of each leaf,
    the reason, and the bytes of its state.

    Inside `jax.shard_map`, each device averages over its shard. Gather the leaves
    first, or let `jit` handle the mesh axes that shard them.

    Args:
        learning_rate: a number, or a schedule (a function of the step count).
        b1: decay rate of the mean of the gradients, in [0, 1).
        b2: decay rate of the mean of their squares, in [0, 1).
        eps: keeps `u` finite where the gradient is zero.
        mu_dtype: dtype of the mean; by default that of the params.
        weight_decay: weight decay coefficient, multiplied by the learning rate.
        weight_decay_mask: the leaves to decay: a tree of booleans, a function of the
            params that returns one, or a regular expression for their paths; by
            default all but vectors, norms and biases.
        stacked: a regular expression for leaves whose first axis indexes layers.
        routes: maps a pattern to `"adam"`, or to a word for each of the last axes, as
            `axes` of `scale_by_adam_mini`. Patterns are regular expressions that may
            match anywhere in a path, such as `encoder/0/kernel`; the first that does
            decides, and overrides all rules above.
        memory_dtype: dtype of the arrays in the state that have no option of their own,
            such as `mu_dtype`, or where it is `None`; by default that of the params, or
            wider. With "int8", "int4" or "float8", averages for large matrices are
            stored in 8 or 4 bits: see `keeping`.
        keep_count: whether to count the steps even if the learning rate is a number, so
            that a schedule can replace it later.

    >>> import jax.numpy as jnp, steepest
    >>> params = {
    ...     "embed": jnp.ones((50, 8)),
    ...     "query": {"kernel": jnp.ones((8, 4, 2))},
    ...     "mlp": {"kernel": jnp.ones((8, 32)), "bias": jnp.ones(32)},
    ... }
    >>> tx = adam_mini(1e-3, routes={"(query|key)/kernel": "in head out"})
    >>> for line in steepest.describe(tx, params).lines:
    ...     print(line.path, line.shape, *line.groups, "because:", line.why)
    ['embed'] (50, 8) out in because: embeds: 'embed' in its path
    ['mlp']['bias'] (32,) adam because: a vector
    ['mlp']['kernel'] (8, 32) in out because: a matrix
    ['query']['kernel'] (8, 4, 2) in head out because: routes: '(query|key)/kernel'
    """
    name = "adam_mini"
    sorting = Averages(name, stacked, routes)
    decays = sorting.decaying if weight_decay_mask is None else weight_decay_mask
    rate = check.rate_given(name, learning_rate)
    parts = {
        label: chain(
            _mini(b1, b2, eps, mu_dtype, words),
            add_decayed_weights(weight_decay, decays),
            scale_by_learning_rate(rate),
        )
        for label, words in sorting.sides.items()
    }
    rest = adamw(
        learning_rate,
        b1,
        b2,
        eps,
        mu_dtype=mu_dtype,
        weight_decay=weight_decay,
        mask=decays,
    )
    return partition({**parts, ADAM: rest}, sorting)


def _mini(
    b1: Real, b2: Real, eps: Real, mu_dtype: DTypeLike | None, words: Words
) -> GradientTransformationExtraArgs:
    """`scale_by_adam_mini` for tensors whose last axes have these words."""
    name = "scale_by_adam_mini"
    b1, b2 = check.fraction(name, b1=b1, b2=b2)
    (eps,) = check.nonnegative(name, eps=eps)
    check.dtype(name, mu_dtype=mu_dtype)
    return lift(
        Rule(
            name,
            mini_formula,
            ScaleByAdamMiniState,
            memory={"mu": first_moment(mu_dtype), "nu": begin_nu},
            shared={"count": zero_count},
            numbers={"words": words, "b1": b1, "b2": b2, "eps": eps},
            per_step=bias_corrections,
            kind="whole",
            check_leaf=Indivisible(words),
        )
    )
