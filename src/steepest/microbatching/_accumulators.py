"""Combine the results of microbatches into the result of the batch."""

import dataclasses
import enum
from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, PyTree

from .. import check
from ..numerics import at_least_float32


class AccumulationType(enum.Enum):
    """The built-in ways to accumulate."""

    MEAN = enum.auto()  # the sum over microbatches, divided by their number
    SUM = enum.auto()  # the sum over microbatches
    RUNNING_MEAN = enum.auto()  # the mean over the microbatches that were run
    CONCAT = enum.auto()  # concatenated, in the order of the batch

    @classmethod
    def _missing_(cls, value: object) -> None:
        names = ", ".join(way.name for way in cls)
        raise ValueError(
            f"AccumulationType: got {value!r}, expected one of: {names}. Write "
            "`AccumulationType.SUM`."
        )


@dataclasses.dataclass(frozen=True)
class Accumulator:
    """A custom way to accumulate.

    Args:
        init: shape and dtype of one result -> initial memory.
        update: (memory, result, index of the microbatch) -> memory.
        finalize: memory -> final result.
        aggregate: results for each example of a microbatch, stacked along axis 0 -> one
            result. Only `micro_vmap` and `micro_grad` use it.
    """

    init: Callable[[PyTree], PyTree]
    update: Callable[[PyTree, PyTree, Array], PyTree]
    finalize: Callable[[PyTree], PyTree]
    aggregate: Callable[[PyTree], PyTree]

    def __post_init__(self) -> None:
        parts = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        check.function("Accumulator", **parts)


def accumulator_for(name: str, way: object, shapes: PyTree, count: int) -> Accumulator:
    """The accumulator for results of these shapes.

    Args:
        name: name used in error messages.
        way: an `AccumulationType` or an `Accumulator`.
        shapes: the shape and dtype of each array of one result.
        count: number of microbatches.
    """
    if isinstance(way, Accumulator):
        return way
    aggregate = aggregate_for(name, way)
    if way is AccumulationType.CONCAT:
        return Accumulator(
            init=_each(lambda s: jnp.zeros((count, *s.shape), s.dtype)),
            update=lambda memory, x, i: jax.tree.map(
                lambda m, x: m.at[i].set(x), memory, x
            ),
            finalize=_each(_in_order),
            aggregate=aggregate,
        )
    running = way is AccumulationType.RUNNING_MEAN
    if way is AccumulationType.SUM:
        last = lambda total: total
    else:
        _check_floating(name, "RUNNING_MEAN" if running else "MEAN", shapes)
        last = lambda total: total / max(count, 1)

    def update(memory: PyTree, x: PyTree, i: Array) -> PyTree:
        def add(m: Array, x: ArrayLike) -> Array:
            x = jnp.asarray(x, m.dtype)
            return m + (x - m) / (i + 1).astype(m.dtype) if running else m + x

        return jax.tree.map(add, memory, x)

    def finalize(memory: PyTree) -> PyTree:
        return jax.tree.map(
            lambda m, s: (m if running else last(m)).astype(s.dtype), memory, shapes
        )

    # In bfloat16, 256 + 1 is 256: sums of half precision are kept in float32.
    start = lambda s: at_least_float32(jnp.zeros(s.shape, s.dtype))
    return Accumulator(_each(start), update, finalize, aggregate)


def aggregate_for(name: str, way: object) -> Callable[[PyTree], PyTree]:
    """The function from stacked results, one for each example, to one result.

    Args:
        name: name used in error messages.
        way: an `AccumulationType` or an `Accumulator`.
    """
    if isinstance(way, Accumulator):
        return way.aggregate
    if way is AccumulationType.CONCAT:
        return lambda stacked: stacked
    if way is AccumulationType.SUM:
        return _each(lambda x: jnp.sum(x, axis=0))
    if way in (AccumulationType.MEAN, AccumulationType.RUNNING_MEAN):
        return _each(lambda x: jnp.mean(x, axis=0))
    raise ValueError(
        f"{name}: accumulator is {way!r}, expected an `AccumulationType` or an "
        "`Accumulator`, or a tree of these."
    )


def _each(f: Callable[..., Array]) -> Callable[[PyTree], PyTree]:
    return lambda tree: jax.tree.map(f, tree)


def _in_order(stacked: Array) -> Array:
    """Undo `reshape_batch_axis`: example `k` of microbatch `i` of `n` was `k n + i`."""
    if stacked.ndim < 2:
        return stacked
    n, size, *rest = stacked.shape
    return stacked.swapaxes(0, 1).reshape(n * size, *rest)


def _check_floating(name: str, way: str, shapes: PyTree) -> None:
    for path, s in jax.tree_util.tree_leaves_with_path(shapes):
        if not jnp.issubdtype(s.dtype, jnp.floating):
            where = jax.tree_util.keystr(path) or "(the result itself)"
            raise ValueError(
                f"{name}: leaf {where} of the result is {s.dtype}, expected real "
                f"numbers for {way}. Return floats, or accumulate with SUM or "
                "CONCAT."
            )
