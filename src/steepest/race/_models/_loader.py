"""Reads batches from a loader, ahead of the race.

A loader is any iterable of batches, or a function that returns one.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from .._arrays import narrowed
from .._hoist import size
from .._memory import available, told

_KINDS = jnp.number, jnp.bool_
_NUMBERS = bool, int, float, complex, np.number, np.bool_


class Batches(NamedTuple):
    """Batches that were read.

    Attributes:
        arrays: all batches, stacked along a new first axis.
        count: number of batches.
        full: whether reading stopped because the buffer was full.
        rest: a last, smaller batch; `None` if there was none.
    """

    arrays: PyTree
    count: int
    full: bool
    rest: PyTree


def is_loader(data: object) -> bool:
    """Whether it is a loader: neither an array nor a dict or tuple of arrays.

    Args:
        data: anything.
    """
    # A Hugging Face dataset has a shape, but no dtype.
    if isinstance(data, dict | tuple) or hasattr(data, "dtype"):
        return False
    return callable(data) or isinstance(data, Iterable) or hasattr(data, "__getitem__")


def read(name: str, loader: Any, most: int | None, limit: int, size: int) -> Batches:
    """Read batches into host memory.

    Args:
        name: of the function and its argument, for errors.
        loader: a loader.
        most: maximum number of batches; `None` if it must be read to its end.
        limit: size of the buffer in bytes.
        size: rows of a batch, for a Hugging Face dataset, which has rows only.
    """
    batches = _batches(name, loader, size)
    first = next(batches, None)
    if first is None:
        raise ValueError(f"{name} gave no batches. Check that it is not used up.")
    buffer = _Buffer(name, first, most, limit)
    for k, batch in enumerate(islice(batches, buffer.room - 1)):
        buffer.add(k + 1, batch)
    if most is None and buffer.count == buffer.room and next(batches, None) is not None:
        raise MemoryError(
            f"{name} did not end within {told(limit)}. Pass a finite loader, such as "
            "`itertools.islice(loader, 20)`, or a larger `buffer_bytes`."
        )
    return buffer.result(full=buffer.count == buffer.room != most)


def to_arrays(name: str, x: Any) -> PyTree:
    """Convert a batch, or a whole data set, to a pytree of arrays.

    Args:
        name: of the function and its argument, for errors.
        x: dicts, tuples and lists of NumPy or JAX arrays, torch tensors or numbers.
    """
    if isinstance(x, dict):
        return {key: to_arrays(f"{name}[{key!r}]", value) for key, value in x.items()}
    if isinstance(x, tuple | list) and not _only_numbers(x):
        values = [to_arrays(f"{name}[{k}]", value) for k, value in enumerate(x)]
        return type(x)(*values) if hasattr(x, "_fields") else type(x)(values)
    if isinstance(x, jax.Array):
        return x
    detach = getattr(x, "detach", None)  # of a torch tensor, which may be on a device
    x = x if detach is None else detach().cpu()
    try:
        value, why = np.asarray(x), ""
    except (TypeError, ValueError, RuntimeError) as error:
        value, why = None, f" ({error})"
    if value is None or not any(jnp.issubdtype(value.dtype, kind) for kind in _KINDS):
        kind = f" of dtype {x.dtype}" if isinstance(x, np.ndarray) else ""
        raise TypeError(
            f"{name} is a {type(x).__name__}{kind} that cannot be converted to an "
            f"array of numbers{why}. Expected NumPy or JAX arrays, torch tensors or "
            "numbers. Remove such columns, or convert them in the loader."
        )
    return narrowed(name, value)


class _Buffer:
    """Stacked batches. If their number is known, memory is allocated only once."""

    def __init__(self, name: str, first: PyTree, most: int | None, limit: int) -> None:
        self.name, self.count, self.rest = name, 0, None
        self.first = to_arrays(f"{name}: batch 0", first)
        shapes = [np.shape(x) for x in jax.tree.leaves(self.first)]
        if not shapes or () in shapes:
            columns = "(x, y)"
            if isinstance(first, dict) and first:
                columns = "{" + ", ".join(f"{key!r}: ..." for key in first) + "}"
            raise ValueError(
                f"{name} gives {_shapes(self.first)}, expected batches: arrays with "
                "the examples along the first axis. If these are single examples, set "
                "the batch size of the loader, or pass all of them as arrays, "
                f"`{columns}`."
            )
        each = max(1, sum(map(size, jax.tree.leaves(self.first))))
        wanted = limit // each if most is None else min(most, limit // each)
        if wanted < 1:
            raise MemoryError(
                f"{name} gives batches of {told(each)}, but `buffer_bytes` is "
                f"{told(limit)}. Pass a larger `buffer_bytes`."
            )
        self.room = wanted
        free = available(jax.local_devices()[0])
        if most is not None and free is not None and wanted * each > free:
            raise MemoryError(
                f"{name} needs {told(wanted * each)} for {wanted} batches, but only "
                f"{told(free)} are free. Pass a smaller `buffer_bytes`; the batches "
                "then repeat."
            )
        empty = lambda x: np.empty((wanted if most else 1, *x.shape), x.dtype)
        self.arrays = jax.tree.map(empty, self.first)
        self.add(0, first)

    def add(self, k: int, batch: PyTree) -> None:
        """Add one batch; a smaller one is accepted as the last."""
        if self.rest is not None:
            raise self._odd(k - 1, self.rest)
        batch = to_arrays(f"{self.name}: batch {k}", batch)
        if _kinds(batch) != _kinds(self.first):
            if _kinds(batch, 1) != _kinds(self.first, 1):
                raise self._odd(k, batch)
            self.rest = batch
            return
        if self.count == len(jax.tree.leaves(self.arrays)[0]):
            twice = lambda x: np.concatenate([x, np.empty_like(x)])
            self.arrays = jax.tree.map(twice, self.arrays)
        pairs = zip(jax.tree.leaves(self.arrays), jax.tree.leaves(batch), strict=True)
        for whole, x in pairs:
            whole[self.count] = x
        self.count += 1

    def _odd(self, k: int, batch: PyTree) -> ValueError:
        return ValueError(
            f"{self.name}: batch {k} is {_shapes(batch)}, expected "
            f"{_shapes(self.first)} like batch 0. Only the last batch may have fewer "
            "rows: drop smaller ones (`drop_last=True`), or pad the examples to one "
            "shape. A list is a list of batches: pass two arrays as a tuple, `(x, y)`."
        )

    def result(self, full: bool) -> Batches:
        arrays = jax.tree.map(lambda x: x[: self.count], self.arrays)
        return Batches(arrays, self.count, full, self.rest)


def _batches(name: str, loader: Any, size: int) -> Iterator[Any]:
    """Iterate over a loader, a function that makes one, or a Hugging Face dataset."""
    if callable(loader) and not isinstance(loader, Iterable):
        loader = loader()
    by_size: Any = getattr(loader, "iter", None)  # of a Hugging Face dataset
    loader = by_size(batch_size=size) if by_size is not None else loader
    try:
        return iter(loader)
    except TypeError as error:
        raise TypeError(
            f"{name} is a {type(loader).__name__}, expected arrays, an iterable of "
            "batches, or a function without arguments that returns one."
        ) from error


def _only_numbers(x: tuple[Any, ...] | list[Any]) -> bool:
    """Whether a list holds numbers, maybe in lists: a column of Python objects."""
    if not isinstance(x, list) or not x:
        return False
    each: Callable[[Any], bool] = lambda y: (
        isinstance(y, _NUMBERS) or (isinstance(y, list) and _only_numbers(y))
    )
    return each(x[0]) and all(map(each, x))


def _kinds(batch: PyTree, first: int = 0) -> object:
    """Structure, shapes from some axis on, and dtypes."""
    leaves, structure = jax.tree.flatten(batch)
    return structure, [(x.shape[first:], x.dtype) for x in leaves]


def _shapes(batch: PyTree) -> str:
    """Shapes and dtypes on one line."""
    kinds = [jax.typeof(x).str_short() for x in jax.tree.leaves(batch)]
    return ", ".join(kinds[:8]) + (", ..." if kinds[8:] else "") or "nothing"
