"""Running averages of one array: initial value, update and bias correction."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal, TypeVar

import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike
from jaxtyping import Array, Inexact, Int, Num

from ..core import Param, Real
from ._precision import is_inexact, wide_dtype

Leaf = Inexact[Array, "..."]
# What memory may be stored in few bits: a mean of signed numbers, a nonnegative one, an
# orthogonal matrix, or none, since its precision matters.
Values = Literal["signed", "nonnegative", "orthogonal", "exact"]
F = TypeVar("F", bound=Callable[..., object])


@dataclass(frozen=True)
class Zeros:
    """An initial value: zeros like `p`."""

    usual: Callable[[Param], np.dtype]  # p -> the default dtype
    dtype: DTypeLike | None = None  # the dtype chosen by the user
    values: Values = "signed"  # what may be stored in few bits

    def __call__(self, p: Param) -> Leaf:
        return jnp.zeros_like(p, dtype=self.dtype or self.usual(p))

    @property
    def exact(self) -> "Zeros":
        """The same for memory that is never stored in few bits.

        For example a sum over all steps: it grows by less and less of its size, in the
        end by less than the distance of two codes.
        """
        return replace(self, values="exact")


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
    return Zeros(_wide, dtype, "nonnegative")


def is_chosen(begin: Callable[..., object]) -> bool:
    """Whether the user chose the dtype of this memory, or its formula demands it."""
    chosen = isinstance(begin, Zeros) and begin.dtype is not None
    return chosen or getattr(begin, "keeps_dtype", False)


def holding(values: Values) -> Callable[[F], F]:
    """Decorate a function that makes initial memory: what the memory may hold.

    Without it, `memory_dtype="int8"` leaves the memory in float32.

    Args:
        values: "signed" or "nonnegative" for an average that may be stored in few bits,
            "orthogonal" for a matrix that may be stored in float16, or "exact" for
            memory that may not, such as a copy of the params.
    """

    def mark(begin: F) -> F:
        begin.__dict__["values"] = values
        return begin

    return mark


def values_of(begin: Callable[..., object]) -> Values:
    """What memory may hold, as `holding` says; "exact" if nothing says it.

    Args:
        begin: the function that makes the initial memory.
    """
    if isinstance(begin, partial):
        return values_of(begin.func)
    return getattr(begin, "values", "exact")


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
