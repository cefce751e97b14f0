"""Tricks for XLA, JAX's compiler. They change how a program runs, not its results.

Each says what XLA does without it, and which benchmark or test measures it. All were
seen with JAX 0.10.2; with another version, measure again. Patterns are for
`python -m benchmarks --only PATTERN`. A formula whose order of lines matters to XLA
says so where it stands.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Bool, Float, Inexact, Int, Num, PyTree

from ._products import quotient

T = TypeVar("T")

# The most bytes in a stack. More than a few large matrices gain nothing: on an H200, a
# float32 matrix of 1600 x 6400 takes as long in a stack of 12 as in a stack of 96.
MOST = 1 << 29
# The most matrices in a stack, if they have fewer bytes than that.
ON_CPU, ELSEWHERE, SMALL_ONES = 16, 8, 256
SMALL, SMALL_ON_CPU = 1 << 26, 1 << 21  # bytes


def set_apart(numbers: tuple[PyTree, ...]) -> tuple[PyTree, ...]:
    """The same numbers, computed before the loops that use them.

    Without the barrier, XLA may fuse `b ** t` into the loop over each leaf. Steps take
    as long either way (JAX 0.10.2), but compile longer without it: on an H200, AdamW
    over GPT-2 XL takes 6.5 s instead of 5.5 s. No benchmark has this row.

    Args:
        numbers: numbers that are computed once per step, for the whole tree.
    """
    return jax.lax.optimization_barrier(numbers)


def read_again(x: Array) -> Array:
    """`x`, so that what is computed from it is not shared with other uses of `x`.

    A norm and Adam both need the squares of a gradient. Without the barrier, XLA
    computes them once, and stores them in between: as many bytes as the gradient (JAX
    0.10.2). To square twice is cheaper. `tests/numerics/test_xla.py` counts the bytes.

    Args:
        x: an array.
    """
    return jax.lax.optimization_barrier(x)


def stored(x: Array) -> Array:
    """`x`, computed once and stored on a GPU, and not again at every use.

    A matrix formula uses the new mean of the gradients twice. Without the barrier, XLA
    computes it from the old mean each time, and must then copy the old one before it is
    overwritten: 0.4 of 14 ms of a step of SOAP (GPT-2 124M, H200, JAX 0.11.2).

    Args:
        x: an array.
    """
    return jax.lax.optimization_barrier(x) if jax.default_backend() == "gpu" else x


def before_its_parts(x: Array) -> Array:
    """`x`, computed once, before the parts that it is stored in.

    A weight in half precision and its correction are two results. Without the barrier,
    XLA's CPU compiler computes each in its own loop, and both loops compute `x` again.
    If LLVM does not optimize (`xla_backend_optimization_level=0`), a product and a sum
    are rounded together in one of them, and not in the other (JAX 0.11.2). Near the
    middle between two bfloat16 numbers, the parts then belong to different weights, a
    unit of bfloat16 apart. The barrier costs nothing: without it, XLA copies what both
    loops read. JAX 0.10.2 removes it before it fuses loops; there no such weight was
    seen. On a GPU one loop writes both parts. `tests/combine/test_corrections.py` looks
    for such weights.

    Args:
        x: an array.
    """
    return jax.lax.optimization_barrier(x) if short_programs() else x


def computed_once(decision: ArrayLike) -> Bool[Array, ""]:
    """The same boolean, computed once, and not again at every use.

    Without the square root, XLA fuses all that computes the boolean, one term per leaf,
    into the choice at every leaf, and compiles for minutes. It never duplicates a
    square root (JAX 0.10.2). Benchmark: `python -m benchmarks.skips`.

    Args:
        decision: one boolean.
    """
    return jnp.sqrt(jnp.asarray(decision).astype(jnp.float32)) > 0.5


def largest(x: Num[Array, "..."]) -> Float[Array, ""]:
    """The largest `|x|`. It is finite if all elements are.

    A maximum needs no memory. Without this, `jnp.all(jnp.isfinite(x))`, XLA's CPU
    compiler stores the mask, a byte for each element (JAX 0.10.2).
    `tests/numerics/test_xla.py` counts the bytes.

    Args:
        x: a real array, perhaps empty.
    """
    return jnp.max(jnp.abs(x), initial=0).astype(float)


@jax.custom_jvp
def sqrt_or_zero(x: ArrayLike) -> Num[Array, "..."]:
    """`sqrt(x)` with derivative 0 at 0, where that of `sqrt` is infinite.

    The choice is made in the derivative only. With a `jnp.where` around the root, XLA
    repeats the choice in every loop that uses the norm, for each element (JAX 0.10.2).
    Benchmark: `middle (lamb|lars)`.
    """
    return jnp.sqrt(x)


@sqrt_or_zero.defjvp
def _sqrt_or_zero_jvp(
    primals: tuple[ArrayLike], tangents: tuple[Array]
) -> tuple[Array, Array]:
    (x,), (t,) = primals, tangents
    y = sqrt_or_zero(x)
    return y, quotient(t / 2, y)


@jax.custom_jvp
def slope_if(apply: Bool[Array, ""], x: ArrayLike) -> ArrayLike:
    """`x`, with derivative zero unless `apply`, since zero times NaN is NaN.

    `jnp.where(apply, x, 0)` would have the same effect on a step whose results are not
    used. But XLA's CPU compiler stores it, as many bytes as `x`, if the step takes a
    norm (JAX 0.10.2). `tests/numerics/test_xla.py` counts the bytes.

    Args:
        apply: one boolean.
        x: an array.
    """
    return x


@slope_if.defjvp
def _slope_if_jvp(
    primals: tuple[ArrayLike, ArrayLike], tangents: tuple[ArrayLike, Array]
) -> tuple[ArrayLike, Array]:
    (apply, x), (_, t) = primals, tangents
    return x, jnp.where(apply, t, jnp.zeros_like(t))


def after(x: Inexact[Array, "..."], *first: Inexact[Array, "..."]) -> Array:
    """`x`, written only after all of `first` have been computed.

    XLA on a CPU copies a buffer before the step if something may still read it when it
    is overwritten (JAX 0.10.2). If `first` holds everything that reads it, no copy is
    needed. The condition below is always true and costs nothing: the compiler
    simplifies it away, but only after it has fixed the order. Benchmark: the bytes
    copied in `middle (adan|contrib.adopt)`.

    Args:
        x: the new value of a memory.
        first: arrays of the same shape, or numbers, computed from the old memory.
    """
    for y in first:
        x = jnp.where((y == y) | (y != y), x, jnp.zeros_like(x))
    return x


def inlined(f: Callable[..., T]) -> Callable[..., T]:
    """`jax.jit(f)` that leaves no call in the program of a caller.

    It is traced once for all leaves of a shape. Without `inline`, XLA has a call per
    leaf to inline itself, and compiles longer (JAX 0.10.2). Benchmark:
    `python xl-narrow clip`.

    Args:
        f: a function of arrays.
    """
    return partial(jax.jit, inline=True)(f)


def short_programs() -> bool:
    """Whether short programs matter more than a few microseconds per step: on a CPU.

    There XLA takes 12 ms to compile one loop (JAX 0.10.2), and calls it within a
    microsecond. Benchmark: `python matrices-96`.
    """
    return jax.default_backend() == "cpu"


_SOME = 4  # it is not worth the barrier for fewer numbers


def unknown(numbers: Sequence[int]) -> Sequence[int | Int[Array, ""]]:
    """The same numbers, without telling XLA's CPU compiler what they are.

    It compiles equal loops once, and to compile one takes 12 ms (JAX 0.10.2). Slices of
    a stack are equal loops if the compiler does not know where they begin. It writes a
    single number into the loop, but passes an array of two to it. Without the barrier,
    it would take the number out of the array. Benchmark: `python matrices-96`.

    Args:
        numbers: what to hide, none negative. On other devices, nothing is hidden.
    """
    if len(numbers) < _SOME or not short_programs():
        return numbers
    # It would also write equal numbers into the loop, and multiples: 0, k.
    pairs = [np.array([-1, k], np.int32) for k in numbers]
    second = lambda pair: jax.lax.squeeze(jax.lax.slice(pair, [1], [2]), [0])
    return [second(pair) for pair in jax.lax.optimization_barrier(pairs)]


def computed_again(x: Array) -> Array:
    """`x`, so that a formula of it that is used twice becomes two equal loops on a CPU.

    Nesterov momentum adds the same multiple of a gradient twice. XLA's CPU compiler
    sees that, passes the arguments to the second loop in another order, and compiles
    both loops. With the barrier and `joins_rows`, Muon on 40 matrices of 96 x 96
    compiles in 95% of the time (JAX 0.10.2), and takes as long per step. Benchmark:
    `python -m benchmarks.compile`.

    Args:
        x: an array.
    """
    return jax.lax.optimization_barrier(x) if short_programs() else x


def joins_rows(x: Array) -> bool:
    """Whether to join the rows of matrices, and then to divide them into a stack.

    If a matrix becomes a stack of one before it is joined, XLA's CPU compiler makes the
    new shape a part of the loop that computes the matrix. This loop then differs from
    others, and is compiled: see `computed_again`. On several devices, rows that are
    sharded would have to be gathered.

    Args:
        x: one of the arrays to join.
    """
    one_device = jax.device_count() == 1 and jax.typeof(x).sharding.mesh.empty
    return short_programs() and one_device


def members(x: Array, start: int | Int[Array, ""], many: int) -> Array:
    """Some of the arrays in a stack: `x[start : start + many]`.

    Args:
        x: the stack.
        start: the first of them, perhaps one of `unknown`.
        many: how many.
    """
    if many == len(x):
        return x
    if isinstance(start, int):
        return jax.lax.slice_in_dim(x, start, start + many)
    # In a program with 64 bits, `0` would have another dtype than `start`.
    begin, sizes = (start, *[np.int32(0)] * (x.ndim - 1)), (many, *x.shape[1:])
    return jax.lax.dynamic_slice(x, begin, sizes, allow_negative_indices=False)


def most_in_stack(size: int, devices: int = 1) -> int:
    """The most matrices to put in one stack, if each has `size` bytes.

    Stacks of more than 8 are slower (7.0 ms against 2.8 for all of GPT-2 XL on an H200,
    JAX 0.10.2), unless the matrices are small, where larger stacks save kernel
    launches. On a CPU, larger stacks compile sooner, but should fit into its cache.
    Benchmarks: `matrices-.* muon`, and muon on gpt2-xl of `python -m benchmarks.gpu`.

    Args:
        size: the bytes of one matrix, at least 1.
        devices: the number of devices that share the stack.
    """
    cpu = short_programs()
    few, small = (ON_CPU, SMALL_ON_CPU) if cpu else (ELSEWHERE, SMALL)
    return devices * _most(size, few, small)


def most_kept(size: int) -> int:
    """The most matrices in a stack whose memory is kept, if each has `size` bytes.

    The same on every machine, so that a state fits on all of them.

    Args:
        size: the bytes of one matrix, at least 1.
    """
    return _most(size, ELSEWHERE, SMALL)


def _most(size: int, few: int, small: int) -> int:
    many = max(few, min(SMALL_ONES, small // size))
    return max(1, min(many, MOST // size))


def most_in_chain(size: int) -> int:
    """The most matrices to factor at once, if each has `size` bytes.

    A factorization is a long chain of small steps, and an accelerator takes about as
    long for many matrices as for a few. On an H200 (JAX 0.11.2), the bases of 60 sides
    of 768 are corrected in 4.8 ms as one stack; in three, SOAP's step that did so was
    26% longer than the others.

    Args:
        size: the bytes of one matrix, at least 1.
    """
    return most_in_stack(size) if short_programs() else max(1, MOST // size)
