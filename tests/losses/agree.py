"""A loss compared with Optax's: the same numbers, gradients and dtypes.

Everything is compiled once, without optimization: most of a test is compilation.
"""

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from steepest import losses

CARELESS = {
    "xla_backend_optimization_level": 0,
    "xla_llvm_disable_expensive_passes": True,
}


def run(f: Callable[..., Any], *args: Any) -> Any:
    """`f(*args)`, compiled as one function."""
    return jax.jit(f).lower(*args).compile(compiler_options=CARELESS)(*args)


def theirs(name: str) -> Callable[..., Any]:
    """Optax's loss, with the promotion rules it needs."""

    def f(*args: Any, **options: Any) -> Any:
        dtypes = jax.numpy_dtype_promotion("standard")
        with (
            dtypes,
            jax.numpy_rank_promotion("allow"),
            warnings.catch_warnings(action="ignore", category=DeprecationWarning),
        ):
            return getattr(optax.losses, name)(*args, **options)

    return f


def agree(name: str, *args: Any, wrt: Sequence[int] = (0,), **options: Any) -> None:
    """`losses.name(*args)` and its gradients equal Optax's.

    To twelve digits in float64, to five digits of the float64 result in float32, and
    with the same dtypes in float32.
    """
    ours, other = getattr(losses, name), theirs(name)

    def both(f: Any, given: list[Any], dtype: str, wrt: Sequence[int] = wrt) -> Any:
        chosen = {k: _cast(x, dtype) for k, x in options.items()}

        def total(*a: Any) -> Any:
            loss = f(*a, **chosen)
            return jnp.sum(jax.tree.leaves(loss)[0]), loss

        if not wrt:
            return total(*given)
        return jax.grad(total, tuple(wrt), has_aux=True)(*given)

    with jax.enable_x64(True):
        single, double = ([_cast(x, d) for x in args] for d in ("float32", "float64"))
        exact, mine, short = run(
            lambda a, b: (
                both(other, b, "float64"),
                both(ours, b, "float64"),
                both(ours, a, "float32"),
            ),
            single,
            double,
        )
        rough = jax.eval_shape(lambda a: both(other, a, "float32", ())[1], single)
    same(mine, exact, 1e-12, 1e-13)
    near(short, exact, 1e-5, 2e-6)
    for a, b in zip(jax.tree.leaves(short[1]), jax.tree.leaves(rough), strict=True):
        assert a.dtype == b.dtype


def half(name: str, *args: Any, **options: Any) -> None:
    """Half precision: Optax's dtype, and the float32 result up to one rounding."""
    f = getattr(losses, name)
    expected = jax.eval_shape(lambda *a: theirs(name)(*a, **options), *args)
    wide = [
        x.astype(jnp.float32) if jnp.issubdtype(x.dtype, jnp.floating) else x
        for x in args
    ]
    ours, exact = run(lambda a, b: (f(*a, **options), f(*b, **options)), args, wide)
    assert ours.dtype == expected.dtype
    assert ours.shape == expected.shape
    eps = float(jnp.finfo(ours.dtype).eps)
    np.testing.assert_allclose(np.asarray(ours, float), exact, rtol=eps, atol=1e-6)


def same(ours: Any, expected: Any, rtol: float, atol: float = 0.0) -> None:
    """Two trees of arrays: equal dtypes and shapes, and nearly equal numbers."""
    for a, b in zip(jax.tree.leaves(ours), jax.tree.leaves(expected), strict=True):
        assert a.dtype == b.dtype
    near(ours, expected, rtol, atol)


def near(ours: Any, expected: Any, rtol: float, atol: float) -> None:
    """Two trees of arrays: equal shapes, and nearly equal numbers."""
    for a, b in zip(jax.tree.leaves(ours), jax.tree.leaves(expected), strict=True):
        assert a.shape == b.shape
        np.testing.assert_allclose(
            np.asarray(a, float), np.asarray(b, float), rtol=rtol, atol=atol
        )


def finite(f: Callable[..., Any], *args: Any) -> None:
    """The value and the gradients for all arguments are finite."""
    which = tuple(range(len(args)))
    slopes = jax.value_and_grad(lambda *a: jnp.sum(f(*a)), which)
    for x in jax.tree.leaves(run(slopes, *args)):
        assert np.isfinite(np.asarray(x, float)).all()


def _cast(x: Any, dtype: str) -> Any:
    if isinstance(x, np.ndarray):
        return jnp.asarray(x, dtype if x.dtype.kind == "f" else None)
    return x
