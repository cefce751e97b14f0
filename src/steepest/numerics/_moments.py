"""Running averages of one array: initial value, update and bias correction."""

from collections.abc import Callable
from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike
from jaxtyping import Array, Inexact, Int, Num

from ..core import Param, Real
from ._precision import is_inexact, wide_dtype

Leaf = Inexact[Array, "..."]


@dataclass(frozen=True)
class Zeros:
    """An initial value: zeros like `p`."""

    usual: Callable[[Param], np.dtype]  # p -> the default dtype
    dtype: DTypeLike | None = None  # the dtype chosen by the user

    def __call__(self, p: Param) -> Leaf:
        return jnp.zeros_like(p, dtype=self.dtype or self.usual(p))


def first_moment(dtype: DTypeLike | None = None) -> Zeros:
    """The initial value of a mean of gradients: zeros like `p`, in `dtype` if given.

    In float32 for integers: an integer mean would lose its fraction.
    """
    return Zeros(_own_or_wide, dtype)


def second_moment(dtype: DTypeLike | None = None) -> Zeros:
    """The initial value of a mean of squares: real zeros like `p`, in float32 or wider.

    In bfloat16 an average with decay 0.999 cannot move: 8 bits cannot register a change
    of 0.1%. So only an explicit `dtype` makes it narrower than float32.
    """
    return Zeros(_wide, dtype)


def is_chosen(begin: Callable[..., object]) -> bool:
    """Whether the user chose the dtype of this memory, or its formula demands it."""
    chosen = isinstance(begin, Zeros) and begin.dtype is not None
    return chosen or getattr(begin, "keeps_dtype", False)


def _own_or_wide(p: Param) -> np.dtype:
    return jnp.result_type(p) if is_inexact(p) else wide_dtype([p])


def _wide(p: Param) -> np.dtype:
    return wide_dtype([p])


def ema(mean: Leaf, x: Leaf, decay: Real) -> Leaf:
    """`decay * mean + (1 - decay) * x`: one step of a running average."""
    return decay * mean + (1 - decay) * x


def debias(decay: Real, t: Num[Array, ""]) -> Leaf:
    """`1 - decay**t`: the bias correction of an average that began at zero.

    Computed in float32 or wider: in bfloat16 `0.999` is `1`, and this would be zero.
    """
    return 1 - decay ** t.astype(float)


def abs_sq(x: Leaf) -> Inexact[Array, "..."]:
    """`|x|^2`, real also for complex `x`."""
    return x * x if jnp.isrealobj(x) else x.real * x.real + x.imag * x.imag


def zero_count() -> Int[Array, ""]:
    """The initial value of a count of steps."""
    return jnp.zeros((), jnp.int32)


def increment(count: Num[Array, ""]) -> Num[Array, ""]:
    """`count + 1`; an integer saturates at its largest value instead of wrapping."""
    if jnp.issubdtype(count.dtype, jnp.floating):
        return count + 1
    last = jnp.array(jnp.iinfo(count.dtype).max - 1, count.dtype)
    return jnp.minimum(count, last) + 1


def before(count: Num[Array, ""]) -> Num[Array, ""]:
    """The count one step earlier; 0 before the first step."""
    return jnp.maximum(count, 1) - 1
