"""ADOPT.

Taniguchi et al., ADOPT: modified Adam can converge with any beta2 with the optimal
rate, 2024, arXiv:2411.02853
"""

import jax.numpy as jnp
from jax.typing import ArrayLike, DTypeLike
from jaxtyping import Array

from .. import check
from ..combine import chain
from ..core import (
    gives,
    GradientTransformationExtraArgs,
    only_real,
    Real,
    Rule,
    ScalarOrSchedule,
    Schedule,
    transformation,
)
from ..engine import lift, optimizer
from ..numerics import (
    abs_sq,
    after,
    ema,
    first_moment,
    increment,
    root,
    second_moment,
    zero_count,
)
from ..optimizers import ScaleByAdamState
from ..transforms import scale_by_learning_rate


def _fourth_root(count: ArrayLike) -> Array:
    return jnp.asarray(count, float) ** 0.25


@gives("first")
def is_first(count: Array) -> tuple[dict[str, Array], Array]:
    """Whether this is the first step, which only initializes `nu`."""
    return {"first": count == 0}, increment(count)


def adopt_formula(
    g: Array,
    mu: Array,
    nu: Array,
    *,
    b1: Real,
    b2: Real,
    eps: Real,
    nesterov: bool,
    first: Array,
    clip_value: Array | None = None,
) -> tuple[Array, Array, Array]:
    """One step of ADOPT for one array: `g` is divided by the old `nu`."""
    d = g / jnp.maximum(root(nu), eps)
    if clip_value is not None:
        d = jnp.clip(d, -clip_value, clip_value)
    d = jnp.where(first, 0, d)
    mu = ema(mu, d, b1)
    nu = jnp.where(first, abs_sq(g), ema(nu, abs_sq(g), b2))
    nu = after(nu, mu)  # `mu` reads the old value
    return ema(mu, d, b1) if nesterov else mu, mu, nu


@transformation
def scale_by_adopt(
    b1: Real = 0.9,
    b2: Real = 0.9999,
    eps: Real = 1e-6,
    mu_dtype: DTypeLike | None = None,
    *,
    nesterov: bool = False,
    use_clipping: bool = True,
    clip_value_fn: Schedule = _fourth_root,
) -> GradientTransformationExtraArgs:
    """Adam that divides by the root mean square of earlier gradients, then averages.

        d   = g / max(sqrt(nu), eps)
        d   = clip(d, -clip_value_fn(count), clip_value_fn(count))
        mu <- b1 mu + (1 - b1) d
        nu <- b2 nu + (1 - b2) |g|^2
        u   = mu

    The first step only sets `nu` to `|g|^2`, and `d` is zero. With `nesterov`,
    `u = b1 mu + (1 - b1) d`.

    Args:
        b1: decay rate of `mu`, in [0, 1).
        b2: decay rate of `nu`, in [0, 1).
        eps: the smallest divisor.
        mu_dtype: dtype of `mu`; by default that of the params.
        nesterov: whether to use Nesterov momentum.
        use_clipping: whether to clip `d`; must be false for complex gradients.
        clip_value_fn: a function of the step count, which is 1 at the first step that
            moves; by default its fourth root.
    """
    name = "scale_by_adopt"
    b1, b2 = check.fraction(name, b1=b1, b2=b2)
    (eps,) = check.nonnegative(name, eps=eps)
    check.dtype(name, mu_dtype=mu_dtype)
    check.flag(name, nesterov=nesterov, use_clipping=use_clipping)
    check.function(name, clip_value_fn=clip_value_fn)
    clipping = {"clip_value": clip_value_fn} if use_clipping else {}
    return lift(
        Rule(
            name,
            adopt_formula,
            ScaleByAdamState,
            memory={"mu": first_moment(mu_dtype), "nu": second_moment()},
            shared={"count": zero_count},
            numbers={"b1": b1, "b2": b2, "eps": eps, "nesterov": nesterov, **clipping},
            per_step=is_first,
            check_leaf=only_real if use_clipping else None,
        )
    )


@optimizer
def adopt(
    learning_rate: ScalarOrSchedule,
    b1: Real = 0.9,
    b2: Real = 0.9999,
    eps: Real = 1e-6,
    mu_dtype: DTypeLike | None = None,
    *,
    nesterov: bool = False,
    use_clipping: bool = True,
    clip_value_fn: Schedule = _fourth_root,
    memory_dtype: DTypeLike | None = None,
    keep_count: bool = False,
) -> GradientTransformationExtraArgs:
    """ADOPT: `p <- p - learning_rate u`, with `u` from `scale_by_adopt`.

    Args:
        learning_rate: a number, or a schedule (a function of the step count).
        b1: decay rate of the mean of the scaled gradients, in [0, 1).
        b2: decay rate of the mean of the squared gradients, in [0, 1).
        eps: the smallest divisor.
        mu_dtype: dtype of the mean; by default that of the params.
        nesterov: whether to use Nesterov momentum.
        use_clipping: whether to clip the scaled gradients.
        clip_value_fn: the largest scaled gradient, as a function of the step count; by
            default its fourth root.
        memory_dtype: dtype of the arrays in the state that have no option of their own,
            such as `mu_dtype`, or where it is `None`; by default that of the params, or
            wider. With "int8", "int4" or "float8", averages for large matrices are
            stored in 8 or 4 bits: see `keeping`.
        keep_count: whether to count the steps even if the learning rate is a number, so
            that a schedule can replace it later.

    >>> import jax.numpy as jnp
    >>> from steepest import contrib
    >>> tx = contrib.adopt(learning_rate=1.0)
    >>> params = jnp.array([1.0, -2.0])
    >>> updates, state = tx.update(params, tx.init(params), params)
    >>> updates, state = tx.update(params, state, params)
    >>> [round(float(u), 3) for u in updates]
    [-0.1, 0.1]
    """
    return chain(
        scale_by_adopt(
            b1,
            b2,
            eps,
            mu_dtype,
            nesterov=nesterov,
            use_clipping=use_clipping,
            clip_value_fn=clip_value_fn,
        ),
        scale_by_learning_rate(check.rate_given("adopt", learning_rate)),
    )
