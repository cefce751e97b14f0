"""The matching of least cost, by shortest augmenting paths.

Kuhn, The Hungarian method for the assignment problem, 1955
Crouse, On implementing 2D rectangular assignment algorithms, 2016

Rows are matched one after the other. A new row looks for the cheapest way to a free
column, over columns already taken, whose rows then move on: Dijkstra's algorithm over
the columns, in costs that two prices, `u` for the rows and `v` for the columns, keep
from being negative. With `n` rows and `m >= n` columns it takes `n^2 m` steps at most.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int, Num, Shaped

from .. import check
from ..numerics import at_least_float32

Pairs = tuple[Int[Array, " k"], Int[Array, " k"]]
# (distances, places, free columns) -> the column to go to; distances are `top` where
# a column was visited, and its place is -1
Choose = Callable[[Array, Array, Array], Array]


def base_hungarian_algorithm(cost_matrix: Any) -> Pairs:
    """The rows and columns of the matching of least cost, in the order of the rows.

    Of several such matchings it finds the one that SciPy's `linear_sum_assignment`
    finds. An infinite cost (or NaN) is taken only where there is no other way.

    Args:
        cost_matrix: what it costs to match each row with each column.

    >>> import jax.numpy as jnp
    >>> i, j = base_hungarian_algorithm(jnp.array([[4, 1, 3], [2, 0, 5], [3, 2, 2]]))
    >>> i.tolist(), j.tolist()
    ([0, 1, 2], [1, 0, 2])
    """
    costs, wide = _prepared("base_hungarian_algorithm", cost_matrix)
    columns = _match(costs, _like_scipy)
    rows = jnp.arange(len(columns))
    if wide:
        return rows, columns
    order = jnp.argsort(columns)
    return columns[order], order


def hungarian_algorithm(cost_matrix: Any) -> Pairs:
    """The rows and columns of the matching of least cost.

    A square matrix is answered in the order of its columns; another in the reversed
    order of its rows, or of its columns where these are fewer.

    Args:
        cost_matrix: as for `base_hungarian_algorithm`.
    """
    costs, wide = _prepared("hungarian_algorithm", cost_matrix)
    columns = _match(costs, _first)
    rows = jnp.arange(len(columns))
    if costs.shape[0] == costs.shape[1]:
        return jnp.argsort(columns), rows
    rows, columns = rows[::-1], columns[::-1]
    return (rows, columns) if wide else (columns, rows)


def _prepared(name: str, cost_matrix: Any) -> tuple[Num[Array, "n m"], bool]:
    """Finite costs with no more rows than columns, and whether they had so before."""
    (costs,) = check.array(name, cost_matrix=cost_matrix)
    if costs.ndim != 2:
        raise ValueError(
            f"{name}: cost_matrix has shape {costs.shape}, expected a matrix. Map over "
            "more of them with `jax.vmap`."
        )
    if jnp.iscomplexobj(costs):
        raise TypeError(f"{name}: cost_matrix is {costs.dtype}, expected real costs.")
    wide = costs.shape[0] <= costs.shape[1]
    return _finite(costs if wide else costs.T), wide


def _finite(costs: Shaped[Array, "n m"]) -> Num[Array, "n m"]:
    """The costs, exact, with numbers beyond all others for the infinite ones."""
    if not jnp.issubdtype(costs.dtype, jnp.floating):
        # Those that fit stay whole: a float32 knows no odd number above 2**24.
        signed = jnp.issubdtype(costs.dtype, jnp.signedinteger)
        fits = signed or costs.dtype.itemsize < 4
        return costs.astype(int if fits else float)
    costs = at_least_float32(costs)
    known = jnp.isfinite(costs)
    low = jnp.min(costs, where=known, initial=0)
    high = jnp.max(costs, where=known, initial=0)
    # One of these costs more than any matching without it saves.
    far = (costs.shape[0] + 1) * (high - low) + 1
    beyond = jnp.where(costs == -jnp.inf, low - far, high + far)
    return jnp.where(known, costs, beyond)


class _Matching(NamedTuple):
    u: Num[Array, " n"]  # the price of each row
    v: Num[Array, " m"]  # the price of each column
    row_of: Int[Array, " m"]  # the row of each column; n where it is free
    column_of: Int[Array, " n"]  # the column of each row; m where it is free


class _Search(NamedTuple):
    row: Int[Array, ""]  # the row that looks at all columns now
    column: Int[Array, ""]  # where it was reached; the end, when that is free
    reach: Num[Array, ""]  # how far it is
    distance: Num[Array, " m"]  # how far each column is
    before: Int[Array, " m"]  # the row each column was reached from
    place: Int[Array, " m"]  # where each stands among those to visit; -1: visited
    left: Int[Array, ""]  # how many of them


def _match(costs: Num[Array, "n m"], choose: Choose) -> Int[Array, " n"]:
    """The column of each row."""
    n, m = costs.shape
    whole = jnp.issubdtype(costs.dtype, jnp.integer)
    top = jnp.iinfo(costs.dtype).max if whole else jnp.inf
    if n == 0:
        return jnp.zeros(0, int)

    def search(new: Int[Array, ""], found: _Matching) -> _Search:
        free = found.row_of == n

        def step(s: _Search) -> _Search:
            open_ = s.place >= 0
            costs_now = s.reach + costs[s.row] - found.u[s.row] - found.v
            nearer = open_ & (costs_now < s.distance)
            distance = jnp.where(nearer, costs_now, s.distance)
            before = jnp.where(nearer, s.row, s.before)
            j = choose(jnp.where(open_, distance, top), s.place, free)
            # The last of those to visit takes the place of the one that is visited.
            place = jnp.where(s.place == s.left - 1, s.place[j], s.place)
            place = place.at[j].set(-1)
            return _Search(
                found.row_of[j], j, distance[j], distance, before, place, s.left - 1
            )

        def ended(s: _Search) -> Bool[Array, ""]:
            return s.row == n

        start = _Search(
            row=new,
            column=jnp.zeros_like(new),
            reach=jnp.zeros((), costs.dtype),
            distance=jnp.full(m, top, costs.dtype),
            before=jnp.full(m, n, new.dtype),
            place=jnp.arange(m)[::-1].astype(new.dtype),
            left=jnp.full_like(new, m),
        )
        return jax.lax.while_loop(lambda s: ~ended(s), step, start)

    def add(new: Int[Array, ""], found: _Matching) -> _Matching:
        s = search(new, found)
        visited = s.place < 0
        slack = jnp.where(visited, s.reach - jnp.where(visited, s.distance, 0), 0)
        u = found.u.at[found.row_of].add(slack, mode="drop").at[new].add(s.reach)
        v = found.v - slack

        def back(state: tuple[Array, Array, Array, Array]) -> Any:
            """Each row on the way takes the column it found, and leaves its own."""
            j, row_of, column_of, _ = state
            i = s.before[j]
            left_behind = column_of[i]
            row_of, column_of = row_of.at[j].set(i), column_of.at[i].set(j)
            return left_behind, row_of, column_of, i == new

        start = s.column, found.row_of, found.column_of, jnp.asarray(False)
        _, row_of, column_of, _ = jax.lax.while_loop(lambda c: ~c[-1], back, start)
        return _Matching(u, v, row_of, column_of)

    nothing = _Matching(
        u=jnp.zeros(n, costs.dtype),
        v=jnp.zeros(m, costs.dtype),
        row_of=jnp.full(m, n, int),
        column_of=jnp.full(n, m, int),
    )
    loop = lambda i, found: add(i.astype(int), found)
    return jax.lax.fori_loop(0, n, loop, nothing).column_of


def _first(distance: Array, place: Array, free: Array) -> Array:
    """Of the nearest columns, the first."""
    del place, free
    return jnp.argmin(distance).astype(int)


def _like_scipy(distance: Array, place: Array, free: Array) -> Array:
    """Of the nearest columns, the last free one in the list of those to visit.

    Without a free one, the first in the list.
    """
    nearest = (place >= 0) & (distance == jnp.min(distance))
    last_free = jnp.argmax(jnp.where(nearest & free, place, -1))
    first = jnp.argmin(jnp.where(nearest, place, place.shape[0]))
    return jnp.where(jnp.any(nearest & free), last_free, first).astype(int)
