"""Which transformations handle each leaf, how much memory they keep, and their work."""

from dataclasses import dataclass
from math import prod
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.core import Tracer
from jax.sharding import NamedSharding
from jax.typing import ArrayLike
from jaxtyping import PyTree

from ..core import AnyTransformation, as_inner, Params
from ..engine import (
    flops,
    handlers,
    kept_wide,
    Leaves,
    notes,
    placed_shapes,
    resharded,
    unresolved,
    unstacked,
)
from ..numerics import Coded, is_coded
from ..tree import owner_of
from ._groups import groups_of

_NUMBERS = 2  # the last columns of the table are aligned to the right


class LeafDescription(NamedTuple):
    """One leaf of the params."""

    path: str
    shape: tuple[int, ...]
    dtype: str
    handled_by: tuple[str, ...]  # the transformations applied to it, in order
    memory: tuple[str, ...]  # the dtypes, or codes, of the arrays kept for it
    bytes: int  # the size of those arrays
    groups: tuple[str, ...] = ()  # the labels of its groups, outermost first
    why: str = ""  # why it is in the innermost group, if the optimizer chose that
    # The floating-point operations for it in an average step; `None` if not known.
    flops: float | None = None
    # Why some of its memory is not in few bits, if `memory_dtype` is "int8" or so.
    stays_wide: str = ""
    # How its memory is sharded, if the params are on a mesh.
    sharding: tuple[str, ...] = ()
    # With `reshard`: whether the devices share its stack of matrices, or why not.
    reshard: str = ""


@dataclass(frozen=True)
class Description:
    """The optimizer, a line for each leaf, and the totals. Print it to see a table."""

    lines: tuple[LeafDescription, ...]
    param_bytes: int
    shared_bytes: int  # kept once for the tree: counts, numbers, keys, padding
    optimizer: str = ""  # the call that makes it, with all its arguments
    warnings: tuple[str, ...] = ()  # leaves that cannot register their steps
    notes: tuple[str, ...] = ()  # such as leaves that `zero` cannot shard

    @property
    def state_bytes(self) -> int:
        """The size of the whole state."""
        return sum(line.bytes for line in self.lines) + self.shared_bytes

    @property
    def flops(self) -> float:
        """The floating-point operations for all leaves in an average step."""
        return sum((line.flops or 0.0 for line in self.lines), 0.0)

    def __str__(self) -> str:
        head = (
            "leaf",
            "shape",
            "dtype",
            "group",
            "why",
            "handled by",
            "memory",
            "stays wide",
            "sharding",
            "reshard",
            "bytes",
            "per step",
        )
        rows = _without_empty_columns([head, *map(_cells, self.lines)])
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        text = [_aligned(row, widths) for row in rows]
        text.insert(1, "-" * len(text[0]))
        per_byte = self.state_bytes / max(self.param_bytes, 1)
        return "\n".join(
            [
                *text,
                f"{len(self.lines)} leaves, {_size(self.param_bytes)} of params, "
                f"{_size(self.state_bytes)} of state ({per_byte:.2f} times the params),"
                f" {_size(self.shared_bytes)} of it shared by all leaves, "
                f"{_work(self.flops)} per step",
                self.optimizer,
                *(f"warning: {text}" for text in self.warnings),
                *(f"note: {text}" for text in self.notes),
            ]
        )


def describe(tx: AnyTransformation, params: Params) -> Description:
    """Show which transformations handle each leaf, their memory and their work.

    No arrays are allocated, and no step is run: floating-point operations are counted
    in the traced formulas. The gradient of a model is far more work: about 6 operations
    for each param and token.

    On a mesh, it also shows how the memory of each leaf is sharded: see `shardings`.
    With `reshard`, it shows which matrices the devices share: see `keeping`.

    A warning follows for bfloat16 and float16 params that are too coarse for the
    learning rate, if `params` are arrays.

    Args:
        tx: any transformation.
        params: the params, or their shapes (`jax.eval_shape` of the function that makes
            them).

    >>> import jax.numpy as jnp, jax, steepest
    >>> shapes = {"w": jax.ShapeDtypeStruct((512, 512), jnp.bfloat16)}
    >>> description = steepest.describe(steepest.adamw(1e-3), shapes)
    >>> description.lines[0].memory, description.state_bytes
    (('bfloat16', 'float32'), 1572868)
    >>> description = steepest.describe(steepest.muon(1e-3), shapes)
    >>> print(description.lines[0].handled_by[0], round(description.flops / 512**3))
    scale_by_polar 30
    """
    tx = as_inner("describe", "tx", tx)
    rows = jax.tree_util.tree_leaves_with_path(params)
    owners = {path: k for k, (path, _) in enumerate(rows)}
    kept: list[list[jax.ShapeDtypeStruct | Coded]] = [[] for _ in rows]
    placed: list[list[str]] = [[] for _ in rows]
    state, specs = _state(tx, params)
    flat = jax.tree_util.tree_leaves_with_path(unstacked(state), is_leaf=is_coded)
    # With `reshard`, copies of a matrix may fill a stack.
    whole = jax.tree.leaves(state, is_leaf=is_coded)
    shared = sum(map(_bytes, whole)) - sum(_bytes(x) for _, x in flat)
    for (path, x), where in zip(flat, specs or [""] * len(flat), strict=True):
        k = owner_of(path, owners)
        # If the params are a single array, its path is empty and matches every path.
        if k is None or (not rows[0][0] and x.shape != jnp.shape(rows[0][1])):
            shared += _bytes(x)
        else:
            kept[k].append(x)
            placed[k].append(where)
    arrays = Leaves(params).arrays
    known = zip(
        handlers(tx, params),
        groups_of(tx, params),
        flops(tx, params),
        kept_wide(tx, params),
        resharded(tx, params),
        arrays,
        strict=True,
    )
    handled = [(*row[:-1],) for row in known if row[-1] is not None]
    lines = [
        LeafDescription(
            jax.tree_util.keystr(path) or "(the tree itself)",
            jnp.shape(p),
            str(jnp.result_type(p)),
            tuple(by),
            tuple(sorted({_stored_dtype(x) for x in mine})),
            sum(map(_bytes, mine)),
            *group,
            flops=work,
            stays_wide=wide,
            sharding=tuple(sorted({*filter(None, places)})),
            reshard=shared_by,
        )
        for (path, p), (by, group, work, wide, shared_by), mine, places in zip(
            rows, handled, kept, placed, strict=True
        )
    ]
    size = sum(_bytes(p) for _, p in rows)
    coarse = tuple(map(str, unresolved(tx, params)))
    rest = tuple(notes(tx, params))
    return Description(tuple(lines), size, shared, repr(tx), coarse, rest)


def _state(tx: AnyTransformation, params: Params) -> tuple[PyTree, list[str]]:
    """The shapes of the state, and the sharding of each array of its leaves.

    The second is empty if the params are on no mesh.
    """
    leaves = jax.tree.leaves(params)
    on_mesh = lambda x: isinstance(getattr(x, "sharding", None), NamedSharding)
    if any(isinstance(x, Tracer) for x in leaves) or not any(map(on_mesh, leaves)):
        return jax.eval_shape(tx.init, params), []
    placed = placed_shapes(tx, params)
    where = unstacked(jax.tree.map(lambda x: x.sharding, placed), whole=True)
    where = jax.tree.leaves(where, is_leaf=is_coded)
    specs = [str((x.codes if isinstance(x, Coded) else x).spec) for x in where]
    shape = lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype)
    return jax.tree.map(shape, placed), specs


def _stored_dtype(x: jax.ShapeDtypeStruct | Coded) -> str:
    return x.kind if isinstance(x, Coded) else str(x.dtype)


def _bytes(x: ArrayLike | jax.ShapeDtypeStruct | Coded) -> int:
    if isinstance(x, Coded):
        return _bytes(x.codes) + _bytes(x.scales)
    return prod(jnp.shape(x)) * jnp.result_type(x).itemsize


def _cells(line: LeafDescription) -> tuple[str, ...]:
    shape = "x".join(map(str, line.shape)) or "scalar"
    memory = ", ".join(line.memory) or "nothing"
    handled = ", ".join(line.handled_by) or "nothing"
    group = " > ".join(line.groups)
    size, work = _size(line.bytes), _work(line.flops)
    return (
        line.path,
        shape,
        line.dtype,
        group,
        line.why,
        handled,
        memory,
        line.stays_wide,
        ", ".join(line.sharding),
        line.reshard,
        size,
        work,
    )


def _without_empty_columns(rows: list[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """The table without columns that are empty below the head."""
    columns = [column for column in zip(*rows, strict=True) if any(column[1:])]
    return list(zip(*columns, strict=True))


def _aligned(row: tuple[str, ...], widths: list[int]) -> str:
    pairs = list(zip(row, widths, strict=True))
    words = [x.ljust(n) for x, n in pairs[:-_NUMBERS]]
    return "  ".join([*words, *(x.rjust(n) for x, n in pairs[-_NUMBERS:])])


def _work(flops: float | None) -> str:
    """12_100_000_000 -> '12.1 GFLOP'."""
    if flops is None:
        return "unknown"
    for unit in ("FLOP", "kFLOP", "MFLOP", "GFLOP", "TFLOP", "PFLOP"):
        if flops < 1000 or unit == "PFLOP":
            break
        flops /= 1000
    return f"{flops:.0f} {unit}" if unit == "FLOP" else f"{flops:.1f} {unit}"


def _size(count: int | float) -> str:
    """1536 -> '1.5 KiB'."""
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if count < 1024 or unit == "TiB":
            break
        count /= 1024
    return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
