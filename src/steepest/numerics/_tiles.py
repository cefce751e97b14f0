"""An elementwise function of arrays and codes, row by row, in one kernel of a GPU.

XLA needs the largest element of a block before it can encode any, so it reads
everything twice and computes the function twice. In the kernel, a warp holds a block
in its registers: it reads once and writes once. Benchmark:
`python -m benchmarks.gpu memory`.

Pallas compiles the kernel with Triton, which JAX 0.11 deprecates in favour of Mosaic.
Where Triton is missing, XLA computes the function as everywhere else.
"""

from collections.abc import Callable, Iterator, Sequence
from math import prod
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PyTree

from ._codes import (
    allowed,
    Coded,
    decoded_row,
    encode,
    encoded_row,
    is_coded,
    LARGE,
    Signed8,
    Unsigned8,
)

BLOCK = 256  # elements that share a scale: one row of a warp
# Rows of a program, which loads a row while it computes the one before. Of 4, 8 and
# 32 rows, 8 are fastest for AdamW on an H200 (JAX 0.11.2).
ROWS = 8
_DTYPES = jnp.float32, jnp.bfloat16, jnp.float16
_LIMIT = np.float32(LARGE).view(np.int32)

Function = Callable[..., tuple[PyTree, PyTree]]
Stored = Array | Coded


def on_gpu() -> bool:
    """Whether programs run on a GPU, unless they are told otherwise.

    A program that is exported from a machine without one has no kernels: then it can be
    exported for several platforms at once, and needs no `disabled_checks`.
    """
    return jax.default_backend() == "gpu"


def is_in_8_bits(memory: PyTree) -> bool:
    """Whether some of this memory is stored in integers of 8 bits.

    Args:
        memory: arrays, or memory in few bits.
    """
    stored = jax.tree.leaves(memory, is_leaf=is_coded)
    return any(isinstance(x, Signed8 | Unsigned8) for x in stored)


def fits(kept: PyTree, given: PyTree) -> bool:
    """Whether `in_tiles` can take these arrays.

    Args:
        kept: arrays, or memory in few bits.
        given: arrays.
    """
    stored = jax.tree.leaves((kept, given), is_leaf=is_coded)
    kinds = all(isinstance(x, Signed8 | Unsigned8) for x in stored if is_coded(x))
    return (
        _one_device()
        and len({x.shape for x in stored}) == 1
        and prod(stored[0].shape) < 1 << 31  # Triton's indices have 32 bits
        and kinds
        and all(x.dtype in _DTYPES for x in stored)
        and _triton() is not None
    )


def in_tiles(
    function: Function,
    kept: PyTree,
    given: PyTree,
    numbers: Sequence[Array],
    *,
    interpret: bool = False,
) -> tuple[PyTree, PyTree]:
    """`function(kept, given, numbers)`, in one kernel that overwrites `kept`.

    Memory in few bits is decoded for the function, and its result is encoded.

    Args:
        function: `(kept, given, numbers) -> (kept, other results)`, elementwise.
        kept: arrays, and memory in few bits, all of one shape.
        given: arrays of that shape.
        numbers: arrays without axes.
        interpret: whether to run without a GPU, for tests.
    """
    from jax.experimental import pallas as pl

    old, treedef = jax.tree.flatten(kept, is_leaf=is_coded)
    read, given_def = jax.tree.flatten(given)
    shape = prod(old[0].shape[:-1]), old[0].shape[-1]
    flat = [_parts(x, shape) for x in (*old, *read)]
    changed = sum(map(len, flat[: len(old)]))
    arrays = [part for parts in flat for part in parts]
    plain = [jax.ShapeDtypeStruct(shape, x.dtype) for x in (*old, *read)]
    both = treedef.unflatten(plain[: len(old)]), given_def.unflatten(plain[len(old) :])
    others, other_def = jax.tree.flatten(
        jax.eval_shape(function, *both, tuple(numbers))[1]
    )
    outputs = [jax.ShapeDtypeStruct(x.shape, x.dtype) for x in arrays[:changed]]
    outputs += others
    columns = min(BLOCK, pl.next_power_of_2(shape[1]))
    rows = next(k for k in (ROWS, 4, 2, 1) if shape[0] % k == 0)

    def kernel(*refs: Any) -> None:
        values = tuple(ref[0] for ref in refs[: len(numbers)])
        refs = refs[len(numbers) :]
        sources, results = refs[: len(arrays)], refs[len(arrays) :]
        inside = _inside(shape[1], columns)

        def load(row: int | Int[Array, ""]) -> list[Array]:
            return [_load(ref, row, inside) for ref in sources]

        def new(loaded: list[Array], coder: "_Coder") -> list[Array]:
            rest = iter(loaded)
            plain = [coder.next(x, rest) for x in (*old, *read)]
            before = treedef.unflatten(plain[: len(old)])
            after, others = function(
                before, given_def.unflatten(plain[len(old) :]), values
            )
            pairs = zip(old, jax.tree.leaves(after), strict=True)
            parts = [part for was, x in pairs for part in coder.parts(was, x)]
            return parts + jax.tree.leaves(others)

        def step(row: Array, carry: tuple[list[Array], Array]) -> Any:
            loaded, special = carry
            following = load(jnp.minimum(row + 1, rows - 1))
            coder = _Ordinary(inside)
            parts = new(loaded, coder)
            for ref, x in zip(results, parts, strict=True):
                _store(ref, row, x, inside, coder.most <= _LIMIT)
            # One bit for each row that has to be computed again. In an `if` around
            # each row, the results would be held in registers for both branches.
            return following, special | (((_LIMIT - coder.most) >> 31) & (1 << row))

        _, special = jax.lax.fori_loop(0, rows, step, (load(0), jnp.int32(0)))

        @pl.when(special != 0)
        def _() -> None:
            def again(row: Array, carry: Array) -> Array:
                @pl.when((special >> row) & 1 > 0)
                def _() -> None:
                    parts = new(load(row), _Coder(inside))
                    for ref, x in zip(results, parts, strict=True):
                        _store(ref, row, x, inside)

                return carry

            jax.lax.fori_loop(0, rows, again, jnp.int32(0))

    def spec(x: Array | jax.ShapeDtypeStruct) -> Any:
        width = columns if x.shape == shape else 1
        return pl.BlockSpec((rows, width), lambda i, j: (i, j))

    results = pl.pallas_call(
        kernel,
        out_shape=outputs,
        grid=(shape[0] // rows, pl.cdiv(shape[1], columns)),
        in_specs=[pl.BlockSpec((1,), lambda i, j: (0,))] * len(numbers)
        + [spec(x) for x in arrays],
        out_specs=[spec(x) for x in outputs],
        input_output_aliases={len(numbers) + k: k for k in range(changed)},
        compiler_params=_triton().CompilerParams(num_warps=1, num_stages=1),
        interpret=interpret,
        name="in_tiles",
    )(*[jnp.reshape(x, (1,)) for x in numbers], *arrays)
    rest = iter(results)
    new = treedef.unflatten(_whole(x, rest) for x in old)
    return new, other_def.unflatten(x.reshape(old[0].shape) for x in rest)


class _Coder:
    """Decodes and encodes any row of one block."""

    def __init__(self, inside: Array | None):
        self._inside = inside

    def next(self, like: Stored, loaded: Iterator[Array]) -> Array:
        """A row of a leaf, from the next of the loaded arrays."""
        if not isinstance(like, Coded):
            return next(loaded)
        return self.decoded(type(like)(next(loaded), next(loaded)))

    def parts(self, like: Stored, x: Array) -> list[Array]:
        """The arrays to store for a row of a leaf."""
        if not isinstance(like, Coded):
            return [x]
        # What is outside must not change the scale.
        x = x if self._inside is None else jnp.where(self._inside, x, 0)
        return list(self.encoded(like, x))

    def decoded(self, row: Coded) -> Array:
        """The numbers of a row."""
        return row.decode()

    def encoded(self, like: Coded, x: Array) -> Coded:
        """The row, stored like another one."""
        return encode(x, like.kind)


class _Ordinary(_Coder):
    """Decodes and encodes a row without infinity, NaN or numbers above `LARGE`.

    If `most` is above `_LIMIT`, the row is not ordinary, and the results are wrong.
    """

    most: Int[Array, ""]

    def __init__(self, inside: Array | None):
        super().__init__(inside)
        self.most = jnp.int32(0)

    def decoded(self, row: Coded) -> Array:
        # Above the limit if the scale is negative.
        self._note(_bits(jnp.max(row.scales * -LARGE * LARGE)))
        return decoded_row(row)

    def encoded(self, like: Coded, x: Array) -> Coded:
        x = allowed(like.kind, x)
        # The bits of positive numbers are in order: NaN, infinity, large ones, others.
        size = jnp.abs(x) if isinstance(like, Signed8) else x
        most = jnp.max(_bits(size), axis=1, keepdims=True)
        self._note(jnp.max(most))
        largest = jax.lax.bitcast_convert_type(most, jnp.float32)
        return encoded_row(like.kind, x, largest)

    def _note(self, bits: Int[Array, ""]) -> None:
        self.most = jnp.maximum(self.most, bits)


def _one_device() -> bool:
    """Whether there is one device only: XLA cannot shard a kernel."""
    return jax.device_count() == 1


def _triton() -> Any:
    """Pallas' Triton backend; `None` if this JAX does not have it."""
    try:
        from jax.experimental.pallas import triton
    except ImportError:
        return None
    return triton


def _bits(x: Float[Array, "..."]) -> Int[Array, "..."]:
    return jax.lax.bitcast_convert_type(x, jnp.int32)


def _parts(x: Stored, shape: tuple[int, int]) -> list[Array]:
    """The arrays of a leaf, each as a matrix."""
    if not isinstance(x, Coded):
        return [x.reshape(shape)]
    return [x.codes.reshape(shape), x.scales.reshape(shape[0], -1)]


def _whole(x: Stored, parts: Iterator[Array]) -> Stored:
    """The inverse of `_parts`, from the next of the new arrays."""
    if not isinstance(x, Coded):
        return next(parts).reshape(x.shape)
    codes, scales = next(parts), next(parts)
    return type(x)(codes.reshape(x.codes.shape), scales.reshape(x.scales.shape))


def _inside(length: int, columns: int) -> Array | None:
    """Which columns of a block are inside rows of this length; `None` if all are."""
    from jax.experimental import pallas as pl

    if length % columns == 0:
        return None
    column = jax.lax.broadcasted_iota(jnp.int32, (1, columns), 1)
    return column + pl.program_id(1) * columns < length


def _load(ref: Any, row: int | Array, inside: Array | None) -> Array:
    from jax.experimental import pallas as pl

    if inside is None or ref.shape[1] == 1:
        return ref[pl.ds(row, 1), :]
    return _triton().load(ref.at[pl.ds(row, 1), :], mask=inside, other=0)


def _store(
    ref: Any, row: Array, x: Array, inside: Array | None, wanted: Array | None = None
) -> None:
    from jax.experimental import pallas as pl

    mask = inside if x.shape[1] > 1 else None
    if wanted is not None:
        each = jnp.broadcast_to(wanted, x.shape)
        mask = each if mask is None else mask & each
    if mask is None:
        ref[pl.ds(row, 1), :] = x
    else:
        _triton().store(ref.at[pl.ds(row, 1), :], x, mask=mask)
