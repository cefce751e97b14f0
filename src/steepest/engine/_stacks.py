"""Matrices of one shape go through a heavy formula together, in one stack.

Twenty products of a stack of a hundred matrices are compiled as twenty products, and
keep an accelerator busy where those of one small matrix would not.
"""

from collections.abc import Callable, Hashable, Sequence
from itertools import pairwise
from math import prod
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType

from ..core import Rule
from ..numerics import sharded_like, wide_dtype
from ._batches import alike
from ._dtypes import mixing, restore, widen
from ._formula import Numbers
from ._templates import shared

# The bytes a stack may take. Beyond a few large matrices nothing is won: on an H200
# twelve of 1600 x 6400, in float32, are each as fast as one of ninety-six.
MOST = 1 << 29
# The matrices in a stack. For the CPU each place in a stack is a loop of its own to
# compile, unless the next stack is just as large. Elsewhere putting more than eight
# together is slower than eight (7.0 ms against 2.8 for all of GPT-2 XL on an H200),
# unless they are small and there are launches to be saved.
ON_CPU, ELSEWHERE, SMALL_ONES = 16, 8, 256
SMALL = 1 << 26  # bytes

Heavy = Callable[[Sequence[Any], Numbers], list[Any]]


def stacks(arrays: Sequence[Any], kinds: Sequence[Hashable]) -> list[list[int]]:
    """The places of matrices that are treated in one stack, and of each other alone.

    Args:
        arrays: each with two axes or more, or `None` for one that is left out. Whether
            a matrix is tall or wide does not matter.
        kinds: what else must be equal.
    """
    rows: dict[Hashable, list[int]] = {}
    for k, (x, kind) in enumerate(zip(arrays, kinds, strict=True)):
        if x is not None:
            _, dtype, where = alike(x)
            alone = AxisType.Explicit in jax.typeof(x).sharding.mesh.axis_types
            key = _lying(x.shape), dtype, where, kind, k if alone else None
            rows.setdefault(key, []).append(k)
    found = []
    for row in rows.values():
        largest = max(arrays[k].size * arrays[k].dtype.itemsize for k in row)
        size = _most(max(largest, 1))
        for part in [row] if len(row) <= size else _by_shape(row, arrays):
            pieces = np.array_split(part, _parts(len(part), size))
            found += [piece.tolist() for piece in pieces]
    return found


def _most(size: int) -> int:
    """How many matrices of so many bytes a stack may have."""
    many = ON_CPU
    if jax.default_backend() != "cpu":
        many = max(ELSEWHERE, min(SMALL_ONES, SMALL // size))
    return max(1, min(many, MOST // size))


def _by_shape(row: Sequence[int], arrays: Sequence[Any]) -> list[list[int]]:
    """Tall ones and wide ones apart: to turn a large matrix is a pass over it."""
    shapes = dict.fromkeys(arrays[k].shape for k in row)
    return [[k for k in row if arrays[k].shape == shape] for shape in shapes]


def _parts(n: int, most: int) -> int:
    """In how many stacks to put `n` matrices: equal ones, if twice as many suffice."""
    least = -(-n // most)
    return next((k for k in range(least, min(2 * least, n) + 1) if n % k == 0), least)


def stacking(rule: Rule, names: tuple[str, ...], dtype: Any) -> Heavy:
    """The heavy formula of `rule`, for arrays that `stacks` has put together.

        ([x, ...], numbers) -> [u, ...]

    Where tall and wide matrices share a stack, the tall ones are laid on their sides,
    and their results set up again. Of more than two axes the last two are a matrix's.

    Args:
        rule: one with a heavy formula.
        names: those of its numbers.
        dtype: what the results are returned in; `None` to leave them wide.
    """
    return shared(_stacking, (rule.name, names, dtype), rule.heavy)


def _stacking(layout: tuple[str, tuple[str, ...], Any], heavy: Any) -> Heavy:
    """`stacking`, of the heavy formula and what else it needs to know."""
    rule, names, dtype = layout

    def one(x: Any, numbers: Numbers) -> Any:
        pairs = zip(names, numbers, strict=True)
        n = SimpleNamespace(**{name: widen(a, wide_dtype([x])) for name, a in pairs})
        with mixing([x]), jax.named_scope(rule):
            return heavy(n, x)

    def stack(xs: Sequence[Any], numbers: Numbers) -> list[Any]:
        if len(xs) == 1 and xs[0].ndim == 2:
            return [one(xs[0], numbers)]
        shapes = {x.shape[-2:] for x in xs}
        m, n = shapes.pop() if len(shapes) == 1 else _lying(xs[0].shape)
        turned = lambda x, like: x if like.shape[-2:] == (m, n) else x.mT
        sizes = [prod(x.shape[:-2]) for x in xs]
        pairs = zip(xs, sizes, strict=True)
        rows = [turned(x, x).reshape(size, m, n) for x, size in pairs]
        ends = np.cumsum([0, *sizes])
        found = jax.vmap(one, (0, None))(jnp.concatenate(rows), numbers)
        return [
            turned(found[a:b], x).reshape(x.shape)
            for (a, b), x in zip(pairwise(ends.tolist()), xs, strict=True)
        ]

    def each(xs: Sequence[Any], numbers: Numbers) -> list[Any]:
        if len(xs) > 1:
            found = stack(xs, numbers)
        else:
            alone = lambda x, numbers: stack([x], numbers)[0]
            found = [sharded_like(xs[0], alone, xs[0], numbers)]
        return found if dtype is None else [restore(u, dtype) for u in found]

    return each


def _lying(shape: tuple[int, ...]) -> tuple[int, int]:
    """Rows and columns of a matrix that lies on its longer side."""
    m, n = sorted(shape[-2:])
    return m, n
