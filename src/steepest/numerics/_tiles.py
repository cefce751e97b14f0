"""An elementwise function of arrays and codes, row by row, in one kernel of a GPU.

XLA needs the largest element of a block before it can encode any, so it reads
everything twice and computes the function twice. In the kernel, a warp holds a block
in its registers: it reads once and writes once. Benchmark:
`python -m benchmarks.gpu memory`.

Pallas compiles the kernel with Triton, which JAX 0.11 deprecates in favour of Mosaic.
Where Triton is missing, XLA computes the function as everywhere else.
"""

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, PyTree

from ._codes import Coded, is_coded, Signed8, Unsigned8
from ._corrected import Corrected
from ._kernels import triton
from ._rows import (
    exact_codes,
    exact_sizes,
    exactly_decoded,
    Formula,
    inside_only,
    no_sizes,
    Ordinary,
    parts_of,
    Place,
    scales_of,
    Stored,
    whole_of,
)

BLOCK = 256  # elements that share a scale: one row of a warp
# A warp loads 128 elements at once: each thread has four neighbours. With eight, as
# wide as codes could be loaded, those of float32 would change threads to be stored.
PIECE = 128
CHUNK = 32  # elements at once in rows with infinity or NaN, to need few registers
_DTYPES = jnp.float32, jnp.bfloat16, jnp.float16

Function = Callable[..., tuple[PyTree, PyTree]]


def on_gpu() -> bool:
    """Whether programs run on a GPU, unless they are told otherwise.

    A program that is exported from a machine without one has no kernels: then it can be
    exported for several platforms at once, and needs no `disabled_checks`.
    """
    return jax.default_backend() == "gpu"


def is_in_few_bits(memory: PyTree) -> bool:
    """Whether some of this memory is stored in 8 or 4 bits.

    Args:
        memory: arrays, or memory in few bits.
    """
    stored = jax.tree.leaves(memory, is_leaf=is_coded)
    return any(isinstance(x, Coded) for x in stored)


def fits(kept: PyTree, given: PyTree) -> bool:
    """Whether `in_tiles` can take these arrays.

    Args:
        kept: arrays, or arrays in few bits.
        given: the same.
    """
    stored = jax.tree.leaves((kept, given), is_leaf=is_coded)
    return (
        _one_device()
        and len({x.shape for x in stored}) == 1
        and stored[0].shape[-1:] != (1,)  # rows of one element look like scales
        and prod(stored[0].shape) < 1 << 31  # Triton's indices have 32 bits
        and all(map(_is_known, stored))
        and triton() is not None
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

    Arrays in few bits are decoded for the function, and its results are encoded.

    Args:
        function: `(kept, given, numbers) -> (kept, other results)`, elementwise.
        kept: arrays, and arrays in few bits, all of one shape.
        given: arrays of that shape, or arrays in few bits.
        numbers: arrays without axes.
        interpret: whether to run without a GPU, for tests.
    """
    from jax.experimental import pallas as pl

    from ._kernel_arithmetic import for_kernel  # with its imports, as slow as Pallas

    function = for_kernel(function, interpret=interpret)
    old, treedef = jax.tree.flatten(kept, is_leaf=is_coded)
    read, given_def = jax.tree.flatten(given, is_leaf=is_coded)
    shape = _as_matrix(old[0].shape)
    flat = [parts_of(x, shape) for x in (*old, *read)]
    changed = sum(map(len, flat[: len(old)]))
    arrays = [part for parts in flat for part in parts]
    seeds = [x.seed for x in (*old, *read) if getattr(x, "seed", None) is not None]
    scalars = [*numbers, *(seed[k] for seed in seeds for k in (0, 1))]

    def formula(
        plain: Sequence[Array], numbers: Sequence[Array]
    ) -> tuple[list[Array], list[Array]]:
        before = treedef.unflatten(plain[: len(old)])
        now = given_def.unflatten(plain[len(old) :])
        after, others = function(before, now, tuple(numbers))
        if interpret:  # a kernel computes it once; XLA would, for each result
            after, others = jax.lax.optimization_barrier((after, others))
        return treedef.flatten_up_to(after), jax.tree.leaves(others)

    plain = [jax.ShapeDtypeStruct(shape, x.dtype) for x in (*old, *read)]
    trees = treedef.unflatten(plain[: len(old)]), given_def.unflatten(plain[len(old) :])
    others, other_def = jax.tree.flatten(
        jax.eval_shape(function, *trees, tuple(numbers))[1]
    )
    outputs = [jax.ShapeDtypeStruct(x.shape, x.dtype) for x in arrays[:changed]]
    outputs += others
    columns = min(BLOCK, pl.next_power_of_2(shape[1]))
    blocks = pl.cdiv(shape[1], columns)  # of a row
    task = _Task(old, read, formula, len(numbers), shape[1], columns, interpret)

    def kernel(*refs: Any) -> None:
        values = [ref[0] for ref in refs[: len(scalars)]]
        refs = refs[len(scalars) :]
        number = pl.program_id(0)
        at = number // blocks, number % blocks * columns
        results = refs[len(arrays) :]
        # What is overwritten is read from there: interpreted, too, old and new are at
        # the same place.
        sources = *results[:changed], *refs[changed : len(arrays)]
        _Program(task, at, values, sources, results).run()

    def spec(x: Array | jax.ShapeDtypeStruct) -> Any:
        width = columns if x.shape == shape else 1
        return pl.BlockSpec((1, width), lambda i: (i // blocks, i % blocks))

    results = pl.pallas_call(
        kernel,
        out_shape=outputs,
        grid=(shape[0] * blocks,),
        in_specs=[pl.BlockSpec((1,), lambda i: (0,))] * len(scalars)
        + [spec(x) for x in arrays],
        out_specs=[spec(x) for x in outputs],
        input_output_aliases={len(scalars) + k: k for k in range(changed)},
        compiler_params=triton().CompilerParams(num_warps=1, num_stages=1),
        interpret=interpret,
        name="in_tiles",
    )(*[jnp.reshape(x, (1,)) for x in scalars], *arrays)
    rest = iter(results)
    new = treedef.unflatten(whole_of(x, rest) for x in old)
    return new, other_def.unflatten(x.reshape(old[0].shape) for x in rest)


class _Task(NamedTuple):
    """What a kernel computes."""

    old: list[Stored]  # what it overwrites
    read: list[Stored]  # what else it reads
    formula: Formula
    numbers: int  # how many the formula takes; the other ones are seeds
    length: int  # of a row
    columns: int  # of a block
    interpret: bool


class _Program:
    """A program of the kernel: one block, in one warp.

    AdamW for 1.07 billion params takes 4.18 ms on an H200 (JAX 0.11.2), and took 4.50
    ms before `_kernel_arithmetic`. Slower were then eight blocks in a program (3 %),
    loads that the compiler must not delay (3 %), and loads of the next block before the
    current one is computed (3 %).
    """

    def __init__(
        self,
        task: _Task,
        at: tuple[Array, Array],
        values: Sequence[Array],
        sources: Sequence[Any],
        results: Sequence[Any],
    ):
        self._task, self._at = task, at
        self._numbers, self._seeds = values[: task.numbers], values[task.numbers :]
        self._sources, self._results = sources, results

    def run(self) -> None:
        """Compute the block."""
        from jax.experimental import pallas as pl

        # What is not ordinary is computed again. In an `if` around both, the results
        # would be held in registers for both branches.
        pl.when(~self._ordinary())(self._exactly)

    def _ordinary(self) -> Array:
        """Compute the block, if it is ordinary. If it is not, nothing is stored."""
        task = self._task
        width = min(PIECE, task.columns)
        places = [self._place(k, width) for k in range(0, task.columns, width)]
        coder = Ordinary(self._seeds, interpret=task.interpret)
        news, others = [], []
        loaded = [self._loaded(place) for place in places]
        for place, parts in zip(places, loaded, strict=True):
            rest = iter(parts)
            plain = [coder.decoded(x, rest) for x in (*task.old, *task.read)]
            after, other = task.formula(plain, self._numbers)
            news.append(inside_only(task.old, after, place))
            others.append(other)
        columns = zip(task.old, zip(*news, strict=True), strict=True)
        parts = [part for was, xs in columns for part in coder.encoded(was, xs, places)]
        parts += [list(xs) for xs in zip(*others, strict=True)]
        for ref, xs in zip(self._results, parts, strict=True):
            for place, x in zip(places, xs, strict=False):  # one scale for all
                _store(ref, place, x, coder.is_ordinary)
        return coder.is_ordinary

    def _exactly(self) -> None:
        """Compute any block, with few registers: once for its scales, then its codes.

        If it needed more registers than ordinary blocks do, these would be slower, too.
        """
        task = self._task
        width = min(CHUNK, task.columns)
        chunks = task.columns // width

        def computed(k: Array) -> tuple[Place, list[Array], list[Array]]:
            place = self._place(k * width, width)
            rest = iter(self._loaded(place))
            plain = [exactly_decoded(x, rest) for x in (*task.old, *task.read)]
            after, others = task.formula(plain, self._numbers)
            return place, inside_only(task.old, after, place), others

        def measure(k: Array, sizes: list[Array]) -> list[Array]:
            _, news, _ = computed(k)
            return exact_sizes(task.old, news, sizes)

        sizes = jax.lax.fori_loop(0, chunks, measure, no_sizes(task.old))

        scales = scales_of(task.old, sizes)

        def write(k: Array, carry: Array) -> Array:
            place, news, others = computed(k)
            parts = exact_codes(task.old, news, scales, self._seeds, place)
            refs = [ref for ref in self._results if ref.shape[1] > 1]
            for ref, x in zip(refs, parts + others, strict=True):
                _store(ref, place, x, None)
            return carry

        jax.lax.fori_loop(0, chunks, write, jnp.int32(0))
        # Not before: the old scales are at the same place, and decode every chunk.
        refs = [ref for ref in self._results if ref.shape[1] == 1]
        for ref, x in zip(refs, scales, strict=True):
            ref[...] = x

    def _place(self, start: int | Array, width: int) -> Place:
        task = self._task
        row, first = self._at[0], self._at[1] + start
        column = jax.lax.broadcasted_iota(jnp.int32, (1, width), 1)
        whole = task.length % task.columns == 0
        inside = None if whole else column + first < task.length
        return Place(start, column, inside, (row, first), task.length)

    def _loaded(self, place: Place) -> list[Array]:
        return [_load(ref, place) for ref in self._sources]


def _as_matrix(shape: tuple[int, ...]) -> tuple[int, int]:
    """The shape as a matrix, whose rows are blocks if these fill the last axis."""
    *_, n = shape
    n = BLOCK if n % BLOCK == 0 else n
    return prod(shape) // n, n


def _is_known(x: Stored) -> bool:
    if isinstance(x, Corrected):
        return x.half.dtype == jnp.bfloat16
    if isinstance(x, Coded):
        return isinstance(x, Signed8 | Unsigned8) and x.dtype == jnp.float32
    return x.dtype in _DTYPES


def _one_device() -> bool:
    """Whether there is one device only: XLA cannot shard a kernel."""
    return jax.device_count() == 1


def _at(ref: Any, place: Place) -> tuple[Any, Array | None]:
    """The part of a block at a place, and which elements are inside the array."""
    from jax.experimental import pallas as pl

    if ref.shape[1] == 1:  # scales
        return ref, None
    return ref.at[:, pl.ds(place.start, place.column.shape[1])], place.inside


def _load(ref: Any, place: Place) -> Array:
    at, inside = _at(ref, place)
    if inside is None:
        return at[...]
    return triton().load(at, mask=inside, other=0)


def _store(ref: Any, place: Place, x: Array, wanted: Array | None) -> None:
    at, mask = _at(ref, place)
    if wanted is not None:
        each = jnp.broadcast_to(wanted, x.shape)
        mask = each if mask is None else mask & each
    if mask is None:
        at[...] = x
    else:
        triton().store(at, x, mask=mask)
