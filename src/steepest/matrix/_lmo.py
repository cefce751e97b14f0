"""The steepest step in a norm: where the unit ball reaches farthest along the momentum.

Pethick et al., Training deep learning models with norm-constrained LMOs, 2025,
arXiv:2502.07529
"""

from typing import Literal, NamedTuple

import jax.numpy as jnp
from jax.typing import DTypeLike
from jaxtyping import Array

from .. import check
from ..combine import chain
from ..core import (
    GradientTransformationExtraArgs,
    Matrix,
    Param,
    Real,
    Rule,
    transformation,
    Updates,
)
from ..engine import lift
from ..numerics import Coefficients, ema, first_moment, polynomials
from ._groups import PLAIN, Words
from ._muon import polar_formula, scale_by_shape
from ._recipe import folded
from ._sizes import axes_of, fans, over_rms

Norm = Literal["spectral", "sign", "sign/in", "colnorm", "colnorm/in", "rownorm", "rms"]
NORMS = ("spectral", "sign", "sign/in", "colnorm", "colnorm/in", "rownorm", "rms")


class ScaleByLmoState(NamedTuple):
    """State of `scale_by_lmo`: one array per leaf."""

    mu: Updates  # mean of g, in `mu_dtype`


def average_formula(g: Array, mu: Array, *, alpha: Real) -> tuple[Array, Array]:
    """`u = mu`, the mean of the gradients."""
    mu = ema(mu, g, 1 - alpha)
    return mu, mu


def lmo_formula(
    g: Array,
    mu: Array,
    *,
    alpha: Real,
    eps: Real,
    norm: str,
    words: Words,
    of_each: bool,
) -> tuple[Array, Array]:
    """The steepest step for all norms but `spectral`; see `scale_by_lmo`."""
    m, mu = average_formula(g, mu, alpha=alpha)
    if norm == "rms":
        return over_rms(m, tuple(range(1 if of_each else 0, m.ndim)), eps), mu
    if norm in ("sign", "sign/in"):
        x = jnp.sign(m)
    else:
        x = over_rms(m, axes_of(words, "in" if norm == "rownorm" else "out"), eps)
    if norm in ("sign", "colnorm"):
        return x, mu
    fan_in, _ = fans(m.shape, words)
    return x / max(fan_in, 1), mu


class FewAxes(NamedTuple):
    """A `check_leaf` that refuses leaves with too few axes."""

    norm: str
    ndim: int

    def __call__(self, g: Param) -> str | None:
        if g.ndim >= self.ndim:
            return None
        return (
            f"has shape {g.shape}, expected {self.ndim} axes or more for the norm "
            f"`{self.norm}`. Use `rms` for vectors, or `scion`, which has a norm for "
            "every leaf."
        )


@transformation
def scale_by_lmo(
    norm: Norm = "spectral",
    alpha: Real = 0.1,
    eps: Real = 1e-8,
    mu_dtype: DTypeLike | None = None,
    *,
    coefficients: Coefficients = "polar_express",
    steps: int | None = None,
    dtype: DTypeLike | None = None,
) -> GradientTransformationExtraArgs:
    """The steepest step in a norm, for the mean of the gradients.

        mu <- (1 - alpha) mu + alpha g
        u   = sqrt(out / in) U V^T          spectral, where mu = U S V^T
              sign(mu)                      sign, if the inputs are one-hot
              sign(mu) / in                 sign/in
              mu / rms(mu over out)         colnorm, if the inputs are one-hot
              mu / (in rms(mu over out))    colnorm/in
              mu / (in rms(mu over in))     rownorm
              mu / rms(mu)                  rms, for vectors

    `u` is the matrix of norm 1 with the largest inner product with `mu`. Matrices have
    shape (in, out). The norms are those of linear maps between activations whose root
    mean square is 1, or between one-hot inputs and such activations.

    Args:
        norm: `spectral`, `sign`, `sign/in`, `colnorm`, `colnorm/in`, `rownorm` or
            `rms`.
        alpha: weight of the newest gradient in the mean, in (0, 1]; 1 for no momentum.
        eps: added to what `mu` is divided by, without the factor `in`.
        mu_dtype: dtype of `mu`; by default that of the params.
        coefficients: the polynomials that compute `U V^T`. Either a name:
            `polar_express`, `dion`, `cans`, `standard` (the original ones) or
            `deepseek` (ten steps, closest to 1); or one triple `(a, b, c)` for all
            steps; or one triple for each step.
        steps: the number of steps; by default the number of polynomials. Extra steps
            bring the singular values closer to 1.
        dtype: dtype of the polynomials. By default float16 on a GPU, bfloat16 on a TPU
            and float32 elsewhere; float64 and complex matrices keep their dtype.
    """
    return chain(*lmo_of(norm, alpha, eps, mu_dtype, coefficients, steps, dtype))


def lmo_of(
    norm: str,
    alpha: Real,
    eps: Real,
    mu_dtype: DTypeLike | None,
    coefficients: Coefficients,
    steps: int | None,
    dtype: DTypeLike | None,
    words: Words = PLAIN,
    of_each: bool = False,
) -> list[GradientTransformationExtraArgs]:
    """The parts of `scale_by_lmo`.

    Args:
        norm, alpha, eps, mu_dtype, coefficients, steps, dtype: as for `scale_by_lmo`.
        words: the words for the last axes of the leaves.
        of_each: for `rms`, whether the first axis indexes layers.
    """
    name = "scale_by_lmo"
    check.choice(name, NORMS, norm=norm)
    (alpha,) = check.fraction(name, alpha=alpha)
    (eps,) = check.nonnegative(name, eps=eps)
    check.dtype(name, mu_dtype=mu_dtype, dtype=dtype)
    rows = polynomials(name, coefficients, steps)
    memory = {"mu": first_moment(mu_dtype)}
    ndim = {"sign": 0, "rms": int(of_each)}.get(norm, len(words))
    numbers = {"alpha": alpha, "eps": eps, "words": words}
    if norm != "spectral":
        numbers |= {"norm": norm, "of_each": of_each}
        rule = Rule(
            name,
            lmo_formula,
            ScaleByLmoState,
            memory=memory,
            numbers=numbers,
            kind="whole",
            check_leaf=FewAxes(norm, ndim),
        )
        return [lift(rule)]
    wide = None if dtype is None else jnp.dtype(dtype)
    rule = Rule(
        name,
        average_formula,
        ScaleByLmoState,
        memory=memory,
        numbers={**numbers, "polynomials": rows, "dtype": wide},
        matrix=Matrix(polar_formula, fold=folded),
        check_leaf=FewAxes(norm, ndim),
    )
    return [lift(rule), scale_by_shape("spectral", 0.0, words)]
