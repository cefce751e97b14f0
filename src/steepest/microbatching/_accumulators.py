"""How the results of small pieces become the result of the whole."""

import dataclasses
import enum
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import PyTree

from .. import check
from ..numerics import at_least_float32


class AccumulationType(enum.Enum):
    """The ways there are by name."""

    MEAN = enum.auto()  # the sum over the pieces, over how many there are
    SUM = enum.auto()  # the sum over the pieces
    RUNNING_MEAN = enum.auto()  # the mean of those that were run
    CONCAT = enum.auto()  # one after the other, in the order of the batch

    @classmethod
    def _missing_(cls, value: object) -> None:
        names = ", ".join(way.name for way in cls)
        raise ValueError(
            f"AccumulationType: {value!r} is none, expected one of: {names}. Write "
            "`AccumulationType.SUM`."
        )


@dataclasses.dataclass(frozen=True)
class Accumulator:
    """A way of one's own.

    Args:
        init: from the shape and dtype of one result to the memory before the first.
        update: (memory, result, number of the piece) -> memory.
        finalize: memory -> what is returned.
        aggregate: from the results for each example of a piece, stacked along axis 0,
            to one result. Only `micro_vmap` and `micro_grad` need it.
    """

    init: Callable[[PyTree], PyTree]
    update: Callable[[PyTree, PyTree, Any], PyTree]
    finalize: Callable[[PyTree], PyTree]
    aggregate: Callable[[PyTree], PyTree]

    def __post_init__(self) -> None:
        parts = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        check.function("Accumulator", **parts)


def accumulator_for(name: str, way: Any, shapes: PyTree, pieces: int) -> Accumulator:
    """The accumulator for results of these shapes.

    Args:
        name: name used in error messages.
        way: an `AccumulationType` or an `Accumulator`.
        shapes: the shape and dtype of each array of one result.
        pieces: how many microbatches there are.
    """
    if isinstance(way, Accumulator):
        return way
    aggregate = aggregate_for(name, way)
    if way is AccumulationType.CONCAT:
        return Accumulator(
            init=_each(lambda s: jnp.zeros((pieces, *s.shape), s.dtype)),
            update=lambda memory, x, i: jax.tree.map(
                lambda m, x: m.at[i].set(x), memory, x
            ),
            finalize=_each(_in_order),
            aggregate=aggregate,
        )
    if way is AccumulationType.SUM:
        last = lambda total: total
    else:
        _check_floating(name, way, shapes)
        last = lambda total: total / max(pieces, 1)
    running = way is AccumulationType.RUNNING_MEAN

    def update(memory: PyTree, x: PyTree, i: Any) -> PyTree:
        def add(m: Any, x: Any) -> Any:
            x = jnp.asarray(x, m.dtype)
            return m + (x - m) / (i + 1).astype(m.dtype) if running else m + x

        return jax.tree.map(add, memory, x)

    def finalize(memory: PyTree) -> PyTree:
        return jax.tree.map(
            lambda m, s: (m if running else last(m)).astype(s.dtype), memory, shapes
        )

    # In half precision a sum of 256 and 1 is 256: it is kept in float32.
    start = lambda s: at_least_float32(jnp.zeros(s.shape, s.dtype))
    return Accumulator(_each(start), update, finalize, aggregate)


def aggregate_for(name: str, way: Any) -> Callable[[PyTree], PyTree]:
    """From stacked results for each example of a piece to one result.

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


def _each(f: Callable[[Any], Any]) -> Callable[[PyTree], PyTree]:
    return lambda tree: jax.tree.map(f, tree)


def _in_order(stacked: Any) -> Any:
    """Undo `reshape_batch_axis`: `k` in piece `i` of `n` was number `k n + i`."""
    if stacked.ndim < 2:
        return stacked
    n, size, *rest = stacked.shape
    return stacked.swapaxes(0, 1).reshape(n * size, *rest)


def _check_floating(name: str, way: AccumulationType, shapes: PyTree) -> None:
    for path, s in jax.tree_util.tree_leaves_with_path(shapes):
        if not jnp.issubdtype(s.dtype, jnp.floating):
            where = jax.tree_util.keystr(path) or "(the result itself)"
            raise ValueError(
                f"{name}: leaf {where} of the result is {s.dtype}, and {way.name} "
                "wants real numbers. Return floats, or accumulate it by SUM or CONCAT."
            )
