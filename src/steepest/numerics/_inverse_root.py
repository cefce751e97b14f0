"""The inverse p-th root of a matrix, by a coupled Newton iteration.

Higham, Functions of matrices, 2008, section 7.3
Anil et al., Scalable second order optimization for deep learning, 2020,
arXiv:2002.09018
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax.core import Tracer
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from .. import check
from ..core import Real
from ._half import at_least_float32
from ._power_iteration import power_iteration


def matrix_inverse_pth_root(
    matrix: ArrayLike,
    p: Real,
    num_iters: Real = 100,
    ridge_epsilon: Real = 1e-6,
    error_tolerance: Real = 1e-6,
    precision: jax.lax.Precision = jax.lax.Precision.HIGHEST,
) -> tuple[Float[Array, "n n"], Float[Array, ""]]:
    """`A^(-1/p)` of a symmetric positive semidefinite matrix.

        A = matrix + ridge_epsilon s I          s: the largest eigenvalue
        c = (1 + p) / (2 |A|)      M = c A      H = c^(1/p) I
        repeat   T = ((1 + p) I - M) / p        M <- T^p M        H <- H T

    `M` converges to `I`, and `H` to the root: `H^-p = A / M` holds at every step.

    Args:
        matrix: symmetric, with eigenvalues of at least 0.
        p: which root, a whole number of at least 1.
        num_iters: maximum number of steps, a whole number.
        ridge_epsilon: added to the diagonal, as a fraction of the largest eigenvalue;
            at least 0. Keeps the root of a singular matrix finite.
        error_tolerance: stop when no element of `M - I` is larger.
        precision: precision of the matrix products, on devices that offer a choice.

    Returns:
        The root, and the largest element of `M - I`.

    >>> import jax.numpy as jnp
    >>> root, error = matrix_inverse_pth_root(4 * jnp.eye(2), p=2)
    >>> [round(float(x), 4) for x in root.ravel()]
    [0.5, 0.0, 0.0, 0.5]
    """
    name = "matrix_inverse_pth_root"
    matrix = _symmetric(name, matrix)
    if isinstance(p, Array) and not isinstance(p, Tracer) and p.ndim == 0:
        p = p.item()
    (p,) = check.period(name, p=p)
    check.whole(name, num_iters=num_iters)
    check.nonnegative(name, ridge_epsilon=ridge_epsilon)
    check.real(name, error_tolerance=error_tolerance)
    a = at_least_float32(matrix)
    eye = jnp.eye(len(a), dtype=a.dtype)
    # Scaled to elements of at most 1, so that squares neither overflow nor underflow.
    # A zero matrix counts as the smallest normal number times the identity.
    scale = jnp.max(jnp.abs(a), initial=0)
    zero = scale == 0
    scale = jnp.where(zero, jnp.finfo(a.dtype).tiny, scale)
    a = jnp.where(zero, eye, a / scale)
    top, _ = power_iteration(a, precision=precision)
    a = a + jnp.asarray(ridge_epsilon * top).astype(a.dtype) * eye
    share = jnp.asarray(1 / p).astype(a.dtype)
    if a.size <= 1:
        root = a**-share * scale**-share
        return root.astype(matrix.dtype), jnp.zeros((), a.dtype)
    h, error = _newton(a, p, share, num_iters, error_tolerance, precision)
    return (scale**-share * h).astype(matrix.dtype), error


def _symmetric(name: str, matrix: ArrayLike) -> Float[Array, "n n"]:
    """The matrix as an array, after checking its shape and dtype."""
    (matrix,) = check.array(name, matrix=matrix)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ValueError(
            f"{name}: matrix has shape {matrix.shape}, expected a square matrix. Map "
            "over several matrices with `jax.vmap`."
        )
    if not jnp.issubdtype(matrix.dtype, jnp.floating):
        raise ValueError(
            f"{name}: matrix has dtype {matrix.dtype}, expected real numbers. Convert "
            "it with `.astype(float)`."
        )
    return matrix


def _newton(
    a: Array,
    p: Real,
    share: Array,
    num_iters: Real,
    error_tolerance: Real,
    precision: jax.lax.Precision,
) -> tuple[Array, Array]:
    """The iteration for `H` and its final error; `share` is `1 / p`."""
    eye = jnp.eye(len(a), dtype=a.dtype)
    times = lambda x, y: jnp.matmul(x, y, precision=precision)
    c = (1 + share) / share / (2 * jnp.sqrt(jnp.sum(a * a)))

    def error_of(m: Array) -> Array:
        return jnp.max(jnp.abs(m - eye))

    def step(state: tuple[Array, ...]) -> tuple[Array, ...]:
        i, m, h, error, _ = state
        t = (1 + share) * eye - share * m
        new_m = times(_power(t, p, times), m)
        new_error = error_of(new_m)
        # Near convergence only rounding makes the error grow: stop then. Before that it
        # may grow, but not beyond 1.
        far = error > 0.25
        better = new_error < 1.2 * jnp.where(far, jnp.maximum(error, 1), error)
        keep = lambda new, old: jnp.where(better, new, old)
        return (
            i + 1,
            keep(new_m, m),
            keep(times(h, t), h),
            keep(new_error, error),
            better,
        )

    def going(state: tuple[Array, ...]) -> Array:
        i, _, _, error, better = state
        return (i < num_iters) & (error > error_tolerance) & better

    m = c * a
    start = (
        jnp.zeros((), jnp.int32),
        m,
        c**share * eye,
        error_of(m),
        jnp.asarray(True),
    )
    _, _, h, error, _ = jax.lax.while_loop(going, step, start)
    return h, error


def _power(x: Array, p: Real, times: Callable[[Array, Array], Array]) -> Array:
    """`x^p` by repeated squaring: one or two products for each binary digit of `p`."""
    if isinstance(p, int):
        if p == 1:
            return x
        half = _power(times(x, x), p // 2, times)
        return times(half, x) if p % 2 else half

    def step(state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        left, square, power = state
        power = jnp.where(left % 2 == 1, times(power, square), power)
        return left // 2, times(square, square), power

    one = jnp.eye(len(x), dtype=x.dtype)
    start = (jnp.asarray(p).astype(jnp.int32), x, one)
    return jax.lax.while_loop(lambda s: s[0] > 0, step, start)[-1]
