"""Kullback-Leibler divergences of predictions from targets.

Predictions are log-probabilities. `0 log 0 = 0` throughout.

Kullback and Leibler, On information and sufficiency, 1951
"""

from collections.abc import Callable

import jax.numpy as jnp
from jaxtyping import Array, Float

from .. import check
from ._arrays import Axis, floating, mask, meet, Numbers

Loss = Float[Array, "..."]
_PROBABILITIES = (
    "Convert it with `.astype(float)`, or class indices with `jax.nn.one_hot`."
)


def kl_divergence(
    log_predictions: Numbers,
    targets: Numbers,
    axis: Axis = -1,
    where: Numbers | None = None,
) -> Loss:
    """`sum targets (log targets - log_predictions)`.

    Args:
        log_predictions: log-probabilities.
        targets: probabilities, of a shape that broadcasts.
        axis: the axis or axes of the classes; `None` is all.
        where: mask of the classes that count.
    """
    name = "kl_divergence"
    t = floating(name, "targets", targets, _PROBABILITIES)
    return _sum(name, _relative_entropy, log_predictions, axis, where, targets=t)


def kl_divergence_with_log_targets(
    log_predictions: Numbers,
    log_targets: Numbers,
    axis: Axis = -1,
    where: Numbers | None = None,
) -> Loss:
    """`sum exp(log_targets) (log_targets - log_predictions)`.

    Args:
        log_predictions: log-probabilities.
        log_targets: log-probabilities, of a shape that broadcasts.
        axis: the axis or axes of the classes; `None` is all.
        where: mask of the classes that count.
    """
    name = "kl_divergence_with_log_targets"
    t = floating(name, "log_targets", log_targets)
    return _sum(
        name, _relative_log_entropy, log_predictions, axis, where, log_targets=t
    )


def convex_kl_divergence(
    log_predictions: Numbers,
    targets: Numbers,
    axis: Axis = -1,
    where: Numbers | None = None,
) -> Loss:
    """`sum targets (log targets - log_predictions) + exp(log_predictions) - targets`.

    The divergence of measures that need not sum to one. No term is negative, and it is
    jointly convex in predictions and targets. Optax prefers the name
    `generalized_kl_divergence`.

    Args:
        log_predictions: logarithms of non-negative numbers.
        targets: non-negative numbers, of a shape that broadcasts.
        axis: the axis or axes of the classes; `None` is all.
        where: mask of the classes that count.
    """
    return _convex("convex_kl_divergence", log_predictions, targets, axis, where)


def generalized_kl_divergence(
    log_predictions: Numbers,
    targets: Numbers,
    axis: Axis = -1,
    where: Numbers | None = None,
) -> Loss:
    """`convex_kl_divergence`, under its name in matrix factorization.

    Lee and Seung, Algorithms for non-negative matrix factorization, 2000

    Args:
        log_predictions: logarithms of non-negative numbers.
        targets: non-negative numbers, of a shape that broadcasts.
        axis: the axis or axes of the classes; `None` is all.
        where: mask of the classes that count.
    """
    return _convex("generalized_kl_divergence", log_predictions, targets, axis, where)


def _convex(
    name: str,
    log_predictions: Numbers,
    targets: Numbers,
    axis: Axis,
    where: Numbers | None,
) -> Loss:
    term = lambda log_p, t: _relative_entropy(log_p, t) + (jnp.exp(log_p) - t)
    t = floating(name, "targets", targets, _PROBABILITIES)
    return _sum(name, term, log_predictions, axis, where, targets=t)


def _sum(
    name: str,
    term: Callable[[Array, Array], Array],
    log_predictions: Numbers,
    axis: Axis,
    where: Numbers | None,
    **to: Array,
) -> Loss:
    log_p = floating(name, "log_predictions", log_predictions)
    dtype, (log_p, t) = meet(name, log_predictions=log_p, **to)
    along = check.axes(name, axis, log_p.ndim)
    keep = mask(name, where, log_p.shape)
    # Zeros in as well as zeros out: masked entries must not reach the gradient.
    terms = term(jnp.where(keep, log_p, 0), jnp.where(keep, t, 0))
    return jnp.sum(jnp.where(keep, terms, 0), along).astype(dtype)


def _relative_entropy(log_p: Loss, t: Loss) -> Loss:
    none = t == 0
    return t * jnp.where(none, 0, jnp.log(jnp.where(none, 1, t)) - log_p)


def _relative_log_entropy(log_p: Loss, log_t: Loss) -> Loss:
    none = jnp.isneginf(log_t)
    log_t = jnp.where(none, 0, log_t)
    return jnp.where(none, 0, jnp.exp(log_t) * (log_t - jnp.where(none, 0, log_p)))
