"""Memory for the two sides of a matrix: a square array for the rows, and one for the
columns.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Literal

import jax
import jax.numpy as jnp
from jax.typing import DTypeLike
from jaxtyping import Array, Bool, Float, PyTree

from ..core import Every, Param, Real
from ..numerics import (
    between_bases,
    columns_sum,
    cond_under_vmap,
    eigenbasis,
    iterated_basis,
    rotated_basis,
    rounded_to_half,
    rows_sum,
    sharded_near,
    Sum,
    Values,
    wide_dtype,
)
from ._groups import Words
from ._recipe import folded

# For rows and columns: a square array, or `None` if the side has none.
Sides = tuple[Float[Array, "*stack m m"] | None, Float[Array, "*stack n n"] | None]
Basis = Literal["qr", "rotation"]  # how a basis is corrected
Factors = Literal["shampoo", "kl"]  # whether a factor is whitened by the other side
LONGEST = 10_000  # a longer side has no square array


@dataclass(frozen=True)
class PerSide:
    """An initial value: for each side of length d, an array such as one of (d, d).

    In float32 or wider, whatever dtype `memory_dtype` is: sums of outer products in
    half precision have no small eigenvalues, and bases in bfloat16 are not orthogonal.
    Only an explicit `dtype` makes it narrower.
    """

    first: Callable[[int], PyTree]  # d -> the initial value
    values: Values = "exact"  # what may be stored in fewer bits
    dtype: DTypeLike | None = None  # the dtype chosen by the user
    keeps_dtype: ClassVar[bool] = True

    def __call__(
        self,
        p: Param,
        *,
        words: Words,
        longest: int,
        one_sided: bool,
        reshard: tuple[str, ...] = (),
    ) -> tuple[PyTree, PyTree]:
        *stack, m, n = folded(p.shape, words=words)
        rows, columns = (
            None
            if d > longest
            else for_each(stack, self.first(d), p, reshard, self.dtype)
            for d in (m, n)
        )
        if one_sided and m != n:
            return (rows, None) if m < n else (None, columns)
        return rows, columns


def for_each(
    stack: Sequence[int],
    one: PyTree,
    p: Param,
    reshard: tuple[str, ...] = (),
    dtype: DTypeLike | None = None,
) -> PyTree:
    """The initial value of one matrix, for each matrix of a stack.

    Args:
        stack: shape of the stack.
        one: the arrays of one matrix.
        p: the param.
        reshard: mesh axes over which the first axis after the stack is sharded.
        dtype: of the value; by default float32 or wider.
    """
    kind = wide_dtype([p]) if dtype is None else dtype

    def many(x: Array) -> Array:
        x = jnp.broadcast_to(x.astype(kind), (*stack, *x.shape))
        return sharded_near(p, x, reshard, len(stack))

    return jax.tree.map(many, one)


zero_factors = PerSide(lambda d: jnp.zeros((d, d)))


def first_bases(dtype: DTypeLike | None = None) -> PerSide:
    """The initial value of bases: the identity, in `dtype` if given."""
    return PerSide(jnp.eye, "orthogonal", dtype)


def rotated(x: Array, bases: Sides, *, any_size: bool = False) -> Array:
    """The coordinates of a matrix in these bases: `left^T x right`.

    Args:
        x: a matrix.
        bases: orthogonal matrices for rows and columns; `None` for the identity.
        any_size: whether `x` may be huge or tiny: see `between_bases`.
    """
    return all_rotated([x], bases, any_size=any_size)[0]


def all_rotated(
    xs: Sequence[Array], bases: Sides, *, any_size: bool = False
) -> list[Array]:
    """The coordinates of some matrices of equal shape in these bases.

    Args:
        xs: the matrices.
        bases: orthogonal matrices for rows and columns; `None` for the identity.
        any_size: as for `rotated`.
    """
    left, right = bases
    left = None if left is None else left.T
    return between_bases(left, xs, right, any_size=any_size)


def rotated_back(
    x: Array, bases: Sides, *, size: float | None = None, any_size: bool = False
) -> Array:
    """The matrix with these coordinates: `left x right^T`.

    Args:
        x: the coordinates.
        bases: orthogonal matrices for rows and columns; `None` for the identity.
        size: about the root mean square of `x`, if it is known: see `between_bases`.
        any_size: as for `rotated`.
    """
    left, right = bases
    right = None if right is None else right.T
    return between_bases(left, [x], right, size, any_size)[0]


# As the size of a mean over the root of a mean of squares. Most of its elements are
# between 0.01 and 10, and keep all digits of float16 then. There is also room for much
# larger ones, which a basis may cause that changes at once: up to 683 for a matrix of
# 768 by 3072.
NORMALIZED = 32.0


# New values of the factors, which the engine adds up.
Sums = tuple[Sum | None, Sum | None]


def new_factors(g: Array, factors: Sides, beta: Real) -> Sums:
    """Running averages of `g g^T` and `g^T g`."""
    return summed_factors(g, factors, beta, 1 - beta)


def summed_factors(g: Array, factors: Sides, keep: Real, take: Real) -> Sums:
    """`keep L + take g g^T` and `keep R + take g^T g`, for the sides that have one.

    On a GPU, `g` is rounded to 11 bits first. That is far below its noise.

    Args:
        g: a matrix.
        factors: `L` and `R`.
        keep: the weight of the factors.
        take: the weight of the products.
    """
    x = rounded_to_half(g)
    rows = None if factors[0] is None else rows_sum(keep, take, x)
    columns = None if factors[1] is None else columns_sum(keep, take, x)
    return rows, columns


def next_basis(factors: Array, bases: Array, *, basis: Basis) -> Array:
    """The basis of one side, corrected towards the eigenvectors of its factor."""
    return (rotated_basis if basis == "rotation" else iterated_basis)(factors, bases)


def first_or_next_basis(
    factors: Array, bases: Array, *, basis: Basis, start: Bool[Array, ""]
) -> Array:
    """The eigenvectors from scratch at the start, and corrections later."""
    first = lambda factors, bases: eigenbasis(factors)
    later = partial(next_basis, basis=basis)
    return cond_under_vmap(start, first, later, factors, bases)


def at_intervals(
    change: Callable[..., object], rolled: bool, writes: tuple[str, ...] = ("bases",)
) -> Every:
    """Change the memory of each side every `frequency` steps.

    Args:
        change: a function of the memory of one side.
        rolled: whether the matrices take turns. If not, they change when the number
            `due` is true.
        writes: the names of the memory that it changes.
    """
    when = {"k": "frequency"} if rolled else {"due": "due", "period": "frequency"}
    return Every(change, writes=writes, sides=True, **when)
