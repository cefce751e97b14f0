"""Running averages of one array: how they begin, how they move, how they are read."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Inexact, Int, Num

from ..core import Real
from ._precision import is_inexact, wide_dtype

Leaf = Inexact[Array, "..."]


@dataclass(frozen=True)
class Zeros:
    """Where a memory begins: zeros like `p`."""

    usual: Callable[[Any], Any]  # p -> the dtype, if none was chosen
    dtype: Any = None  # the dtype that the user chose

    def __call__(self, p: Any) -> Leaf:
        return jnp.zeros_like(p, dtype=self.dtype or self.usual(p))


def first_moment(dtype: Any = None) -> Zeros:
    """Where a mean of gradients begins: zeros like `p`, in `dtype` where given.

    Of integers in float32: a mean kept as an integer would lose what is below one.
    """
    return Zeros(_own_or_wide, dtype)


def second_moment(dtype: Any = None) -> Zeros:
    """Where a mean of squares begins: real zeros like `p`, in float32 or wider.

    In bfloat16 an average with decay 0.999 cannot move: it has 8 bits, and a step is
    a thousandth. So only a given `dtype` makes it narrower than float32.
    """
    return Zeros(_wide, dtype)


def is_chosen(begin: Callable[..., Any]) -> bool:
    """Whether the dtype of what begins here was chosen by the user."""
    return isinstance(begin, Zeros) and begin.dtype is not None


def _own_or_wide(p: Any) -> Any:
    return jnp.result_type(p) if is_inexact(p) else wide_dtype([p])


def _wide(p: Any) -> Any:
    return wide_dtype([p])


def ema(mean: Leaf, x: Leaf, decay: Real) -> Leaf:
    """`decay * mean + (1 - decay) * x`: one step of an average."""
    return decay * mean + (1 - decay) * x


def debias(decay: Real, t: Num[Array, ""]) -> Leaf:
    """`1 - decay**t`: how much of an average is real, `t` steps after it began at zero.

    Taken in float32 or wider: in bfloat16 `0.999` is `1`, and this would be zero.
    """
    return 1 - decay ** t.astype(float)


def abs_sq(x: Leaf) -> Inexact[Array, "..."]:
    """`|x|^2`, real also for complex `x`."""
    return x * x if jnp.isrealobj(x) else x.real * x.real + x.imag * x.imag


def zero_count() -> Int[Array, ""]:
    """Where a count of steps begins."""
    return jnp.zeros((), jnp.int32)


def increment(count: Num[Array, ""]) -> Num[Array, ""]:
    """`count + 1`; an integer stops at its largest value and never turns negative."""
    if jnp.issubdtype(count.dtype, jnp.floating):
        return count + 1
    last = jnp.array(jnp.iinfo(count.dtype).max - 1, count.dtype)
    return jnp.minimum(count, last) + 1


def before(count: Num[Array, ""]) -> Num[Array, ""]:
    """The count in the step that led to this one; 0 where there was none."""
    return jnp.maximum(count, 1) - 1
