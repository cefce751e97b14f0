"""Run a function of a large batch on one microbatch after the other."""

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax.tree_util import KeyPath
from jaxtyping import Array, PyTree

from .. import check
from ..core import Real
from ._accumulators import AccumulationType, Accumulator, accumulator_for
from ._checks import check_call, check_tree, integers, is_array, is_none, strings

Way: TypeAlias = Accumulator | AccumulationType | PyTree  # or a tree of these


def reshape_batch_axis(tree: PyTree, microbatch_size: int, axis: int = 0) -> PyTree:
    """Split the batch axis into two: microbatches, and examples of a microbatch.

    A batch of `n * microbatch_size` becomes `n` microbatches; microbatch `i` has the
    examples `i`, `i + n`, `i + 2 n`, ... They are far apart, so that on several devices
    each device keeps its own examples.

    Args:
        tree: a tree of arrays.
        microbatch_size: number of examples in a microbatch.
        axis: the batch axis of each array.

    >>> import jax.numpy as jnp
    >>> reshape_batch_axis(jnp.arange(6), 2).tolist()
    [[0, 3], [1, 4], [2, 5]]
    """

    def cut(path: KeyPath, x: Any) -> Array | np.ndarray:
        if not hasattr(x, "shape"):
            raise check.WrongArgument(
                f"{name}: leaf {_name(path)} {check.kind(x)}, expected an array."
            )
        at = axis if axis >= 0 else axis + x.ndim
        if not 0 <= at < x.ndim or x.shape[at] % microbatch_size:
            raise TypeError(
                f"{name}: leaf {_name(path)} has shape {x.shape}, expected an axis "
                f"{axis} whose size is divisible by {microbatch_size}."
            )
        n = x.shape[at] // microbatch_size
        shape = (*x.shape[:at], microbatch_size, n, *x.shape[at + 1 :])
        return x.reshape(shape).swapaxes(at, at + 1)

    name = "reshape_batch_axis"
    check.period(name, microbatch_size=microbatch_size)
    integers(name, axis=axis)
    return jax.tree_util.tree_map_with_path(cut, tree)


def microbatch(
    fun: Callable[..., PyTree],
    argnums: int | Sequence[int],
    microbatch_size: int | None,
    accumulator: Way = AccumulationType.SUM,
    *,
    argnames: str | Sequence[str] = (),
    in_axes: PyTree = 0,
    num_real_microbatches: Real | None = None,
) -> Callable[..., PyTree]:
    """Run `fun` on one microbatch after the other, which needs less memory.

    Args:
        fun: any function of batches and perhaps other arguments.
        argnums: which positional arguments are batches.
        microbatch_size: number of examples in a microbatch; `None` returns `fun`.
        accumulator: how to combine the results: an `AccumulationType`, an
            `Accumulator`, or a tree of them that is a prefix of the result of `fun`.
        argnames: which keyword arguments are batches.
        in_axes: the batch axis: a number, or one for each batch, in the order of
            `argnums` and then `argnames`; each may be a tree, with `None` for arrays
            without a batch axis.
        num_real_microbatches: number of microbatches to run; the others are padding.

    >>> import jax.numpy as jnp
    >>> total = microbatch(lambda w, x: w * x.sum(), argnums=1, microbatch_size=2)
    >>> float(total(2.0, jnp.arange(6.0)))
    30.0
    """
    return in_pieces(
        "microbatch",
        fun,
        argnums,
        microbatch_size,
        accumulator,
        argnames,
        in_axes,
        num_real_microbatches,
    )


def in_pieces(
    name: str,
    fun: Callable[..., PyTree],
    argnums: int | Sequence[int],
    microbatch_size: int | None,
    accumulator: Way,
    argnames: str | Sequence[str],
    in_axes: PyTree,
    num_real_microbatches: Real | None,
) -> Callable[..., PyTree]:
    """`microbatch`, with the name used in error messages."""
    check_call(name, fun, microbatch_size, num_real_microbatches)
    numbers, names = integers(name, argnums=argnums), strings(name, argnames=argnames)
    if microbatch_size is None:
        return fun
    size = int(microbatch_size)

    @functools.wraps(fun)
    def microbatched(*args: PyTree, **kwargs: PyTree) -> PyTree:
        batches = _batches(name, args, kwargs, numbers, names)
        axes = _axes(name, batches, in_axes)
        count = _count(name, batches, axes, size)
        cut = [
            jax.tree.map(lambda x, a: _cut(x, a, size), batch, axis)
            for batch, axis in zip(batches, axes, strict=True)
        ]

        def run(i: Array) -> PyTree:
            these = [
                jax.tree.map(lambda x, a: _pick(x, a, i), *pair)
                for pair in zip(cut, axes, strict=True)
            ]
            positional, named = _replaced(args, kwargs, numbers, names, these)
            return fun(*positional, **named)

        shapes = jax.eval_shape(run, jnp.zeros((), jnp.int32))
        check_tree(name, "accumulator", accumulator, "result", shapes)
        ways = jax.tree.map(
            lambda way, s: accumulator_for(name, way, s, count), accumulator, shapes
        )

        def step(i: Array, memory: PyTree) -> PyTree:
            result = run(i)
            return jax.tree.map(lambda w, m, x: w.update(m, x, i), ways, memory, result)

        memory = jax.tree.map(lambda w, s: w.init(s), ways, shapes)
        real = _real(name, num_real_microbatches, count)
        if not (isinstance(real, int) and real == 0):
            memory = jax.lax.fori_loop(0, real, step, memory)
        return jax.tree.map(lambda w, m: w.finalize(m), ways, memory)

    return microbatched


_NONE = -(2**31)  # stands for no axis: `None` would not be a leaf


def _batches(
    name: str,
    args: Sequence[PyTree],
    kwargs: Mapping[str, PyTree],
    numbers: Sequence[int],
    keys: Sequence[str],
) -> list[PyTree]:
    """The arguments that are batches."""
    for n in numbers:
        if not -len(args) <= n < len(args):
            raise IndexError(
                f"{name}: argnums has {n}, but there are {len(args)} positional "
                "arguments. Pass the batch by position, or name it in `argnames`."
            )
    for key in keys:
        if key not in kwargs:
            raise KeyError(
                f"{name}: argnames has {key!r}, but there is no such keyword argument. "
                "Pass the batch by keyword, or put its position in `argnums`."
            )
    return [args[n] for n in numbers] + [kwargs[key] for key in keys]


def _replaced(
    args: Sequence[PyTree],
    kwargs: Mapping[str, PyTree],
    numbers: Sequence[int],
    keys: Sequence[str],
    batches: list[PyTree],
) -> tuple[list[PyTree], dict[str, PyTree]]:
    """The arguments, with these batches in place of the whole ones."""
    positional = list(args)
    for n, batch in zip(numbers, batches, strict=False):
        positional[n] = batch
    named = zip(keys, batches[len(numbers) :], strict=True)
    return positional, {**kwargs, **dict(named)}


def _axes(name: str, batches: list[PyTree], in_axes: PyTree) -> list[PyTree]:
    """For each batch, a tree with the batch axis of each array."""
    one_for_each = isinstance(in_axes, list | tuple)
    axes = list(in_axes) if one_for_each else [in_axes] * len(batches)
    if len(axes) != len(batches):
        raise ValueError(
            f"{name}: in_axes has {len(axes)} entries, expected one for each of the "
            f"{len(batches)} batches."
        )

    def spread(axis: int | None, part: PyTree) -> PyTree:
        def of(x: Any) -> int:
            if axis is None:
                return _NONE
            return axis + jnp.ndim(x) if axis < 0 else axis

        return jax.tree.map(of, part)

    for axis, batch in zip(axes, batches, strict=True):
        check_tree(name, "in_axes", axis, "batch", batch)
    for axis in jax.tree.leaves(axes):
        integers(name, in_axes=axis)
    return [
        jax.tree.map(spread, axis, batch, is_leaf=is_none)
        for axis, batch in zip(axes, batches, strict=True)
    ]


def _count(name: str, batches: list[PyTree], axes: list[PyTree], size: int) -> int:
    """The number of microbatches of this size."""
    sizes = []
    leaves = jax.tree_util.tree_leaves_with_path(batches)
    for (path, x), axis in zip(leaves, jax.tree.leaves(axes), strict=True):
        if axis == _NONE:
            continue
        if not is_array(x):
            raise check.WrongArgument(
                f"{name}: leaf {_name(path)} of the batches {check.kind(x)}, "
                "expected an array."
            )
        if not 0 <= axis < jnp.ndim(x):
            raise ValueError(
                f"{name}: leaf {_name(path)} of the batches has shape {jnp.shape(x)}, "
                f"expected an axis {axis}. Leave it out of the batch, or pass `None` "
                "in `in_axes`."
            )
        sizes.append(jnp.shape(x)[axis])
    if not sizes:
        raise ValueError(
            f"{name}: there is no batch. Select one with `argnums` or `argnames`."
        )
    if len(set(sizes)) > 1:
        raise ValueError(
            f"{name}: the batches have sizes {sizes}, expected equal sizes."
        )
    if sizes[0] % size:
        raise ValueError(
            f"{name}: the batch has {sizes[0]} examples, which is not divisible by "
            f"microbatch_size, {size}. Pad the batch, or choose another size."
        )
    return sizes[0] // size


def _cut(x: object, axis: int, size: int) -> object:
    return x if axis == _NONE else reshape_batch_axis(jnp.asarray(x), size, axis)


def _pick(x: Any, axis: int, i: Array) -> object:
    if axis == _NONE:
        return x
    if x.shape[axis] == 0:  # an empty batch has only a shape
        return jnp.zeros(x.shape[:axis] + x.shape[axis + 1 :], x.dtype)
    return jax.lax.dynamic_index_in_dim(x, i, axis, keepdims=False)


def _real(name: str, real: Real | None, count: int) -> int | Array:
    """The number of microbatches to run."""
    if real is None:
        return count
    if isinstance(real, jax.Array):
        return jnp.minimum(real, count)
    if not 0 <= real <= count:
        raise ValueError(
            f"{name}: num_real_microbatches is {real}, expected a whole number from 0 "
            f"to {count}, the number of microbatches."
        )
    return int(real)


def _name(path: KeyPath) -> str:
    return jax.tree_util.keystr(path) or "(the tree itself)"
