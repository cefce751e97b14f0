"""RMSProp, plain and centered.

Tieleman and Hinton, Lecture 6.5: divide the gradient by a running average of its recent
magnitude, 2012, www.cs.toronto.edu/~tijmen/csc321/slides/lecture_slides_lec6.pdf
Graves, Generating sequences with recurrent neural networks, 2013, arXiv:1308.0850
"""

from typing import Any, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Int

from ..combine import chain
from ..core import (
    amount,
    flag,
    fraction,
    GradientTransformationExtraArgs,
    like_optax,
    nonnegative,
    Real,
    Rule,
    ScalarOrSchedule,
    Step,
    transformation,
    Updates,
)
from ..engine import lift, optimizer
from ..numerics import (
    abs_sq,
    beginning_at,
    debias,
    ema,
    first_moment,
    increment,
    root,
    second_moment,
    zero_count,
)
from ..transforms import identity, trace
from ._descend import descend


@like_optax
class ScaleByRmsState(NamedTuple):
    """What RMSProp remembers: an array for each leaf."""

    nu: Updates  # mean of |g|^2


@like_optax
class ScaleByRmsWithCountState(NamedTuple):
    """The same, with the count that a bias correction needs."""

    count: Int[Array, ""]  # t, the steps taken
    nu: Updates  # mean of |g|^2


@like_optax
class ScaleByRStdDevState(NamedTuple):
    """What centered RMSProp remembers: two arrays for each leaf."""

    mu: Updates  # mean of g
    nu: Updates  # mean of |g|^2


@like_optax
class ScaleByRStdDevWithCountState(NamedTuple):
    """The same, with the count that a bias correction needs."""

    count: Int[Array, ""]  # t, the steps taken
    mu: Updates  # mean of g
    nu: Updates  # mean of |g|^2


@transformation
def scale_by_rms(
    decay: Real = 0.9,
    eps: Real = 1e-8,
    initial_scale: Real = 0.0,
    eps_in_sqrt: bool = True,
    bias_correction: bool = False,
) -> GradientTransformationExtraArgs:
    """Divide by the root of the mean square.

        nu <- decay nu + (1 - decay) |g|^2
        v   = nu                        or, with `bias_correction`, nu / (1 - decay^t)
        u   = g / sqrt(v + eps)         or, without `eps_in_sqrt`, g / (sqrt(v) + eps)

    Args:
        decay: how slowly `nu` forgets, in [0, 1).
        eps: keeps `u` finite where the gradient is zero.
        initial_scale: where `nu` begins.
        eps_in_sqrt: whether `eps` stands under the root.
        bias_correction: whether to undo that `nu` began at zero.
    """
    States = ScaleByRmsState, ScaleByRmsWithCountState
    return _divided(
        "scale_by_rms", States, decay, eps, initial_scale, eps_in_sqrt, bias_correction
    )


@transformation
def scale_by_stddev(
    decay: Real = 0.9,
    eps: Real = 1e-8,
    initial_scale: Real = 0.0,
    eps_in_sqrt: bool = True,
    bias_correction: bool = False,
) -> GradientTransformationExtraArgs:
    """Divide by the standard deviation.

        mu <- decay mu + (1 - decay) g
        nu <- decay nu + (1 - decay) |g|^2
        v   = nu - |mu|^2               or, with `bias_correction`, of both over
                                        1 - decay^t
        u   = g / sqrt(v + eps)         or, without `eps_in_sqrt`, g / (sqrt(v) + eps)

    Args:
        decay: how slowly `mu` and `nu` forget, in [0, 1).
        eps: keeps `u` finite where all gradients are alike.
        initial_scale: where `nu` begins.
        eps_in_sqrt: whether `eps` stands under the root.
        bias_correction: whether to undo that `mu` and `nu` began at zero.
    """
    States = ScaleByRStdDevState, ScaleByRStdDevWithCountState
    return _divided(
        "scale_by_stddev",
        States,
        decay,
        eps,
        initial_scale,
        eps_in_sqrt,
        bias_correction,
    )


def _divided(
    who: str,
    States: tuple[Any, Any],
    decay: Real,
    eps: Real,
    initial_scale: Real,
    eps_in_sqrt: bool,
    bias_correction: bool,
) -> GradientTransformationExtraArgs:
    """Both: `States` says whether there is a mean; the second has a count as well."""
    (decay,) = fraction(who, decay=decay)
    (eps,) = (nonnegative.must if eps_in_sqrt else nonnegative)(who, eps=eps)
    (start,) = amount(who, initial_scale=initial_scale)
    flag(who, eps_in_sqrt=eps_in_sqrt, bias_correction=bias_correction)
    State = States[bool(bias_correction)]
    remember: dict[str, Any] = {"nu": beginning_at(start, second_moment())}
    if "mu" in State._fields:
        remember["mu"] = first_moment()

    def prepare(step: Step, count: Array) -> tuple[dict[str, Array], Array]:
        t = increment(count)
        return {"c": debias(decay, t)}, t

    def leaf(n: Any, g: Array, p: Any, nu: Array, *mu: Array) -> tuple[Array, ...]:
        c = n.c if bias_correction else 1
        nu = ema(nu, abs_sq(g), decay)
        mu = tuple(ema(x, g, decay) for x in mu)
        v = nu / c
        for x in mu:
            # Rounding may leave less than nothing of two numbers that are alike.
            v = jnp.maximum(v - abs_sq(x / c), 0)
        return g / (root(v + eps) if eps_in_sqrt else root(v) + eps), nu, *mu

    if not bias_correction:
        return lift(Rule(who, State, leaf, remember))
    return lift(Rule(who, State, leaf, remember, {"count": zero_count}, prepare))


@optimizer
def rmsprop(
    learning_rate: ScalarOrSchedule,
    decay: Real = 0.9,
    eps: Real = 1e-8,
    initial_scale: Real = 0.0,
    eps_in_sqrt: bool = True,
    centered: bool = False,
    momentum: Real | None = None,
    nesterov: bool = False,
    bias_correction: bool = False,
    *,
    memory_dtype: Any = None,
    keep_count: bool = False,
) -> GradientTransformationExtraArgs:
    """RMSProp: `p <- p - learning_rate u`, with `u` from `scale_by_rms`.

    Args:
        learning_rate: a number, or a function of the count.
        decay, eps, initial_scale, eps_in_sqrt: as for `scale_by_rms`.
        centered: whether `u` is from `scale_by_stddev` instead.
        momentum: the `decay` of a `trace` of the finished steps; `None` for none.
        nesterov: as for `trace`; without momentum it does nothing.
        bias_correction: as for `scale_by_rms`.
        memory_dtype, keep_count: as for `keeping`.

    >>> import steepest
    >>> tx = steepest.rmsprop(learning_rate=0.1)
    >>> params = jnp.array([1.0, -2.0])
    >>> updates, state = tx.update(params, tx.init(params), params)
    >>> [round(float(u), 3) for u in updates]
    [-0.316, 0.316]
    """
    flag("rmsprop", centered=centered, nesterov=nesterov)
    direction = scale_by_stddev if centered else scale_by_rms
    return chain(
        direction(decay, eps, initial_scale, eps_in_sqrt, bias_correction),
        descend("rmsprop", learning_rate),
        identity() if momentum is None else trace(momentum, nesterov),
    )
