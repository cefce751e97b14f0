"""Arrays that all runs read, placed on the devices once per race."""

import hashlib
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jax.typing import ArrayLike
from jaxtyping import Array


class Shelf:
    """A cache of arrays on the devices, so that they are transferred only once.

    Arrays with equal digests are shared by all optimizers.
    """

    def __init__(self) -> None:
        self._placed: dict[tuple[str, tuple[int, ...]], Array] = {}
        self._digests: dict[
            int, tuple[ArrayLike, str]
        ] = {}  # by `id`; the array stays alive

    def place(self, arrays: Sequence[ArrayLike], mesh: Mesh) -> list[Array]:
        """Replicate arrays on all devices.

        Args:
            arrays: NumPy or JAX arrays, or Python numbers.
            mesh: the devices.
        """
        everywhere = NamedSharding(mesh, PartitionSpec())
        devices = tuple(device.id for device in mesh.devices.flat)
        placed = []
        for x in arrays:
            key = self._digest(x), devices
            if key not in self._placed:
                self._placed[key] = jax.device_put(x, everywhere)
            placed.append(self._placed[key])
        return placed

    def _digest(self, x: ArrayLike) -> str:
        """The digest, computed once per array: arrays may have gigabytes."""
        if id(x) not in self._digests:
            self._digests[id(x)] = x, digest(x)
        return self._digests[id(x)][1]


def digest(x: ArrayLike) -> str:
    """A digest of the values, the shape and the dtype.

    Args:
        x: a NumPy or JAX array, which may hold keys, or a Python number.
    """
    kind = jax.typeof(x)
    if jnp.issubdtype(kind.dtype, jax.dtypes.prng_key):
        x = jax.random.key_data(x)
    values = np.ascontiguousarray(x)
    head = f"{kind.str_short()} {getattr(kind, 'weak_type', False)} {values.dtype}"
    sha = hashlib.sha256(head.encode())
    sha.update(memoryview(values.reshape(-1).view(np.uint8)))  # pyright: ignore
    return sha.hexdigest()
