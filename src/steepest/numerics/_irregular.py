"""Work that is done every few steps, if gradients are missing in some of the steps.

A leaf may have a gradient only in every second step, and the work may be due only in
the others. So in steps with missing gradients, it is done in a sequence that has no
rhythm in common with any other.
"""

import jax.numpy as jnp
from jaxtyping import Array, Int

from ..core import Real

_GOLDEN = 2654435769  # 2^32 times the golden ratio, less its whole part


def irregular_turn(count: Int[Array, ""], k: Real) -> Int[Array, ""]:
    """Which of `k` turns to take in a step, without a rhythm.

        floor(k (count golden mod 1))           golden = (sqrt(5) - 1) / 2

    Each turn comes in about every k-th step, and in about every k-th of every second
    step, every third step and so on, because `golden` is far from any fraction.

    Args:
        count: the number of steps taken.
        k: the number of turns.
    """
    part = (count.astype(jnp.uint32) * jnp.uint32(_GOLDEN)) >> 16  # times 2^16
    turns = jnp.minimum(jnp.asarray(k), 2**16 - 1).astype(jnp.uint32)
    return ((part * turns) >> 16).astype(jnp.int32)
