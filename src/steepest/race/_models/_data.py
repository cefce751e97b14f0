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
_MOST_COMPARED = 1_000_000  # rows; comparing them takes 2 s


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
        train = result.data["train"]
        train = jax.tree.map(_flat, train) if is_loader(data) else train
        own = result.data["validation"] = _alike(name, own, train)
        remarks = _shared(own, train, "of `validation`", "Pass other rows.")
        result = result._replace(remarks=(*result.remarks, *remarks))
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
    parts, remarks = {"train": arrays}, ()
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
        advice = "The data has rows more than once. Pass a `validation` set."
        held = "held out for validation"
        remarks = tuple(_shared(parts["validation"], parts["train"], held, advice))
    rows = _rows(parts["train"])
    if batch_size >= rows:
        return Prepared(parts, lambda key, data: data["train"], rows, 1, remarks)

    def batches(key: Array, data: PyTree) -> PyTree:
        chosen = jax.random.randint(key, (batch_size,), 0, rows)
        return jax.tree.map(lambda x: x[chosen], data["train"])

    return Prepared(parts, batches, batch_size, None, remarks)


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
        parts["train"] = jax.tree.map(lambda x: x[: count - many], arrays)
        held = jax.tree.map(lambda x: _flat(x[count - many :]), arrays)
        parts["validation"] = held
        remarks += _shared(
            held,
            jax.tree.map(_flat, parts["train"]),
            "held out for validation",
            "Perhaps the loader was read for more than one epoch. Pass a `validation` "
            "set.",
        )
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


def _shared(held: PyTree, train: PyTree, name: str, advice: str) -> Iterator[str]:
    """A remark if many rows of the validation set are also trained on."""
    if _rows(train) > _MOST_COMPARED:
        return
    shared, rows = shared_rows(held, train), _rows(held)
    if shared > _SHARED * rows:
        yield (
            f"{shared} of the {rows} rows {name} are also trained on, so the metric "
            f"shows less overfitting than there is. {advice}"
        )


def _alike(name: str, own: PyTree, train: PyTree) -> PyTree:
    """The validation set, after checks, in the structure of the training data."""
    there, here = (jax.tree.structure(x) for x in (own, train))
    if _tuples(own) != _tuples(train):
        raise ValueError(
            f"{name}: validation is {_told(there)}, expected the structure of the "
            f"batches of data: {_told(here)}."
        )
    own = jax.tree.unflatten(here, jax.tree.leaves(own))
    pairs = zip(jax.tree.leaves_with_path(own), jax.tree.leaves(train), strict=True)
    for (path, x), y in pairs:
        if x.ndim != y.ndim:  # might broadcast
            raise ValueError(
                f"{name}: validation{jax.tree_util.keystr(path)} has shape {x.shape}, "
                f"expected as many axes as in data: {(x.shape[0], *y.shape[1:])}."
            )
    return own


def _tuples(x: PyTree) -> PyTree:
    """The structure without the difference of lists and tuples; loaders give either."""
    if isinstance(x, dict):
        return {key: _tuples(value) for key, value in x.items()}
    return tuple(map(_tuples, x)) if isinstance(x, tuple | list) else None


def _told(structure: Any) -> str:
    return str(structure).removeprefix("PyTreeDef(").removesuffix(")")


def _validation(
    name: str, validation: Any, batch_size: int, buffer_bytes: int
) -> PyTree:
    """The validation set as arrays."""
    name = f"{name}: validation"
    if not is_loader(validation):
        return _checked(name, to_arrays(name, validation))
    result = read(name, validation, None, buffer_bytes, batch_size)
    arrays = jax.tree.map(_flat, result.arrays)
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


def _flat(batches: Any) -> Any:
    """The rows of stacked batches."""
    return batches.reshape(-1, *batches.shape[2:])


def _rows(arrays: PyTree) -> int:
    return jax.tree.leaves(arrays)[0].shape[0]
