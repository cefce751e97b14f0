"""The data of a problem: batches to train on, and a validation set."""

from collections.abc import Callable, Iterator
from math import ceil, inf
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, PyTree

from .._memory import told
from .._values import is_count, is_number
from ._loader import Batches, is_loader, read, to_arrays
from ._repeats import period, shared_rows

# Honest data has a few duplicates. In a loader that was read for more than one epoch,
# most rows occur twice.
_SHARED = 0.1


class Prepared(NamedTuple):
    """The data of a problem, as arrays.

    Attributes:
        data: a dict of the training data and the validation set.
        batches: draws a batch, as for `Problem`.
        batch_size: the number of rows of a batch.
        cycle: number of steps after which the batches repeat, or `None`.
        remarks: what the reader of the results must know.
    """

    data: dict[str, PyTree]
    batches: Callable[..., PyTree]
    batch_size: int
    cycle: int | None
    remarks: tuple[str, ...]


def prepared(
    name: str,
    data: Any,
    validation: Any,
    batch_size: int,
    steps: int,
    buffer_bytes: int,
) -> Prepared:
    """Read the data.

    Args:
        name: of the function, for errors.
        data: arrays, or a loader.
        validation: arrays, a loader, a fraction of `data` to hold out, or `None`.
        batch_size: rows of a batch drawn from arrays.
        steps: number of steps per run.
        buffer_bytes: most bytes to read from a loader.
    """
    sizes = {"batch_size": batch_size, "steps": steps, "buffer_bytes": buffer_bytes}
    for argument, x in sizes.items():
        if not is_count(x):
            raise ValueError(
                f"{name}: {argument} is {x!r}, expected a whole number above 0."
            )
    held_out = _held_out(name, validation)
    if is_loader(data):
        result = _from_loader(name, data, held_out, batch_size, steps, buffer_bytes)
    else:
        result = _from_arrays(name, data, held_out, batch_size)
    if held_out is None:
        own = _validation(name, validation, batch_size, buffer_bytes)
        there, here = (jax.tree.structure(x) for x in (own, result.data["train"]))
        if there != here:
            raise ValueError(
                f"{name}: validation is {there}, expected the structure of the batches "
                f"of data: {here}."
            )
        result.data["validation"] = own
    return result


def mean_over_rows(
    function: Callable[[PyTree], ArrayLike], arrays: PyTree, size: int
) -> Array:
    """The mean of a function over a set, in batches of `size` rows.

    Args:
        function: of a batch, a mean over its rows.
        arrays: the set.
        size: rows of a batch; the last one may have fewer.
    """
    rows = _rows(arrays)
    whole, rest = divmod(rows, size)
    number = lambda batch: jnp.asarray(function(batch)).astype(jnp.result_type(float))
    total = jnp.zeros((), jnp.result_type(float))
    if whole:
        split = lambda x: x[: whole * size].reshape(whole, size, *x.shape[1:])
        total += size * jnp.sum(jax.lax.map(number, jax.tree.map(split, arrays)))
    if rest:
        total += rest * number(jax.tree.map(lambda x: x[whole * size :], arrays))
    return total / rows


class _HeldOut(NamedTuple):
    """How much of the data to hold out: a fraction of the rows, but at most so many."""

    fraction: float
    most: float

    def of(self, rows: int) -> float:
        """The number of rows to hold out."""
        return min(self.fraction * rows, self.most)


# Rows by default: validation must not take longer than training.
_DEFAULT = _HeldOut(0.1, 1000.0)


def _held_out(name: str, validation: Any) -> _HeldOut | None:
    """What to hold out; `None` if there is a validation set."""
    if validation is None:
        return _DEFAULT
    if not is_number(validation):
        return None
    if not 0 < float(validation) < 1:
        raise ValueError(
            f"{name}: validation is {validation}, expected arrays, a loader, or a "
            "fraction between 0 and 1 of the data to hold out."
        )
    return _HeldOut(float(validation), inf)


def _from_arrays(
    name: str, data: Any, held_out: _HeldOut | None, batch_size: int
) -> Prepared:
    arrays = _checked(f"{name}: data", to_arrays(f"{name}: data", data))
    parts = {"train": arrays}
    if held_out is not None:
        many = max(1, round(held_out.of(_rows(arrays))))
        if many >= _rows(arrays):
            raise ValueError(
                f"{name}: data has {_rows(arrays)} rows, and {many} would be held out. "
                "Pass a `validation` set."
            )
        order = np.random.default_rng(0).permutation(_rows(arrays))
        pick = lambda rows: jax.tree.map(lambda x: x[rows], arrays)
        parts = {"train": pick(order[many:]), "validation": pick(order[:many])}
    rows = _rows(parts["train"])
    if batch_size >= rows:
        return Prepared(parts, lambda key, data: data["train"], rows, 1, ())

    def batches(key: Array, data: PyTree) -> PyTree:
        chosen = jax.random.randint(key, (batch_size,), 0, rows)
        return jax.tree.map(lambda x: x[chosen], data["train"])

    return Prepared(parts, batches, batch_size, None, ())


def _from_loader(
    name: str,
    loader: Any,
    held_out: _HeldOut | None,
    batch_size: int,
    steps: int,
    buffer_bytes: int,
) -> Prepared:
    wanted = steps if held_out is None else ceil(steps / (1 - held_out.fraction))
    result = read(f"{name}: data", loader, wanted, buffer_bytes, batch_size)
    # A loader that starts again by itself counts as one that ends. Otherwise the last
    # batches, which are held out, would also be trained on.
    count = period(result.arrays)
    arrays = jax.tree.map(lambda x: x[:count], result.arrays)
    size = _rows(jax.tree.map(lambda x: x[0], arrays))
    remarks = []
    if result.full:
        remarks.append(
            f"The loader was read up to `buffer_bytes`, {told(buffer_bytes)}: "
            f"{result.count} batches instead of {wanted}."
        )
    if result.rest is not None:
        remarks.append(
            f"The last batch of the loader has {_rows(result.rest)} rows instead of "
            f"{size}, and is not used."
        )
    parts = {"train": arrays}
    if held_out is not None:
        many = max(1, int(held_out.of(count * size) / size))
        if many >= count:
            raise ValueError(
                f"{name}: data gave only {_counted(count, result)}, and {many} would "
                "be held out. Pass a `validation` set."
            )
        flat = lambda x: x.reshape(-1, *x.shape[2:])
        parts["train"] = jax.tree.map(lambda x: x[: count - many], arrays)
        held = jax.tree.map(lambda x: flat(x[count - many :]), arrays)
        parts["validation"] = held
        remarks += _leaks(held, jax.tree.map(flat, parts["train"]))
        count -= many

    def batches(key: Array, data: PyTree, step: Any) -> PyTree:
        del key  # the order of the loader, for every seed
        return jax.tree.map(lambda x: x[step % count], data["train"])

    return Prepared(parts, batches, size, count, tuple(remarks))


def _counted(count: int, result: Batches) -> str:
    """How many batches a loader gave, in words."""
    text = "1 batch" if count == 1 else f"{count} batches"
    if count < result.count:
        return f"{text}, again and again"
    if result.rest is None:
        return text
    return f"{text} (the last one, of {_rows(result.rest)} rows, is too small)"


def _leaks(held: PyTree, train: PyTree) -> Iterator[str]:
    """A remark if many held-out rows are also trained on."""
    shared, rows = shared_rows(held, train), _rows(held)
    if shared > _SHARED * rows:
        yield (
            f"{shared} of the {rows} rows held out for validation are also trained on, "
            "so the metric does not show overfitting. Perhaps the loader was read for "
            "more than one epoch. Pass a `validation` set."
        )


def _validation(
    name: str, validation: Any, batch_size: int, buffer_bytes: int
) -> PyTree:
    """The validation set as arrays."""
    name = f"{name}: validation"
    if not is_loader(validation):
        return _checked(name, to_arrays(name, validation))
    result = read(name, validation, None, buffer_bytes, batch_size)
    flat = lambda x: x.reshape(-1, *x.shape[2:])
    arrays = jax.tree.map(flat, result.arrays)
    if result.rest is None:
        return arrays
    join = lambda x, y: np.concatenate([x, y])
    return jax.tree.map(join, arrays, result.rest)


def _checked(name: str, arrays: PyTree) -> PyTree:
    """Check that all arrays have the same number of rows, and return them."""
    shapes = [x.shape for x in jax.tree.leaves(arrays)]
    if not shapes or () in shapes or len({shape[0] for shape in shapes}) > 1:
        raise ValueError(
            f"{name} has arrays of shapes {shapes}, expected one array or more with "
            "the same first axis: one row for each example."
        )
    if shapes[0][0] == 0:
        raise ValueError(f"{name} has no rows, expected one or more.")
    return arrays


def _rows(arrays: PyTree) -> int:
    return jax.tree.leaves(arrays)[0].shape[0]
