"""The matching of minimum cost, by shortest augmenting paths.

Kuhn, The Hungarian method for the assignment problem, 1955
Crouse, On implementing 2D rectangular assignment algorithms, 2016

Rows are matched one after the other. A new row searches for the cheapest path to a free
column. The path may pass through matched columns, whose rows then move on. The search
is Dijkstra's algorithm over the columns; the dual variables, `u` for the rows and `v`
for the columns, keep the reduced costs non-negative. With `n` rows and `m >= n` columns
it takes at most `n^2 m` steps.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Bool, Int, Num, Shaped

from .. import check
from ..core import Real
from ..numerics import at_least_float32

Costs = ArrayLike | Sequence[Sequence[Real]]
Pairs = tuple[Int[Array, " k"], Int[Array, " k"]]
_Path = tuple[Array, Array, Array, Array]  # (column, row_of, column_of, whether done)
# (distances, places, free columns) -> the column to visit next; a visited column has
# distance `top` and place -1
Choose = Callable[[Array, Array, Array], Array]


def base_hungarian_algorithm(cost_matrix: Costs) -> Pairs:
    """The rows and columns of the matching of minimum cost, in the order of the rows.

    If there are several, it returns the same one as SciPy's `linear_sum_assignment`.
    An infinite cost (or NaN) is used only if there is no other matching.

    Args:
        cost_matrix: the cost of matching each row with each column.

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


def hungarian_algorithm(cost_matrix: Costs) -> Pairs:
    """The rows and columns of the matching of minimum cost.

    For a square matrix they are in the order of the columns. Otherwise they are in the
    reversed order of the rows, or of the columns if there are fewer columns.

    Args:
        cost_matrix: the cost of matching each row with each column.
    """
    costs, wide = _prepared("hungarian_algorithm", cost_matrix)
    columns = _match(costs, _first)
    rows = jnp.arange(len(columns))
    if costs.shape[0] == costs.shape[1]:
        return jnp.argsort(columns), rows
    rows, columns = rows[::-1], columns[::-1]
    return (rows, columns) if wide else (columns, rows)


def _prepared(name: str, cost_matrix: Costs) -> tuple[Num[Array, "n m"], bool]:
    """Finite costs, transposed if there are more rows; and whether they were not."""
    (costs,) = check.array(name, cost_matrix=cost_matrix)
    if costs.ndim != 2:
        raise ValueError(
            f"{name}: cost_matrix has shape {costs.shape}, expected a matrix. Map over "
            "several matrices with `jax.vmap`."
        )
    if jnp.iscomplexobj(costs):
        raise TypeError(f"{name}: cost_matrix is {costs.dtype}, expected real numbers.")
    wide = costs.shape[0] <= costs.shape[1]
    return _finite(costs if wide else costs.T), wide


def _finite(costs: Shaped[Array, "n m"]) -> Num[Array, "n m"]:
    """The costs, exact, with infinite ones replaced by numbers beyond all others."""
    if not jnp.issubdtype(costs.dtype, jnp.floating):
        # Integers that fit stay integers: float32 has no odd numbers above 2**24.
        signed = jnp.issubdtype(costs.dtype, jnp.signedinteger)
        fits = signed or costs.dtype.itemsize < 4
        return costs.astype(int if fits else float)
    costs = at_least_float32(costs)
    known = jnp.isfinite(costs)
    low = jnp.min(costs, where=known, initial=0)
    high = jnp.max(costs, where=known, initial=0)
    # One of these costs more than any matching could save by using it.
    far = (costs.shape[0] + 1) * (high - low) + 1
    beyond = jnp.where(costs == -jnp.inf, low - far, high + far)
    return jnp.where(known, costs, beyond)


class _Matching(NamedTuple):
    u: Num[Array, " n"]  # dual variable of each row
    v: Num[Array, " m"]  # dual variable of each column
    row_of: Int[Array, " m"]  # the row of each column; n if free
    column_of: Int[Array, " n"]  # the column of each row; m if free


class _Search(NamedTuple):
    row: Int[Array, ""]  # the row to search from next; n at the end
    column: Int[Array, ""]  # the last visited column; a free one at the end
    reach: Num[Array, ""]  # distance of that column
    distance: Num[Array, " m"]  # distance of each column
    before: Int[Array, " m"]  # the row each column was reached from
    place: Int[Array, " m"]  # place of each column in the list to visit; -1: visited
    left: Int[Array, ""]  # the length of that list


def _match(costs: Num[Array, "n m"], choose: Choose) -> Int[Array, " n"]:
    """The column of each row."""
    n, m = costs.shape
    if n == 0:
        return jnp.zeros(0, int)

    def add(i: Array, matching: _Matching) -> _Matching:
        new = i.astype(int)
        return _augment(matching, new, _search(costs, choose, matching, new))

    start = _Matching(
        u=jnp.zeros(n, costs.dtype),
        v=jnp.zeros(m, costs.dtype),
        row_of=jnp.full(m, n, int),
        column_of=jnp.full(n, m, int),
    )
    return jax.lax.fori_loop(0, n, add, start).column_of


def _search(
    costs: Num[Array, "n m"], choose: Choose, matching: _Matching, new: Int[Array, ""]
) -> _Search:
    """The shortest path from a new row to a free column."""
    n, m = costs.shape
    whole = jnp.issubdtype(costs.dtype, jnp.integer)
    top = jnp.iinfo(costs.dtype).max if whole else jnp.inf
    free = matching.row_of == n

    def step(s: _Search) -> _Search:
        open_ = s.place >= 0
        costs_now = s.reach + costs[s.row] - matching.u[s.row] - matching.v
        nearer = open_ & (costs_now < s.distance)
        distance = jnp.where(nearer, costs_now, s.distance)
        before = jnp.where(nearer, s.row, s.before)
        j = choose(jnp.where(open_, distance, top), s.place, free)
        # The last column of the list takes the place of the visited one.
        place = jnp.where(s.place == s.left - 1, s.place[j], s.place)
        place = place.at[j].set(-1)
        return _Search(
            matching.row_of[j], j, distance[j], distance, before, place, s.left - 1
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


def _augment(matching: _Matching, new: Int[Array, ""], s: _Search) -> _Matching:
    """The matching with the new row added along the path of `s`."""
    visited = s.place < 0
    slack = jnp.where(visited, s.reach - jnp.where(visited, s.distance, 0), 0)
    u = matching.u.at[matching.row_of].add(slack, mode="drop").at[new].add(s.reach)
    v = matching.v - slack

    def back(state: _Path) -> _Path:
        """Each row on the path takes the column it reached, and leaves its own."""
        j, row_of, column_of, _ = state
        i = s.before[j]
        left_behind = column_of[i]
        row_of, column_of = row_of.at[j].set(i), column_of.at[i].set(j)
        return left_behind, row_of, column_of, i == new

    start = s.column, matching.row_of, matching.column_of, jnp.asarray(False)
    _, row_of, column_of, _ = jax.lax.while_loop(lambda c: ~c[-1], back, start)
    return _Matching(u, v, row_of, column_of)


def _first(distance: Array, place: Array, free: Array) -> Array:
    """The first of the nearest columns."""
    del place, free
    return jnp.argmin(distance).astype(int)


def _like_scipy(distance: Array, place: Array, free: Array) -> Array:
    """Of the nearest columns, the last free one in the list to visit.

    If none is free, the first one in the list.
    """
    nearest = (place >= 0) & (distance == jnp.min(distance))
    last_free = jnp.argmax(jnp.where(nearest & free, place, -1))
    first = jnp.argmin(jnp.where(nearest, place, place.shape[0]))
    return jnp.where(jnp.any(nearest & free), last_free, first).astype(int)
