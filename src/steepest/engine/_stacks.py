"""Matrices of one shape go through a heavy formula together, in one stack.

Twenty products of a stack of a hundred matrices are compiled as twenty products, and
keep an accelerator busy where those of one small matrix would not.
"""

from collections.abc import Callable, Hashable, Sequence
from itertools import pairwise
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
from ._formula import fingerprint, Numbers, shared

# The bytes a stack may take. Beyond a few large matrices nothing is won: on an H200
# twelve of 1600 x 6400, in float32, are each as fast as one of ninety-six.
MOST = 1 << 29
# The matrices in a stack. For the CPU each place in a stack is a loop of its own to
# compile, unless the next stack is just as large.
MANY = {"cpu": 32, "else": 256}

Heavy = Callable[[Sequence[Any], Numbers], list[Any]]


def stacks(arrays: Sequence[Any], dtypes: Sequence[Hashable]) -> list[list[int]]:
    """The places of matrices that are treated in one stack, and of each other alone.

    Args:
        arrays: each with two axes or more, or `None` for one that is left out.
        dtypes: what their results are returned in.
    """
    rows: dict[Hashable, list[int]] = {}
    for k, (x, dtype) in enumerate(zip(arrays, dtypes, strict=True)):
        if x is not None:
            _, computed, where = alike(x)
            alone = AxisType.Explicit in jax.typeof(x).sharding.mesh.axis_types
            kind = _lying(x.shape), computed, dtype, where, k if alone else None
            rows.setdefault(kind, []).append(k)
    most = MANY["cpu" if jax.default_backend() == "cpu" else "else"]
    found = []
    for row in rows.values():
        largest = max(arrays[k].size * arrays[k].dtype.itemsize for k in row)
        size = max(1, min(most, MOST // max(largest, 1)))
        found += [part.tolist() for part in np.array_split(row, _parts(len(row), size))]
    return found


def _parts(n: int, most: int) -> int:
    """In how many stacks to put `n` matrices: equal ones, if twice as many suffice."""
    least = -(-n // most)
    return next((k for k in range(least, min(2 * least, n) + 1) if n % k == 0), least)


def stacking(rule: Rule, names: tuple[str, ...], dtype: Any) -> Heavy:
    """The heavy formula of `rule`, for arrays that `stacks` has put together.

        ([x, ...], numbers) -> [u, ...]

    A tall matrix is laid on its side, and its result is set up again. Of more than two
    axes the last two are those of a matrix.

    Args:
        rule: one with a heavy formula.
        names: those of its numbers.
        dtype: what the results are returned in; `None` to leave them wide.
    """
    heavy: Any = rule.heavy

    def one(x: Any, numbers: Numbers) -> Any:
        pairs = zip(names, numbers, strict=True)
        n = SimpleNamespace(**{name: widen(a, wide_dtype([x])) for name, a in pairs})
        with mixing([x]), jax.named_scope(rule.name):
            return heavy(n, x)

    def stack(xs: Sequence[Any], numbers: Numbers) -> list[Any]:
        m, n = _lying(xs[0].shape)
        if len(xs) == 1 and xs[0].shape == (m, n):
            return [one(xs[0], numbers)]
        rows = [_turned(x, x.shape).reshape(-1, m, n) for x in xs]
        ends = np.cumsum([0, *(len(row) for row in rows)])
        found = jax.vmap(one, (0, None))(jnp.concatenate(rows), numbers)
        return [
            _turned(found[a:b], x.shape).reshape(x.shape)
            for (a, b), x in zip(pairwise(ends.tolist()), xs, strict=True)
        ]

    def each(xs: Sequence[Any], numbers: Numbers) -> list[Any]:
        if len(xs) > 1:
            found = stack(xs, numbers)
        else:
            alone = lambda x, numbers: stack([x], numbers)[0]
            found = [sharded_like(xs[0], alone, xs[0], numbers)]
        return found if dtype is None else [restore(u, dtype) for u in found]

    return shared(each, "heavy", str(dtype), names, fingerprint(heavy))


def _lying(shape: tuple[int, ...]) -> tuple[int, int]:
    """Rows and columns of a matrix that lies on its longer side."""
    m, n = sorted(shape[-2:])
    return m, n


def _turned(x: Any, shape: tuple[int, ...]) -> Any:
    """`x` on its other side, if matrices of this shape are tall."""
    return x.mT if shape[-2] > shape[-1] else x
