"""Float32 weights that are stored in half precision."""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike
from jaxtyping import Array, Float, PyTree, UInt

from ._dither import dither
from ._split import at_random, joined, split, with_bits
from ._xla import before_its_parts


class Corrected(NamedTuple):
    """Float32 numbers, stored in half precision with corrections.

    Without corrections, the numbers are rounded up or down at random.
    """

    half: PyTree  # an array in bfloat16 or float16
    correction: PyTree  # int16 or int8, in the same shape; or `None`
    seed: PyTree = None  # (2,): if what is stored is rounded at random; uint32

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the array."""
        return tuple(self.half.shape)

    @property
    def dtype(self) -> np.dtype:
        """The dtype of the numbers that are stored."""
        return jnp.dtype(jnp.float32)

    @property
    def noise_dtype(self) -> DTypeLike:
        """The dtype of the random bits that are added to what is cut off."""
        return jnp.uint16 if self.correction is None else jnp.uint8

    def decode(self) -> Float[Array, "..."]:
        """The numbers in float32."""
        if self.correction is None:
            return self.half.astype(jnp.float32)
        return joined(self.half, self.correction)

    def like(self, x: Float[Array, "..."]) -> "Corrected":
        """Other numbers, stored in the same way.

        Args:
            x: numbers in float32, in the same shape.
        """
        noise = None if self.seed is None else dither(self.seed, x, self.noise_dtype)
        return self.rounded(before_its_parts(x.astype(jnp.float32)), noise)

    def rounded(
        self, x: Float[Array, "..."], noise: UInt[Array, "..."] | None
    ) -> "Corrected":
        """`like` with given random bits, for any shape.

        Args:
            x: numbers in float32.
            noise: random bits, in `noise_dtype`.
        """
        dtype, correction = self.half.dtype, None
        if self.correction is None:
            assert noise is not None
            half = with_bits(at_random(x, dtype, noise), dtype)
        else:
            half, correction = split(x, dtype, self.correction.dtype, noise)
        return Corrected(half, correction, self.seed)
