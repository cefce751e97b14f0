"""Some arrays of many are replaced, and the others stay where they are.

A select would read and write all of them. On a GPU of NVIDIA, a kernel writes only
those that change.
"""

from collections.abc import Sequence
from functools import partial
from math import prod
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int

from ._kernels import has_kernels, triton

# The arrays that change in a turn: (which stack, its first member, and the one after
# the last).
Window = Sequence[tuple[int, int, int]]

_LEAST, _MOST = 1024, 8192  # elements that a program copies at once
_WARPS = 8


def can_replace(stacks: Sequence[Array]) -> bool:
    """Whether `replaced` can take these arrays, and should.

    Args:
        stacks: the arrays.
    """
    return has_kernels() and all(_piece(x) for x in stacks)


def replaced(
    windows: Sequence[Window],
    turn: Int[Array, ""],
    values: Array,
    stacks: Sequence[Array],
    *,
    interpret: bool = False,
) -> list[Array]:
    """The stacks, with the members in the window of this turn replaced, in one kernel.

    Args:
        windows: the members that change in each turn.
        turn: which turn it is; nobody's, if there are fewer windows.
        values: the new members, in the order of the window.
        stacks: arrays with a leading axis for their members.
        interpret: whether to run without a GPU, for tests.
    """
    from jax.experimental import pallas as pl

    piece = _piece(stacks[0])
    flat = lambda x: x.reshape(len(x), prod(x.shape[1:]))
    olds = [flat(x) for x in stacks]

    def kernel(turn: Any, values: Any, *refs: Any) -> None:
        results, now = refs[len(olds) :], turn[0]
        part = pl.ds(pl.multiple_of(pl.program_id(0) * piece, piece), piece)

        def copy(window: Window) -> None:
            members = [(j, k) for j, a, b in window for k in range(a, b)]
            for i, (j, k) in enumerate(members):
                results[j][k, part] = values[i, part]

        for c, window in enumerate(windows):
            pl.when(now == c)(partial(copy, window))

    new = pl.pallas_call(
        kernel,
        out_shape=[jax.ShapeDtypeStruct(x.shape, x.dtype) for x in olds],
        grid=(olds[0].shape[1] // piece,),
        input_output_aliases={2 + k: k for k in range(len(olds))},
        compiler_params=triton().CompilerParams(num_warps=_WARPS, num_stages=1),
        interpret=interpret,
        name="replaced",
    )(jnp.reshape(turn, (1,)), flat(values), *olds)
    return [x.reshape(old.shape) for x, old in zip(new, stacks, strict=True)]


def _piece(x: Array) -> int:
    """The number of elements of a member to copy at once; 0 if it is too small."""
    size = prod(x.shape[1:])
    power = size & -size  # the largest power of 2 that divides it
    return min(power, _MOST) if power >= _LEAST else 0
