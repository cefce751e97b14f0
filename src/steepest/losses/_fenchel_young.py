"""Fenchel-Young losses, made from a regularized maximum.

Blondel, Martins and Niculae, Learning with Fenchel-Young losses, 2020, arXiv:1901.02324
"""

from collections.abc import Callable

import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Shaped

from .. import check
from ..numerics import promoted
from ._arrays import array, meet, Numbers, spread


def make_fenchel_young_loss(
    max_fun: Callable[..., ArrayLike],
) -> Callable[..., Shaped[Array, "..."]]:
    """The loss `max_fun(scores) - <targets, scores>` of a regularized maximum.

    Its gradient is the maximizer minus the targets: with `logsumexp` that is softmax
    minus the targets, and the loss is cross-entropy without the entropy of the targets.

    Args:
        max_fun: `max_fun(scores) -> number`, for one-dimensional `scores`: the maximum
            of `<y, scores> - omega(y)` over the possible `y`.

    Returns `loss(scores, targets, *args, **kwargs)`, with the entries along the last
    axis and batch axes before it; `args` and `kwargs` are passed to `max_fun`.

    >>> import jax, jax.numpy as jnp, steepest
    >>> loss = steepest.losses.make_fenchel_young_loss(jax.nn.logsumexp)
    >>> round(float(loss(jnp.array([1.0, 1.0]), jnp.array([1.0, 0.0]))), 4)
    0.6931
    """
    name = "make_fenchel_young_loss"
    check.function(name, max_fun=max_fun)

    def fenchel_young_loss(
        scores: Numbers, targets: Numbers, *args: object, **kwargs: object
    ) -> Shaped[Array, "..."]:
        """`max_fun(scores) - <targets, scores>`."""
        s, t = array(name, "scores", scores), array(name, "targets", targets)
        if s.ndim == 0 or s.shape[-1:] != t.shape[-1:]:
            raise check.WrongArgument(
                f"{name}: scores have shape {s.shape} and targets have shape "
                f"{t.shape}, expected last axes of the same size."
            )

        def one(x: Array) -> Array:
            best = jnp.asarray(max_fun(x, *args, **kwargs))
            if best.ndim > 0:
                raise check.WrongArgument(
                    f"{name}: max_fun returns shape {best.shape} for scores of shape "
                    f"{x.shape}, expected one number."
                )
            return best

        best = jnp.vectorize(one, signature="(n)->()")(s)
        dtype = promoted(best, s, t)
        _, (s, t) = meet(name, scores=s, targets=t)
        inner = jnp.sum(s * t, -1)
        best = spread(name, inner.shape, scores=best)
        wider = promoted(best, inner)
        return (best.astype(wider) - inner.astype(wider)).astype(dtype)

    return fenchel_young_loss
