"""RMSProp, plain and centered.

Tieleman and Hinton, Lecture 6.5: divide the gradient by a running average of its recent
magnitude, 2012, www.cs.toronto.edu/~tijmen/csc321/slides/lecture_slides_lec6.pdf
Graves, Generating sequences with recurrent neural networks, 2013, arXiv:1308.0850
"""

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
from jax.typing import DTypeLike
from jaxtyping import Array, Int

from .. import check
from ..combine import chain
from ..core import (
    gives,
    GradientTransformationExtraArgs,
    like_optax,
    Param,
    Real,
    Rule,
    ScalarOrSchedule,
    transformation,
    Updates,
)
from ..engine import lift, optimizer
from ..numerics import (
    abs_sq,
    debias,
    ema,
    first_moment,
    holding,
    increment,
    root,
    second_moment,
    zero_count,
)
from ..transforms import identity, trace
from ._descend import descend


@like_optax
class ScaleByRmsState(NamedTuple):
    """State of RMSProp: one array per leaf."""

    nu: Updates  # mean of |g|^2


@like_optax
class ScaleByRmsWithCountState(NamedTuple):
    """The same, with the step count for the bias correction."""

    count: Int[Array, ""]  # t, the number of steps taken
    nu: Updates  # mean of |g|^2


@like_optax
class ScaleByRStdDevState(NamedTuple):
    """State of centered RMSProp: two arrays per leaf."""

    mu: Updates  # mean of g
    nu: Updates  # mean of |g|^2


@like_optax
class ScaleByRStdDevWithCountState(NamedTuple):
    """The same, with the step count for the bias correction."""

    count: Int[Array, ""]  # t, the number of steps taken
    mu: Updates  # mean of g
    nu: Updates  # mean of |g|^2


@holding("nonnegative")
def initial_mean_square(p: Param, *, initial_scale: Real) -> Array:
    """`nu` before the first step."""
    return second_moment()(p) + initial_scale


@gives("c")
def rms_correction(count: Array, *, decay: Real) -> tuple[dict[str, Array], Array]:
    """`c = 1 - decay^t`."""
    t = increment(count)
    return {"c": debias(decay, t)}, t


def rms_formula(
    g: Array, nu: Array, *, decay: Real, eps: Real, eps_in_sqrt: bool, c: Real = 1
) -> tuple[Array, Array]:
    """One step of RMSProp for one array; with a bias correction, `c = 1 - decay^t`."""
    nu = ema(nu, abs_sq(g), decay)
    v = nu / c
    return g / (root(v + eps) if eps_in_sqrt else root(v) + eps), nu


def stddev_formula(
    g: Array,
    mu: Array,
    nu: Array,
    *,
    decay: Real,
    eps: Real,
    eps_in_sqrt: bool,
    c: Real = 1,
) -> tuple[Array, Array, Array]:
    """One step of centered RMSProp for one array."""
    nu = ema(nu, abs_sq(g), decay)
    mu = ema(mu, g, decay)
    # Rounding may make the difference of two equal numbers negative.
    v = jnp.maximum(nu / c - abs_sq(mu / c), 0)
    return g / (root(v + eps) if eps_in_sqrt else root(v) + eps), mu, nu


@transformation
def scale_by_rms(
    decay: Real = 0.9,
    eps: Real = 1e-8,
    initial_scale: Real = 0.0,
    eps_in_sqrt: bool = True,
    bias_correction: bool = False,
) -> GradientTransformationExtraArgs:
    """Divide the gradient by the root mean square of the gradients.

        nu <- decay nu + (1 - decay) |g|^2
        v   = nu                        or, with `bias_correction`, nu / (1 - decay^t)
        u   = g / sqrt(v + eps)         or, without `eps_in_sqrt`, g / (sqrt(v) + eps)

    Args:
        decay: decay rate of `nu`, in [0, 1).
        eps: keeps `u` finite where the gradient is zero.
        initial_scale: `nu` before the first step.
        eps_in_sqrt: whether to add `eps` under the square root.
        bias_correction: whether to correct for `nu` starting at zero.
    """
    States = ScaleByRmsState, ScaleByRmsWithCountState
    return _divided(
        "scale_by_rms",
        rms_formula,
        States,
        decay,
        eps,
        initial_scale,
        eps_in_sqrt,
        bias_correction,
    )


@transformation
def scale_by_stddev(
    decay: Real = 0.9,
    eps: Real = 1e-8,
    initial_scale: Real = 0.0,
    eps_in_sqrt: bool = True,
    bias_correction: bool = False,
) -> GradientTransformationExtraArgs:
    """Divide the gradient by the standard deviation of the gradients.

        mu <- decay mu + (1 - decay) g
        nu <- decay nu + (1 - decay) |g|^2
        v   = nu - |mu|^2               or, with `bias_correction`, both divided by
                                        1 - decay^t first
        u   = g / sqrt(v + eps)         or, without `eps_in_sqrt`, g / (sqrt(v) + eps)

    Args:
        decay: decay rate of `mu` and `nu`, in [0, 1).
        eps: keeps `u` finite where all gradients are equal.
        initial_scale: `nu` before the first step.
        eps_in_sqrt: whether to add `eps` under the square root.
        bias_correction: whether to correct for `mu` and `nu` starting at zero.
    """
    States = ScaleByRStdDevState, ScaleByRStdDevWithCountState
    return _divided(
        "scale_by_stddev",
        stddev_formula,
        States,
        decay,
        eps,
        initial_scale,
        eps_in_sqrt,
        bias_correction,
    )


def _divided(
    name: str,
    formula: Callable[..., tuple[Array, ...]],
    States: tuple[type, type],
    decay: Real,
    eps: Real,
    initial_scale: Real,
    eps_in_sqrt: bool,
    bias_correction: bool,
) -> GradientTransformationExtraArgs:
    """The rule of both transformations. The second of `States` has a count."""
    (decay,) = check.fraction(name, decay=decay)
    (eps,) = (check.nonnegative.must if eps_in_sqrt else check.nonnegative)(
        name, eps=eps
    )
    (start,) = check.amount(name, initial_scale=initial_scale)
    check.flag(name, eps_in_sqrt=eps_in_sqrt, bias_correction=bias_correction)
    State = States[bool(bias_correction)]
    memory: dict[str, Callable[..., Array]] = {"nu": initial_mean_square}
    if "mu" in State._fields:
        memory["mu"] = first_moment()
    return lift(
        Rule(
            name,
            formula,
            State,
            memory=memory,
            shared={"count": zero_count} if bias_correction else {},
            numbers={
                "decay": decay,
                "eps": eps,
                "initial_scale": start,
                "eps_in_sqrt": eps_in_sqrt,
            },
            per_step=rms_correction if bias_correction else None,
        )
    )


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
    memory_dtype: DTypeLike | None = None,
    keep_count: bool = False,
) -> GradientTransformationExtraArgs:
    """RMSProp: `p <- p - learning_rate u`, with `u` from `scale_by_rms`.

    Args:
        learning_rate: a number, or a schedule (a function of the step count).
        decay: decay rate of the mean square, in [0, 1).
        eps: keeps `u` finite where the gradient is zero.
        initial_scale: the mean square before the first step.
        eps_in_sqrt: whether to add `eps` under the square root.
        centered: whether to divide by the standard deviation, as `scale_by_stddev`.
        momentum: decay rate of the momentum, which accumulates the steps after the
            learning rate; `None` for no momentum.
        nesterov: whether to use Nesterov momentum; no effect without `momentum`.
        bias_correction: whether to correct for the mean square starting at zero.
        memory_dtype: dtype of the arrays in the state that have no option of their own,
            such as `mu_dtype`, or where it is `None`; by default that of the params, or
            wider. With "int8", "int4" or "float8", averages for large matrices are
            stored in 8 or 4 bits: see `keeping`.
        keep_count: whether to count the steps even if the learning rate is a number, so
            that a schedule can replace it later.

    >>> import jax.numpy as jnp, steepest
    >>> tx = steepest.rmsprop(learning_rate=0.1)
    >>> params = jnp.array([1.0, -2.0])
    >>> updates, state = tx.update(params, tx.init(params), params)
    >>> [round(float(u), 3) for u in updates]
    [-0.316, 0.316]
    """
    check.flag("rmsprop", centered=centered, nesterov=nesterov)
    direction = scale_by_stddev if centered else scale_by_rms
    return chain(
        direction(decay, eps, initial_scale, eps_in_sqrt, bias_correction),
        descend("rmsprop", learning_rate),
        identity() if momentum is None else trace(momentum, nesterov),
    )
